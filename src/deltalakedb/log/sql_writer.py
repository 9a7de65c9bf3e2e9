"""Commits as one SQL transaction over the heads of all tables involved.

Order inside the transaction: lock the heads (in table-id order, so that two commits never wait
for each other), look for the transaction id, let the caller's policy rebase what has moved, take
the global order number and after it the time, write the rows and the mirror's ledger, commit. The
id is looked for *after* the heads are locked: if an earlier attempt's COMMIT is still under way on
the server, this one waits for it and then finds it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from deltalakedb.errors import (
    CatalogError,
    CommitOutcomeUnknown,
    ConnectionLost,
    TableAlreadyExists,
    TableDiverged,
    TableNotFound,
    VersionConflict,
)
from deltalakedb.log import rows
from deltalakedb.log.base import (
    Commit,
    CommitResult,
    Head,
    NewTable,
    Rebase,
    TableCommit,
    Winner,
)
from deltalakedb.log.finish import finish
from deltalakedb.log.sql_reader import read_since
from deltalakedb.log.version_rows import Place, Totals, write_version
from deltalakedb.model.actions import Add
from deltalakedb.sql import faults
from deltalakedb.sql import tables as t

if TYPE_CHECKING:
    from deltalakedb.sql.base import Database, Session
    from deltalakedb.times import Clock

_RECONNECT_SECS = (0.0, 0.1, 0.5, 1.0, 2.0)
"""Waits before each attempt of a commit whose connection is lost."""

_LOCK = """
SELECT table_id, version, next_file_id FROM dl_table_heads
 WHERE table_id IN ({ids}) ORDER BY table_id{lock}"""
_STATE = """
SELECT d.name, d.status, v.committed_at, v.metadata_version, v.protocol_version,
       v.num_files, v.size_bytes, v.num_records, v.num_uncounted
  FROM dl_tables d JOIN dl_table_versions v ON v.table_id = d.table_id
 WHERE d.table_id = ? AND v.version = ?"""
"""Asked once the head is locked: who drops a table does it under the same lock."""


def strict(mine: TableCommit, head: Head, winners: Any) -> TableCommit:
    """A `Rebase` that never rebases: compare-and-swap on the head."""
    expected = mine.base.version if mine.base else -1
    raise VersionConflict(
        f"{mine.table} is at version {head.version}, not {expected}",
        table=mine.table,
        expected=expected,
        found=head.version,
    )


class SqlTxnLogWriter:
    """Writes commits of one catalog to its database."""

    def __init__(
        self, database: Database, clock: Clock, *, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self.database = database
        self.clock = clock
        self._sleep = sleep

    def commit(self, commit: Commit, rebase: Rebase = strict) -> CommitResult:
        """Commit everything or nothing; the same id again returns the first result.

        When the connection dies, the commit is simply tried again: its id tells whether the first
        attempt went through. `CommitOutcomeUnknown` means that one was lost at its very end and
        the database did not come back to tell.
        """
        doubt: CatalogError | None = None
        for wait in _RECONNECT_SECS:
            self._sleep(wait)
            at_end = False
            try:
                with self.database.write() as session:
                    result = self._commit(session, commit, rebase)
                    at_end = True
            except CatalogError as error:
                lost = error
                if at_end and isinstance(error, ConnectionLost):
                    doubt = error
                elif doubt is None and not isinstance(error, ConnectionLost):
                    raise
            else:  # what is found after a doubt is most likely our own
                return replace(result, repeated=result.repeated and doubt is None)
        if doubt is None:
            raise lost
        raise CommitOutcomeUnknown(
            f"the connection was lost while committing transaction {commit.transaction_id} and the"
            " database cannot be asked whether it went through; commit the same transaction id"
            " again when it is back, it will happen once",
            transaction_id=commit.transaction_id,
        ) from lost

    def find(self, transaction_id: str) -> CommitResult | None:
        """The result of a transaction that was committed, None if it was not."""
        with self.database.read() as session:
            return _find(session, transaction_id)

    def _commit(self, session: Session, commit: Commit, rebase: Rebase) -> CommitResult:
        places = self._lock(session, commit)
        faults.point("locked")
        if done := _find(session, commit.transaction_id):
            return done
        parts = [
            self._rebased(session, part, place, rebase)
            for part, place in zip(commit.tables, places, strict=True)
        ]
        seq = self.database.next_seq(session)
        now = max([self.clock(), *(p.committed_at + 1 for p in places)])
        versions: dict[str, int] = {}
        for part, place in zip(parts, places, strict=True):
            if part.guard:
                continue
            if part.create is not None:
                _create(session, part.create, place.table_id, now)
            write_version(session, finish(part, place, now, commit, session), place, seq, now)
            faults.point("version_written")
            versions[part.table] = place.version + 1
        result = CommitResult(commit.transaction_id, versions, now)
        session.insert(t.TRANSACTIONS, [_transaction_row(commit, result, seq)])
        return result

    def _lock(self, session: Session, commit: Commit) -> list[Place]:
        """Where each part's version goes, its head locked; new tables get their ids.

        Both locks are held to the end, so an earlier attempt of the same commit is over by now.
        """
        ids = sorted(p.base.table_id for p in commit.tables if p.base is not None)
        heads = self._lock_heads(session, ids) if ids else {}
        return [
            heads[part.base.table_id]
            if part.base is not None
            else Place(part.table, self.database.next_value(session, "table_id"))
            for part in commit.tables
        ]

    def _lock_heads(self, session: Session, ids: list[int]) -> dict[int, Place]:
        sql = _LOCK.format(ids=", ".join("?" * len(ids)), lock=self.database.dialect.lock_rows)
        found: dict[int, Place] = {}
        for table_id, version, next_file_id in session.rows(sql, ids):
            state = session.row(_STATE, (table_id, version))
            assert state is not None, "a head always points to a version"
            found[table_id] = Place(
                state[0],
                table_id,
                Head(version, metadata_version=state[3], protocol_version=state[4]),
                next_file_id,
                status=state[1],
                committed_at=state[2],
                totals=Totals(*state[5:]),
            )
        return found

    def _rebased(
        self, session: Session, part: TableCommit, place: Place, rebase: Rebase
    ) -> TableCommit:
        base = part.base
        if base is None:
            return part
        if place.status == "dropped":
            raise TableNotFound(f"{part.table} was dropped meanwhile", table=part.table)
        if place.status != "active" and not part.guard:
            raise TableDiverged(
                f"{part.table} takes no writes: its status is {place.status}",
                table=part.table,
                reason=place.status,
            )
        if place.version == base.version:
            return part
        return rebase(part, place.head, lambda: read_winners(session, base.table_id, base.version))


def _create(session: Session, new: NewTable, table_id: int, now: int) -> None:
    clash = session.row(
        "SELECT name, location FROM dl_tables WHERE dropped = 0 AND (name = ? OR location = ?)",
        (new.name, new.location),
    )
    if clash:
        what = f"table {clash[0]!r} already exists"
        if clash[0] != new.name:
            what = f"location {new.location} already belongs to table {clash[0]!r}"
        raise TableAlreadyExists(what, table=clash[0], location=clash[1])
    row = (table_id, new.name, new.location, now, "active", rows.to_text(new.properties), 0)
    session.insert(t.TABLES, [row])
    session.insert(t.TABLE_HEADS, [(table_id, -1, 0)])


def _find(session: Session, transaction_id: str) -> CommitResult | None:
    row = session.row(
        "SELECT txn_id, result, committed_at FROM dl_transactions WHERE txn_id = ?",
        (transaction_id,),
    )
    return CommitResult(row[0], rows.from_text(row[1]), row[2], repeated=True) if row else None


def _transaction_row(commit: Commit, result: CommitResult, seq: int) -> tuple[Any, ...]:
    return (
        seq,
        commit.transaction_id,
        result.timestamp,
        commit.committer,
        commit.message,
        commit.run_id,
        rows.to_text(result.versions),
    )


def read_winners(session: Session, table_id: int, after: int) -> Sequence[Winner]:
    """The commits after a version, oldest first, as far as a conflict check needs them."""
    after_version = (table_id, after)
    found = session.rows(
        "SELECT version, operation, is_blind_append FROM dl_table_versions"
        " WHERE table_id = ? AND version > ? ORDER BY version",
        after_version,
    )
    by_kind = {
        kind: read_since(session, kind, table_id, after)
        for kind in ("add", "metadata", "protocol", "txn", "domain")
    }
    kept = {
        (version, add.path, add.dv_id)
        for version, adds in by_kind["add"].items()
        for add in adds
        if not add.data_change
    }
    removed: dict[int, list[Add]] = {}
    sql = (
        f"SELECT removed_version, {rows.ADD} FROM dl_add_files"
        " WHERE table_id = ? AND removed_version > ?"
    )
    for version, *row in session.rows(sql, after_version):
        file = rows.add_from(row)
        if (version, file.path, file.dv_id) not in kept:  # added again, say with other statistics
            removed.setdefault(version, []).append(file)
    return [
        Winner(
            version=version,
            operation=operation,
            is_blind_append=bool(blind),
            adds=by_kind["add"].get(version, ()),
            removes=removed.get(version, ()),
            metadata=next(iter(by_kind["metadata"].get(version, ())), None),
            protocol=next(iter(by_kind["protocol"].get(version, ())), None),
            txns=by_kind["txn"].get(version, ()),
            domains=by_kind["domain"].get(version, ()),
        )
        for version, operation, blind in found
    ]
