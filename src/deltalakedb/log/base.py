"""What a transaction log offers, whichever way it is stored.

`TxnLogReader` answers from one table's log; `TxnLogWriter` appends to it. `files.py` reads a plain
`_delta_log`, `sql_reader.py` and `sql_writer.py` keep the log in a database.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

from deltalakedb.log.files_schema import FILE_COLUMNS
from deltalakedb.model.actions import (
    Action,
    Add,
    DomainMetadata,
    Metadata,
    Remove,
    Txn,
)
from deltalakedb.model.actions import Protocol as TableProtocol
from deltalakedb.model.schema import StructType, parse_schema

if TYPE_CHECKING:
    import pyarrow as pa

    from deltalakedb.log.tracking import TrackedColumn
    from deltalakedb.model.expr import Expr


@dataclass(frozen=True)
class Snapshot:
    """One version of one table: all that is known without looking at its files."""

    table: str
    location: str
    version: int
    timestamp: int
    metadata: Metadata
    protocol: TableProtocol
    num_files: int
    size_bytes: int
    num_records: int | None
    table_id: int = -1
    tracked: tuple[TrackedColumn, ...] = ()

    @cached_property
    def schema(self) -> StructType:
        """The logical schema."""
        return parse_schema(self.metadata.schema_string)


@dataclass(frozen=True)
class CommitRecord:
    """One line of a table's history, or of a catalog's."""

    table: str
    version: int
    timestamp: int
    operation: str | None
    parameters: Mapping[str, Any]
    commit_info: Mapping[str, Any]
    transaction_id: str | None = None
    committer: str | None = None
    message: str | None = None
    read_version: int | None = None
    isolation_level: str | None = None
    is_blind_append: bool | None = None


class TxnLogReader(Protocol):
    """Reads one table's log. Answers for a version never change once it is committed."""

    def snapshot(self, version: int | None = None, timestamp: int | None = None) -> Snapshot:
        """The latest version, a given one, or the last one at or before `timestamp` (ms).

        Reads a constant number of rows where the log is in a database.
        """

    def files(
        self,
        snapshot: Snapshot,
        where: Expr | None = None,
        columns: Sequence[str] = FILE_COLUMNS,
    ) -> pa.RecordBatchReader:
        """Live files of the snapshot as a stream, with the columns that are asked for.

        With `where`, files that cannot hold a matching row are left out, by partition and by
        statistics.
        """

    def actions(self, version: int) -> list[Action]:
        """Every action of one commit, in the order of the log."""

    def history(self, limit: int | None = None) -> list[CommitRecord]:
        """Commits, newest first."""

    def version_range(self) -> tuple[int, int]:
        """The oldest version that can be read, and the newest."""

    def txn_version(self, app_id: str, snapshot: Snapshot) -> int | None:
        """How far the application has come, as of the snapshot."""

    def domains(self, snapshot: Snapshot) -> dict[str, DomainMetadata]:
        """Live metadata domains as of the snapshot."""


# --- commits --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class NewTable:
    """A table that comes into being with the commit."""

    name: str
    location: str
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ReadSet:
    """What a commit depends on. Empty for a blind append."""

    predicates: tuple[Expr, ...] = ()
    whole_table: bool = False
    app_ids: frozenset[str] = frozenset()

    @property
    def is_empty(self) -> bool:
        """Whether nothing of the table's rows was read."""
        return not self.predicates and not self.whole_table


@dataclass(frozen=True)
class TableCommit:
    """One table's part of a commit: the actions, and the snapshot they were decided on.

    `base` is None for a table that is created by this commit (`create` then says which).
    `fresh_files` promises that no added path can already be in the table.
    """

    actions: tuple[Action, ...]
    operation: str
    base: Snapshot | None = None
    create: NewTable | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    metrics: Mapping[str, Any] = field(default_factory=dict)
    reads: ReadSet = ReadSet()
    isolation: str = "WriteSerializable"
    fresh_files: bool = False
    guard: bool = False
    """Only read: its reads are checked like those of any commit, and it gets no version."""

    @property
    def table(self) -> str:
        """Name of the table."""
        if self.create is not None:
            return self.create.name
        return self.base.table if self.base else ""

    @property
    def location(self) -> str:
        """Where the table's files lie."""
        if self.create is not None:
            return self.create.location
        return self.base.location if self.base else ""

    @property
    def is_blind_append(self) -> bool:
        """Whether the commit only adds, without having read the table."""
        return self.reads.is_empty and not any(
            isinstance(a, Remove) or (isinstance(a, Add) and not a.data_change)
            for a in self.actions
        )


@dataclass(frozen=True)
class Commit:
    """One transaction over one or more tables. Committing the same id again changes nothing."""

    transaction_id: str
    tables: tuple[TableCommit, ...]
    committer: str | None = None
    message: str | None = None
    run_id: str | None = None


@dataclass(frozen=True)
class CommitResult:
    """What a commit did: the same answer however often its id is committed."""

    transaction_id: str
    versions: Mapping[str, int]
    timestamp: int
    repeated: bool = field(default=False, compare=False)
    """Whether the id was committed before, by someone else: nothing was written this time."""


@dataclass(frozen=True)
class Winner:
    """A commit that came in between, as far as a conflict check needs it."""

    version: int
    operation: str | None
    is_blind_append: bool
    adds: Sequence[Add] = ()
    removes: Sequence[Add] = ()
    """The removed files as they had been added, so that predicates can be tested on them."""
    metadata: Metadata | None = None
    protocol: TableProtocol | None = None
    txns: Sequence[Txn] = ()
    domains: Sequence[DomainMetadata] = ()


@dataclass(frozen=True)
class Head:
    """State of a table under lock."""

    version: int
    metadata_version: int
    protocol_version: int


Rebase = Callable[[TableCommit, Head, Callable[[], Sequence[Winner]]], TableCommit]
"""Decides whether a commit may follow commits it has not seen.

Called with the head that was found and a way to load the commits in between. Returns the commit to
write, or raises the conflict. It runs while the heads are locked: it must not wait.
"""


class TxnLogWriter(Protocol):
    """Appends to the logs of one catalog."""

    def commit(self, commit: Commit, rebase: Rebase) -> CommitResult:
        """Commit everything or nothing. Idempotent by transaction id."""
