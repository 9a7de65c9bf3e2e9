"""Every error deltalakedb raises, in one tree.

::

    TxnLogError
    ├── TxnLogTransactionError          a commit that did not happen
    │   ├── VersionConflict             someone else took the version (retries exhausted)
    │   ├── ConcurrentAppend            a winner added files this commit should have read
    │   ├── ConcurrentDeleteRead        a winner removed files this commit read
    │   ├── ConcurrentDeleteDelete      a winner removed files this commit removes
    │   ├── ConcurrentTransaction       a winner wrote the same application id or domain
    │   ├── MetadataChanged             a winner changed schema or properties
    │   ├── ProtocolChanged             a winner changed the protocol
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

from typing import TYPE_CHECKING, Any


class TxnLogError(Exception):
    """Root of everything deltalakedb raises.

    Keyword arguments become attributes, so a handler never parses the text.
    """

    def __init__(self, message: str, **facts: Any) -> None:
        super().__init__(message)
        self.message = message
        self.facts = facts
        for name, value in facts.items():
            setattr(self, name, value)

    if TYPE_CHECKING:  # facts are set by name; each class lists its own

        def __getattr__(self, name: str) -> Any: ...

    def __reduce__(self) -> tuple[Any, ...]:
        return (_rebuild, (type(self), self.message, self.facts))


def _rebuild(kind: type[TxnLogError], message: str, facts: dict[str, Any]) -> TxnLogError:
    return kind(message, **facts)


class TxnLogTransactionError(TxnLogError):
    """A commit that did not happen. Nothing of it is visible."""


class VersionConflict(TxnLogTransactionError):
    """``table``, ``expected``, ``found``, ``attempts``."""


class ConcurrentModification(TxnLogTransactionError):
    """A winner's commit conflicts with this one: ``table``, ``winner`` (its version), ``rule``."""


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


class TransactionClosed(TxnLogTransactionError):
    """``transaction_id``, ``state``."""


class TooManyTables(TxnLogTransactionError):
    """``limit``, ``found``."""


class TooManyFiles(TxnLogTransactionError):
    """``table``, ``limit``, ``found``."""


class InvalidCommit(TxnLogTransactionError):
    """Actions that Delta's rules forbid: ``table``, ``rule``."""


class CommitOutcomeUnknown(TxnLogTransactionError):
    """The connection died at COMMIT and the outcome cannot be looked up: ``transaction_id``.

    Commit the same transaction id again once the database is back: it happens once.
    """


class TableNotFound(TxnLogError):
    """``table``, ``catalog``, ``available``."""


class TableAlreadyExists(TxnLogError):
    """``table``, ``location``."""


class TableDiverged(TxnLogError):
    """The mirror holds something SQL does not know; writes are refused: ``table``, ``reason``."""


class VersionNotFound(TxnLogError):
    """``table``, ``version`` or ``timestamp``, ``earliest``, ``latest``."""


class SchemaMismatch(TxnLogError):
    """``table``, ``expected``, ``found``, ``columns``."""


class InvalidSchema(SchemaMismatch):
    """A schema Delta cannot hold: ``column``, ``reason``."""


class ConstraintViolation(TxnLogError):
    """``table``, ``constraint``, ``expression``, ``rows`` (how many), ``sample``."""


class ProtocolError(TxnLogError):
    """``table``, ``missing`` (feature names), ``operation`` (read or write)."""


class CorruptLog(TxnLogError):
    """``location``, ``version``, ``reason``."""


class ExpressionError(TxnLogError):
    """``expression``, ``reason``."""


class MirrorError(TxnLogError):
    """``table``, ``version``."""


class MirrorConflict(MirrorError):
    """``table``, ``version``, ``path``."""


class MirrorLag(MirrorError):
    """``table``, ``lag_seconds``, ``lag_versions``."""


class UriError(TxnLogError):
    """``uri`` (redacted), ``allowed``."""


class ConfigError(TxnLogError):
    """``setting``, ``value``, ``allowed``."""


class InvalidArgument(TxnLogError, ValueError):
    """``argument``, ``allowed``."""


class CatalogError(TxnLogError):
    """``catalog`` (redacted)."""


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
    """``found`` and ``supported`` schema versions, ``migration``."""


class StorageError(TxnLogError):
    """``path``."""


class ObjectNotFound(StorageError):
    """``path`` is not there."""


class UnsupportedByBackend(TxnLogError):
    """``backend``, ``operation``."""


class PipelineError(TxnLogError):
    """``place``."""
