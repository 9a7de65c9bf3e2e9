"""SQLite: a file, many reading processes, one writer at a time.

Nothing else in the process may open the file with another SQLite library: closing either one's
handle would silently drop the locks of both (POSIX).
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from operator import itemgetter
from typing import TYPE_CHECKING, Final

from deltalakedb.errors import (
    CatalogError,
    CatalogFull,
    CatalogLocked,
    CatalogReadOnly,
    CatalogUnavailable,
    InvalidArgument,
    MigrationError,
)
from deltalakedb.sql import faults
from deltalakedb.sql.base import Dialect, Params, Row, Session, Table
from deltalakedb.sql.engine import (
    Engine,
    EngineSession,
    Guard,
    first_value,
    given_columns,
    picked,
)
from deltalakedb.sql.pool import Pool

if TYPE_CHECKING:
    import pyarrow as pa

    from deltalakedb.config import Config
    from deltalakedb.uri import DeltaSqlUri

DIALECT: Final = Dialect(
    name="sqlite",
    types={"bigint": "BIGINT", "boolean": "BOOLEAN", "smallint": "SMALLINT", "text": "TEXT"},
    count_tables="SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = ?",
    clustered=" WITHOUT ROWID",
    sequences=False,
)
_PRAGMAS: Final = (
    "cache_size = -65536",
    "mmap_size = 1073741824",
    "journal_size_limit = 67108864",
)
_MANY: Final = 16
"""Rows from which it pays to look at them first."""

_KINDS: Final = {
    sqlite3.SQLITE_BUSY: (CatalogLocked, "another writer holds the database"),
    sqlite3.SQLITE_LOCKED: (CatalogLocked, "another transaction holds the database"),
    sqlite3.SQLITE_READONLY: (CatalogReadOnly, "the database cannot be written"),
    sqlite3.SQLITE_PERM: (CatalogReadOnly, "the database cannot be written"),
    sqlite3.SQLITE_FULL: (CatalogFull, "there is no space left for the database"),
    sqlite3.SQLITE_CANTOPEN: (
        CatalogUnavailable,
        "the file cannot be opened; its folder must exist, and be writable for the WAL beside it",
    ),
    sqlite3.SQLITE_NOTADB: (CatalogUnavailable, "the file is not a SQLite database"),
    sqlite3.SQLITE_CORRUPT: (CatalogUnavailable, "the file is damaged"),
    sqlite3.SQLITE_IOERR: (CatalogUnavailable, "the file cannot be read or written"),
}


def translate(error: Exception, catalog: str) -> Exception:
    """The error of our tree for one of the driver's."""
    code = getattr(error, "sqlite_errorcode", None)
    if code is None and not isinstance(error, sqlite3.Error):
        return InvalidArgument(f"a value cannot be stored: {error}", argument="value")
    if str(error).startswith("no such table"):
        return MigrationError(f"{catalog} has no schema, or an old one ({error})", catalog=catalog)
    kind, what = _KINDS.get((code or 0) & 0xFF, (CatalogError, "the database refused"))
    return kind(f"{catalog}: {what} ({error})", catalog=catalog)


def _guard(catalog: str) -> Guard:
    return Guard(catalog, (sqlite3.Error, OverflowError, UnicodeEncodeError), translate)


def _connect(catalog: str, path: str, busy_secs: float, synchronous: str) -> sqlite3.Connection:
    with _guard(catalog):
        connection = sqlite3.connect(
            path,
            timeout=busy_secs,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=256,
        )
        try:
            if first_value(connection.execute("PRAGMA journal_mode").fetchone()) == "delete":
                connection.execute("PRAGMA journal_mode = wal")
            for pragma in (f"synchronous = {synchronous}", *_PRAGMAS):
                connection.execute(f"PRAGMA {pragma}")
        except BaseException:
            connection.close()
            raise
        return connection


class SqliteDatabase(Engine[sqlite3.Connection]):
    """A catalog in a SQLite file, or in memory on one connection that sessions take in turn."""

    dialect = DIALECT

    def __init__(self, uri: DeltaSqlUri, config: Config) -> None:
        path = uri.path if uri.in_memory else os.path.abspath(uri.path)
        busy_secs = config.sqlite_busy_timeout_ms / 1000
        pool = Pool(
            str(uri),
            partial(_connect, str(uri), path, busy_secs, config.sqlite_synchronous),
            sqlite3.Connection.close,
            size=1 if uri.in_memory else None,
            timeout_secs=busy_secs,
        )
        super().__init__(uri, pool)
        self.survives_fork = not uri.in_memory

    def _session(self, connection: sqlite3.Connection) -> EngineSession:
        return SqliteSession(connection, _guard(str(self.uri)))

    def stream(
        self, sql: str, params: Params, schema: pa.Schema, *, key: str | None = None
    ) -> pa.RecordBatchReader:
        """See `Database`. In memory the whole answer is taken at once, to free the connection."""
        reader = super().stream(sql, params, schema, key=key)
        return reader.read_all().to_reader() if self.uri.in_memory else reader

    def next_seq(self, session: Session) -> int:
        """See `Database`. The one writer continues after the last number."""
        seq: int = first_value(session.row("SELECT coalesce(max(seq), 0) + 1 FROM dl_transactions"))
        return seq


class SqliteSession(EngineSession):
    """One transaction on one connection."""

    def __init__(self, connection: sqlite3.Connection, guard: Guard) -> None:
        super().__init__(guard)
        self._connection = connection

    def begin(self, *, write: bool) -> None:
        """A writer takes the file's one write lock now; a reader's snapshot starts as it reads."""
        with self.guard:
            self._connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")

    def commit(self, *, write: bool) -> None:
        """See `EngineSession`."""
        with self.guard, faults.inside("inside_commit" if write else "", self.lose_connection):
            self._connection.execute("COMMIT")

    def rollback(self) -> bool:
        """See `EngineSession`."""
        try:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        except sqlite3.Error:
            return False
        return True

    def rows(self, sql: str, params: Params = ()) -> list[Row]:
        """See `Session`."""
        with self.guard:
            return self._connection.execute(sql, params).fetchall()

    def row(self, sql: str, params: Params = ()) -> Row | None:
        """See `Session`."""
        with self.guard:
            cursor = self._connection.execute(sql, params)
            row: Row | None = cursor.fetchone()
            cursor.close()
            return row

    def run(self, sql: str, params: Params = ()) -> int:
        """See `Session`."""
        with self.guard:
            return self._connection.execute(sql, params).rowcount

    def insert(self, table: Table, rows: Sequence[Row]) -> None:
        """See `Session`. Binding None is slow in this driver, so null columns are left out."""
        if not rows:
            return
        if len(rows) < _MANY:
            given, values = None, iter(rows)
        else:
            given = tuple(given_columns(rows))
            values = iter(picked(_in_key_order(table, rows), given))
        with self.guard:
            self._connection.executemany(_insert_sql(table, given), values)

    def batches(
        self, sql: str, params: Params, schema: pa.Schema, key: str | None
    ) -> Iterator[pa.RecordBatch]:
        """See `EngineSession`."""
        from deltalakedb.sql import arrow

        if key is None or not arrow.can_join(schema):
            yield from self._plain_batches(sql, params, schema, key)
            return
        joined = arrow.Joined(
            sql,
            params,
            schema,
            key,
            as_text="{}",
            join=f"CAST(group_concat({{}}, '{arrow.SEPARATOR}') AS BLOB)",
        )
        with ThreadPoolExecutor(1) as ahead:

            def fetch(sql: str, params: Params) -> Callable[[], list[Row]]:
                return ahead.submit(self.rows, sql, params).result

            yield from joined.batches(fetch)

    def _plain_batches(
        self, sql: str, params: Params, schema: pa.Schema, key: str | None
    ) -> Iterator[pa.RecordBatch]:
        from deltalakedb.sql import arrow

        with self.guard:
            text = sql if key is None else arrow.columns_of(sql, schema)
            cursor = self._connection.execute(text, params)
        while True:
            with self.guard:
                rows = cursor.fetchmany(arrow.ROWS)
            if not rows:
                return
            yield arrow.batch_of(rows, schema)


def _in_key_order(table: Table, rows: Sequence[Row]) -> Sequence[Row]:
    """A clustered table's rows as they will lie, so that they are appended rather than sown."""
    if not table.key:
        return rows
    names = [column.name for column in table.columns]
    return sorted(rows, key=itemgetter(*map(names.index, table.key)))


@cache
def _insert_sql(table: Table, given: tuple[int, ...] | None) -> str:
    columns = table.columns if given is None else [table.columns[i] for i in given]
    names = [column.name for column in columns]
    return f"INSERT INTO {table.name} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})"
