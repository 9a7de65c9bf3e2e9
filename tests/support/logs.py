"""A catalog's log without tables on top: actions in, snapshots and files out."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from typing import Any, Self

from deltalakedb.config import Config
from deltalakedb.log import rows
from deltalakedb.log.base import Commit, CommitResult, NewTable, Rebase, Snapshot, TableCommit
from deltalakedb.log.registry import Registry
from deltalakedb.log.sql_reader import SqlTxnLogReader
from deltalakedb.log.sql_writer import SqlTxnLogWriter
from deltalakedb.model.actions import Action, Add
from deltalakedb.model.expr import Expr
from deltalakedb.sql import connect
from deltalakedb.times import Clock
from deltalakedb.txn.conflict import rebase as by_the_rules
from deltalakedb.uri import parse
from support.actions import PROTOCOL, metadata
from support.catalogs import Clock as StandingClock

_COLUMNS = tuple(c.strip() for c in rows.ADD.split(",") if c.strip() != "extra")


class Log:
    """The log of a catalog. Its clock stands still unless another one is given."""

    def __init__(self, uri: str, clock: Clock | None = None) -> None:
        self.uri = uri
        self.clock = clock or StandingClock()
        self.database = connect(parse(uri), Config(sqlite_synchronous="normal"))
        self.writer = SqlTxnLogWriter(self.database, self.clock, sleep=lambda _: None)
        self.registry = Registry(self.database)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.database.close()

    # --- writing ----------------------------------------------------------------------------------

    def create(self, *names: str, actions: Iterable[Action] = (PROTOCOL, metadata())) -> None:
        """Tables of these first actions."""
        made = [
            TableCommit(tuple(actions), "CREATE TABLE", create=NewTable(name, f"file:///{name}"))
            for name in names
        ]
        self.submit(*made)

    def part(self, table: str, *actions: Action, **more: Any) -> TableCommit:
        """A table's part of a commit, decided on its latest version."""
        values = {"operation": "WRITE", "base": self.snapshot(table)} | more
        return TableCommit(tuple(actions), **values)

    def submit(
        self,
        *parts: TableCommit,
        transaction_id: str | None = None,
        rebase: Rebase = by_the_rules,
        **more: Any,
    ) -> CommitResult:
        """Commit the parts as one transaction."""
        commit = Commit(transaction_id or str(uuid.uuid4()), parts, **more)
        return self.writer.commit(commit, rebase)

    def commit(self, table: str, *actions: Action, **more: Any) -> CommitResult:
        """Commit to one table."""
        return self.submit(self.part(table, *actions, **more))

    # --- reading ----------------------------------------------------------------------------------

    def reader(self, table: str) -> SqlTxnLogReader:
        """Reads the table's log."""
        return SqlTxnLogReader(self.database, table)

    def snapshot(self, table: str, version: int | None = None) -> Snapshot:
        """A version of the table."""
        return self.reader(table).snapshot(version)

    def files(self, table: str, version: int | None = None, where: Expr | None = None) -> list[Add]:
        """Live files as they were added, but for fields this build does not know."""
        reader = self.reader(table)
        found = reader.files(reader.snapshot(version), where, _COLUMNS).read_all()
        listed = zip(*(column.to_pylist() for column in found.columns), strict=True)
        return [rows.add_from((*row, None)) for row in listed]

    def paths(self, table: str, version: int | None = None, where: Expr | None = None) -> list[str]:
        """Paths of live files, sorted."""
        return sorted(file.path for file in self.files(table, version, where))

    def rows(self, sql: str, params: Iterable[Any] = ()) -> list[tuple[Any, ...]]:
        """What the database itself says."""
        with self.database.read() as session:
            return session.rows(sql, tuple(params))

    def counts(self) -> Mapping[str, int]:
        """Rows in every table of the schema that a commit writes to."""
        from support.catalogs import DATABASE

        return {t.name: self.rows(f"SELECT count(*) FROM {t.name}")[0][0] for t in DATABASE}
