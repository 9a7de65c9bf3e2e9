"""A transaction over the tables of one catalog: stage, then commit all of it or nothing.

This layer knows actions only. How rows become files is the table layer's business; it tells the
transaction which files it wrote, so that a rollback can take them away again.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from deltalakedb.errors import (
    CommitOutcomeUnknown,
    InvalidArgument,
    TooManyFiles,
    TooManyTables,
    TransactionClosed,
    TransactionTimeout,
    TxnLogError,
)
from deltalakedb.log.base import Commit, CommitResult, NewTable, ReadSet, Snapshot
from deltalakedb.log.sql_reader import read_snapshot
from deltalakedb.model.actions import Add
from deltalakedb.txn.conflict import rebase
from deltalakedb.txn.retry import Backoff, retrying
from deltalakedb.txn.staged import Change, Stage
from deltalakedb.txn.validate import validate

if TYPE_CHECKING:
    from deltalakedb.log.sql_writer import SqlTxnLogWriter

ISOLATION = "delta.isolationLevel"


@dataclass(frozen=True)
class Limits:
    """What one transaction may grow to. None means no limit."""

    max_tables: int | None = None
    max_files_per_table: int | None = None
    timeout_secs: float | None = None


@dataclass(frozen=True)
class Provenance:
    """Who commits, and why: recorded with the transaction."""

    committer: str | None = None
    message: str | None = None
    run_id: str | None = None


class MultiTableTransaction:
    """Stages changes to tables and commits them together.

    Every read inside it sees the versions that stood when it began (`pins`), plus its own changes.
    """

    def __init__(
        self,
        writer: SqlTxnLogWriter,
        *,
        limits: Limits = Limits(),
        provenance: Provenance = Provenance(),
        transaction_id: str | None = None,
        pins: Mapping[str, int],
        backoff: Backoff,
        monotonic: Callable[[], float] = time.monotonic,
        remove_files: Callable[[Iterable[str]], None],
    ) -> None:
        self.id = transaction_id or str(uuid.uuid4())
        self.limits = limits
        self.state = "open"
        self.result: CommitResult | None = None
        self._writer = writer
        self._provenance = provenance
        self._pins = pins
        self._backoff = backoff
        self._monotonic = monotonic
        self._began = monotonic()
        self._remove_files = remove_files
        self._stages: dict[str, Stage] = {}
        self._written: list[str] = []

    # --- what it sees -----------------------------------------------------------------------------

    def stage(self, table: str) -> Stage:
        """What the transaction holds of a table: its pinned snapshot and the changes so far."""
        self._require_open()
        if table not in self._stages:
            self._require_room(table)
            self._stages[table] = Stage(table, self._snapshot(table))
        return self._stages[table]

    def _snapshot(self, table: str) -> Snapshot:
        version = self._pins.get(table)
        with self._writer.database.read() as session:
            return read_snapshot(session, table, version)

    # --- what it is going to do -------------------------------------------------------------------

    def create(self, new: NewTable, change: Change) -> None:
        """Stage a table that does not exist yet."""
        self._require_open()
        if new.name in self._stages:
            raise InvalidArgument(
                f"{new.name} is already part of this transaction", argument="table"
            )
        self._require_room(new.name)
        self._keep(Stage(new.name, None, create=new).plus(change))

    def change(self, table: str, change: Change) -> None:
        """Stage one more change to a table."""
        self._keep(self.stage(table).plus(change))

    def note_read(self, table: str, reads: ReadSet) -> None:
        """Record that the transaction depends on rows of a table."""
        stage = self.stage(table)
        self._stages[table] = stage.reading(reads)

    def wrote(self, uris: Iterable[str]) -> None:
        """Record files that exist only for this transaction."""
        self._written.extend(uris)

    def _keep(self, stage: Stage) -> None:
        validate(stage)
        limit = self.limits.max_files_per_table
        if limit is not None and stage.num_files > limit:
            raise TooManyFiles(
                f"{stage.table}: {stage.num_files} files staged, the transaction allows {limit}"
                " a table; raise max_files_per_table or write larger files",
                table=stage.table,
                limit=limit,
                found=stage.num_files,
            )
        self._stages[stage.table] = stage

    # --- how it ends ------------------------------------------------------------------------------

    def commit(self) -> CommitResult:
        """Commit all that is staged. Afterwards the transaction is over, whatever happened.

        On an error nothing is visible, and the files written for it are removed, except when the
        outcome is unknown: the connection was lost at the end, or the wait for it was interrupted.
        """
        try:
            self._require_open()
            commit = self._commit_request()
            self.result = retrying(lambda: self._attempt(commit), self._backoff)
        except BaseException as error:
            if isinstance(error, TxnLogError) and not isinstance(error, CommitOutcomeUnknown):
                self.rollback()
            elif self.state == "open":
                self.state = "unknown"
            raise
        self.state = "committed"
        self._remove_files(self._strays(commit))
        return self.result

    def _attempt(self, commit: Commit) -> CommitResult:
        self._require_open()
        return self._writer.commit(commit, rebase)

    def _strays(self, commit: Commit) -> list[str]:
        """Files that were written and are not part of the commit.

        A write that failed and was caught leaves some; all are, where the id had been committed
        before.
        """
        if not self._written or (self.result and self.result.repeated):
            return self._written
        kept = {
            f"{part.location}/{action.path}"
            for part in commit.tables
            for action in part.actions
            if isinstance(action, Add)
        }
        return [uri for uri in self._written if uri not in kept]

    def _commit_request(self) -> Commit:
        parts = tuple(
            stage.commit(_isolation(stage)) for stage in self._stages.values() if stage.is_live
        )
        if all(part.guard for part in parts):
            raise InvalidArgument(
                "nothing is staged in this transaction: write or stage something before it ends,"
                " or leave it with an exception",
                argument="transaction",
            )
        who = self._provenance
        return Commit(self.id, parts, who.committer, who.message, who.run_id)

    def rollback(self) -> None:
        """End without a trace: no row was written, and the transaction's files are removed."""
        if self.state != "open":
            return
        self.state = "rolled back"
        self._remove_files(self._written)

    def _require_open(self) -> None:
        if self.state != "open":
            raise TransactionClosed(
                f"transaction {self.id} is {self.state}; begin a new one",
                transaction_id=self.id,
                state=self.state,
            )
        limit, elapsed = self.limits.timeout_secs, self._monotonic() - self._began
        if limit is not None and elapsed > limit:
            raise TransactionTimeout(
                f"transaction {self.id} has been open for {elapsed:.1f} s, {limit:g} s are allowed;"
                " raise timeout_secs or do less in one transaction",
                timeout_secs=limit,
                elapsed_secs=elapsed,
            )

    def _require_room(self, table: str) -> None:
        limit = self.limits.max_tables
        if limit is not None and len(self._stages) >= limit:
            raise TooManyTables(
                f"{table} would be table {len(self._stages) + 1} of this transaction, it allows"
                f" {limit}; raise max_tables or split the work",
                limit=limit,
                found=len(self._stages) + 1,
            )


def _isolation(stage: Stage) -> str:
    if stage.base is None:
        return "Serializable"
    return stage.base.metadata.configuration.get(ISOLATION, "WriteSerializable")
