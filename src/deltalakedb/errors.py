"""Every error deltalakedb raises, in one tree.

::

    TxnLogError
    ├── TxnLogTransactionError          a commit that did not happen
    │   ├── VersionConflict             someone else took the version
    │   ├── ConcurrentModification      another commit came first, and this one depends on it
    │   │   ├── ConcurrentAppend        the winner added files this commit should have read
    │   │   ├── ConcurrentDeleteRead    the winner removed files this commit read
    │   │   ├── ConcurrentDeleteDelete  the winner removed files this commit removes
    │   │   ├── ConcurrentTransaction   the winner wrote the same application id or domain
    │   │   ├── MetadataChanged         the winner changed schema or properties
    │   │   └── ProtocolChanged         the winner changed the protocol
    │   ├── TransactionTimeout          the transaction lived longer than it may
    │   ├── TransactionClosed           used after commit or rollback
    │   ├── TooManyTables, TooManyFiles limits of the transaction
    │   ├── InvalidCommit               actions that Delta's rules forbid together
    │   └── CommitOutcomeUnknown        the connection died at COMMIT and the look-up failed too
    ├── TableNotFound, TableAlreadyExists, TableDiverged
    ├── VersionNotFound                 names the versions (or times) that exist
    ├── SchemaMismatch                  data or change does not fit the table's schema
    │   └── InvalidSchema               a schema Delta cannot hold
    ├── ConstraintViolation             NOT NULL, CHECK, invariant or generated column
    ├── ProtocolError                   table features this build cannot read or write
    ├── CorruptLog                      a log that contradicts the protocol
    ├── ExpressionError                 a predicate or expression that cannot be understood
    ├── MirrorError
    │   ├── MirrorConflict              other bytes stand where ours belong
    │   └── MirrorLag
    ├── UriError                        a URI, or an option in it
    ├── ConfigError                     a setting out of range, a missing extra
    ├── InvalidArgument                 a call that makes no sense, with what to do instead
    ├── CatalogError                    the database behind the catalog
    │   ├── CatalogUnavailable          down, unreachable, refused
    │   │   └── ConnectionLost          died under a statement
    │   ├── CatalogLocked               another writer holds it
    │   ├── CatalogReadOnly, CatalogFull
    │   └── MigrationError              schema missing, newer than this build, or failed to upgrade
    ├── StorageError                    a file that cannot be read, written or listed
    │   └── ObjectNotFound              a file that is not there
    ├── UnsupportedByBackend            names the backend and what it cannot do
    └── PipelineError

Errors carry their facts as attributes; the text is for people. Driver errors are translated in
one place per driver and chained, so ``__cause__`` always shows the original.
"""

from __future__ import annotations

from typing import Any


class TxnLogError(Exception):
    """Root of everything deltalakedb raises.

    Keyword arguments become attributes, so a handler never parses the text. Each class declares
    the ones it may have; those that do not apply are None.
    """

    def __init__(self, message: str, **facts: Any) -> None:
        super().__init__(message)
        self.message = message
        self.facts = facts
        for name, value in facts.items():
            setattr(self, name, value)

    def __reduce__(self) -> tuple[Any, ...]:
        return (_rebuild, (type(self), self.message, self.facts))


def _rebuild(kind: type[TxnLogError], message: str, facts: dict[str, Any]) -> TxnLogError:
    return kind(message, **facts)


class TxnLogTransactionError(TxnLogError):
    """A commit that did not happen. Nothing of it is visible."""


class VersionConflict(TxnLogTransactionError):
    """``table``, ``expected``, ``found``."""

    table: Any = None
    expected: Any = None
    found: Any = None


class ConcurrentModification(TxnLogTransactionError):
    """A winner's commit conflicts with this one: ``table``, ``winner`` (its version), ``rule``."""

    table: Any = None
    winner: Any = None
    rule: Any = None


class ConcurrentAppend(ConcurrentModification):
    """The winner added files that match what this commit read."""


class ConcurrentDeleteRead(ConcurrentModification):
    """The winner removed files that this commit read."""


class ConcurrentDeleteDelete(ConcurrentModification):
    """The winner removed files that this commit removes too."""


class ConcurrentTransaction(ConcurrentModification):
    """The winner wrote an application id or a metadata domain this commit depends on."""


class MetadataChanged(ConcurrentModification):
    """The winner changed the table's metadata."""


class ProtocolChanged(ConcurrentModification):
    """The winner changed the table's protocol."""


class TransactionTimeout(TxnLogTransactionError):
    """``timeout_secs``, ``elapsed_secs``."""

    timeout_secs: Any = None
    elapsed_secs: Any = None


class TransactionClosed(TxnLogTransactionError):
    """``transaction_id``, ``state``."""

    transaction_id: Any = None
    state: Any = None


class TooManyTables(TxnLogTransactionError):
    """``limit``, ``found``."""

    limit: Any = None
    found: Any = None


class TooManyFiles(TxnLogTransactionError):
    """``table``, ``limit``, ``found``."""

    table: Any = None
    limit: Any = None
    found: Any = None


class InvalidCommit(TxnLogTransactionError):
    """Actions that Delta's rules forbid: ``table``, ``rule``."""

    table: Any = None
    rule: Any = None


class CommitOutcomeUnknown(TxnLogTransactionError):
    """The connection died at COMMIT and the outcome cannot be looked up: ``transaction_id``.

    Commit the same transaction id again once the database is back: it happens once.
    """

    transaction_id: Any = None


class TableNotFound(TxnLogError):
    """``table``, ``catalog``, ``available``."""

    table: Any = None
    catalog: Any = None
    available: Any = None


class TableAlreadyExists(TxnLogError):
    """``table``, ``location``."""

    table: Any = None
    location: Any = None


class TableDiverged(TxnLogError):
    """The mirror holds something SQL does not know; writes are refused: ``table``, ``reason``."""

    table: Any = None
    reason: Any = None


class VersionNotFound(TxnLogError):
    """``table``, ``version`` or ``timestamp``, ``earliest``, ``latest``."""

    table: Any = None
    version: Any = None
    timestamp: Any = None
    earliest: Any = None
    latest: Any = None


class SchemaMismatch(TxnLogError):
    """``table``, ``expected``, ``found``, ``columns``."""

    table: Any = None
    expected: Any = None
    found: Any = None
    columns: Any = None


class InvalidSchema(SchemaMismatch):
    """A schema Delta cannot hold: ``column``, ``reason``."""

    column: Any = None
    reason: Any = None


class ConstraintViolation(TxnLogError):
    """``table``, ``constraint``, ``expression``, ``rows`` (how many), ``sample``."""

    table: Any = None
    constraint: Any = None
    expression: Any = None
    rows: Any = None
    sample: Any = None


class ProtocolError(TxnLogError):
    """``table``, ``missing`` (feature names), ``operation`` (read or write)."""

    table: Any = None
    missing: Any = None
    operation: Any = None


class CorruptLog(TxnLogError):
    """``location``, ``version``, ``reason``."""

    location: Any = None
    version: Any = None
    reason: Any = None


class ExpressionError(TxnLogError):
    """``expression``, ``reason``."""

    expression: Any = None
    reason: Any = None


class MirrorError(TxnLogError):
    """``table``, ``version``."""

    table: Any = None
    version: Any = None


class MirrorConflict(MirrorError):
    """``table``, ``version``, ``path``."""

    table: Any = None
    version: Any = None
    path: Any = None


class MirrorLag(MirrorError):
    """``table``, ``lag_seconds``, ``lag_versions``."""

    table: Any = None
    lag_seconds: Any = None
    lag_versions: Any = None


class UriError(TxnLogError):
    """``uri`` (redacted), ``allowed``."""

    uri: Any = None
    allowed: Any = None


class ConfigError(TxnLogError):
    """``setting``, ``value``, ``allowed``."""

    setting: Any = None
    value: Any = None
    allowed: Any = None


class InvalidArgument(TxnLogError, ValueError):
    """``argument``, ``allowed``."""

    argument: Any = None
    allowed: Any = None


class CatalogError(TxnLogError):
    """``catalog`` (redacted)."""

    catalog: Any = None


class CatalogUnavailable(CatalogError):
    """The database cannot be reached."""


class CatalogLocked(CatalogError):
    """Another process or transaction holds the database."""


class CatalogReadOnly(CatalogError):
    """The database cannot be written."""


class CatalogFull(CatalogError):
    """No space left for the database."""


class ConnectionLost(CatalogUnavailable):
    """The connection died under a statement; whether it took effect is not known."""


class MigrationError(CatalogError):
    """``found`` and ``supported`` schema versions."""

    found: Any = None
    supported: Any = None


class StorageError(TxnLogError):
    """``path``."""

    path: Any = None


class ObjectNotFound(StorageError):
    """``path`` is not there."""

    path: Any = None


class UnsupportedByBackend(TxnLogError):
    """``backend``, ``operation``."""

    backend: Any = None
    operation: Any = None


class PipelineError(TxnLogError):
    """``place``."""

    place: Any = None
