"""The tables of a catalog: names, locations, states."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from deltalakedb.errors import TableAlreadyExists, TableNotFound, VersionNotFound
from deltalakedb.log import rows
from deltalakedb.log.base import CommitRecord
from deltalakedb.log.sql_reader import HISTORY, history_from, require_table

if TYPE_CHECKING:
    from deltalakedb.sql.base import Database, Session

_TABLES = """
SELECT t.table_id, t.name, t.location, t.created_at, t.status, t.properties, h.version
  FROM dl_tables t JOIN dl_table_heads h ON h.table_id = t.table_id
 WHERE t.dropped = 0"""


@dataclass(frozen=True)
class TableEntry:
    """A table of the catalog, without its metadata."""

    table_id: int
    name: str
    location: str
    created_at: int
    status: str
    properties: Mapping[str, str]
    version: int


def _entry(row: tuple[Any, ...]) -> TableEntry:
    table_id, name, location, created_at, status, properties, version = row
    found = rows.from_text(properties) or {}
    return TableEntry(table_id, name, location, created_at, status, found, version)


class Registry:
    """The catalog's list of tables, and the transactions over them."""

    def __init__(self, database: Database) -> None:
        self.database = database

    def tables(self) -> list[TableEntry]:
        """All tables, by name, at one moment."""
        with self.database.read() as session:
            return [_entry(row) for row in session.rows(_TABLES + " ORDER BY t.name")]

    def find(self, name: str) -> TableEntry | None:
        """The table of that name, if there is one."""
        with self.database.read() as session:
            row = session.row(_TABLES + " AND t.name = ?", (name,))
        return _entry(row) if row else None

    def heads(self) -> dict[str, int]:
        """The version of every table at one moment."""
        return {entry.name: entry.version for entry in self.tables()}

    def rename(self, name: str, new_name: str) -> None:
        """Give a table another name. Nothing else of it changes."""
        with self.database.write() as session:
            table_id = self._lock(session, name)
            if session.row(_TABLES + " AND t.name = ?", (new_name,)):
                raise TableAlreadyExists(
                    f"table {new_name!r} already exists", table=new_name, location=None
                )
            session.run("UPDATE dl_tables SET name = ? WHERE table_id = ?", (new_name, table_id))

    def drop(self, name: str) -> None:
        """Take a table out of the catalog. Its files and its history's rows stay."""
        with self.database.write() as session:
            table_id = self._lock(session, name)
            session.run(
                "UPDATE dl_tables SET dropped = ?, status = ? WHERE table_id = ?",
                (table_id, "dropped", table_id),
            )

    def _lock(self, session: Session, name: str) -> int:
        """The table's id, with its head locked against commits."""
        table_id: int = require_table(session, name)[0]
        lock = self.database.dialect.lock_rows
        session.rows(f"SELECT version FROM dl_table_heads WHERE table_id = ?{lock}", (table_id,))
        row = session.row("SELECT name, dropped FROM dl_tables WHERE table_id = ?", (table_id,))
        if row is None or row != (name, 0):
            raise TableNotFound(f"{name!r} was dropped or renamed meanwhile", table=name)
        return table_id

    def transactions(self, limit: int | None = None) -> list[CommitRecord]:
        """Every commit of every table, newest first."""
        sql = HISTORY + " ORDER BY v.seq DESC, t.name"
        params: tuple[Any, ...] = ()
        if limit is not None:
            sql += " LIMIT ?"
            params = (limit,)
        with self.database.read() as session:
            return [history_from(row) for row in session.rows(sql, params)]

    def seq_of(self, transaction_id: str) -> int:
        """The place of a transaction in the catalog's order, once all before it are settled."""
        with self.database.read() as session:
            row = session.row("SELECT seq FROM dl_transactions WHERE txn_id = ?", (transaction_id,))
        if row is None:
            raise VersionNotFound(
                f"no transaction {transaction_id!r} in this catalog", transaction_id=transaction_id
            )
        self.database.settle()
        seq: int = row[0]
        return seq

    def versions_at(self, *, seq: int | None, timestamp: int | None) -> dict[str, int]:
        """The version of every table as of a transaction or a moment, where it existed."""
        column, value = ("seq", seq) if seq is not None else ("committed_at", timestamp)
        sql = (
            "SELECT t.name, max(v.version) FROM dl_tables t"
            " JOIN dl_table_versions v ON v.table_id = t.table_id"
            f" WHERE t.dropped = 0 AND v.{column} <= ? GROUP BY t.name ORDER BY t.name"
        )
        with self.database.read() as session:
            return dict(session.rows(sql, (value,)))
