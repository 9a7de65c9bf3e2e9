"""DuckDB: a file for one process, with as many threads as it likes; one of them writes at a time.

There are no secondary indexes, nor keys on tables with a row for each file: zone maps find what is
looked for, and an index would cost every write. The writers' lock keeps such keys unique.
"""

from __future__ import annotations

import os
import threading
import uuid
from collections.abc import Iterator, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final

from deltalakedb.errors import (
    CatalogError,
    CatalogFull,
    CatalogLocked,
    CatalogReadOnly,
    CatalogUnavailable,
    InvalidArgument,
    MigrationError,
)
from deltalakedb.extras import require
from deltalakedb.sql import faults
from deltalakedb.sql.base import Dialect, Params, Row, Session, Table
from deltalakedb.sql.engine import Engine, EngineSession, Guard, first_value, given_columns
from deltalakedb.sql.pool import Pool
from deltalakedb.uri import redact

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

    from deltalakedb.uri import DeltaSqlUri
else:
    duckdb = require("duckdb", "duckdb")

DIALECT: Final = Dialect(
    name="duckdb",
    types={"bigint": "BIGINT", "boolean": "BOOLEAN", "smallint": "SMALLINT", "text": "TEXT"},
    count_tables="SELECT count(*) FROM duckdb_tables() WHERE table_name = ?",
    indexes=False,
)
_MANY: Final = 40
"""Rows from which Arrow is faster than parameters."""
_CHUNK: Final = 4 * 122_880  # whole row groups

_writers: dict[str, threading.Lock] = {}
"""One lock for each file, however many databases of this process are open on it."""

_BY_TEXT: Final = (
    (
        "Could not set lock",
        CatalogLocked,
        "another process has it open, and DuckDB allows one process that writes: close it there,"  # noqa: ISC004
        " or keep the catalog in Postgres or SQLite, which take many",
    ),
    ("onflict", CatalogLocked, "another transaction changed the same rows"),
    ("read-only mode", CatalogReadOnly, "the database cannot be written"),
    ("Permission denied", CatalogReadOnly, "the file cannot be written"),
    ("Read-only file system", CatalogReadOnly, "the file cannot be written"),
    ("No space left", CatalogFull, "there is no space left for the database"),
    ("File too large", CatalogFull, "there is no space left for the database"),
    ("not a valid DuckDB", CatalogUnavailable, "the file is not a DuckDB database"),
    ("IO Error", CatalogUnavailable, "the file cannot be read or written"),
    ("Connection Error", CatalogUnavailable, "the connection is closed"),
    ("FATAL Error", CatalogUnavailable, "the database gave up and must be opened again"),
)


def translate(error: Exception, catalog: str) -> Exception:
    """The error of our tree for one of the driver's, which differ mostly by their text."""
    text = redact(str(error))
    if text.startswith("Catalog Error: Table") and "does not exist" in text:
        return MigrationError(f"{catalog} has no schema, or an old one ({text})", catalog=catalog)
    if text.startswith("Conversion Error") or not isinstance(error, duckdb.Error):
        return InvalidArgument(f"a value cannot be stored: {text}", argument="value")
    found = (entry for entry in _BY_TEXT if entry[0] in text)
    _, kind, what = next(found, ("", CatalogError, "the database refused"))
    return kind(f"{catalog}: {what} ({text})", catalog=catalog)


def _guard(catalog: str) -> Guard:
    return Guard(catalog, (duckdb.Error, RuntimeError, UnicodeError, OverflowError), translate)


def _connect(catalog: str, path: str) -> duckdb.DuckDBPyConnection:
    with _guard(catalog):
        read_only = os.path.exists(path) and not os.access(path, os.W_OK)
        return duckdb.connect(path, read_only=read_only)


class DuckDbDatabase(Engine["duckdb.DuckDBPyConnection"]):
    """A catalog in a DuckDB file, or in memory. All connections share one instance of it."""

    dialect = DIALECT
    survives_fork = False

    def __init__(self, uri: DeltaSqlUri) -> None:
        path = f":memory:{uuid.uuid4()}" if uri.in_memory else os.path.realpath(uri.path)
        pool = Pool(str(uri), partial(_connect, str(uri), path), duckdb.DuckDBPyConnection.close)
        if not uri.in_memory:
            pool.writing = _writers.setdefault(path, pool.writing)
        super().__init__(uri, pool)

    def _session(self, connection: duckdb.DuckDBPyConnection) -> EngineSession:
        return DuckDbSession(connection, _guard(str(self.uri)))

    def next_seq(self, session: Session) -> int:
        """See `Database`."""
        seq: int = first_value(session.row("SELECT nextval('dl_commit_order')"))
        return seq


class DuckDbSession(EngineSession):
    """One transaction on one connection."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, guard: Guard) -> None:
        super().__init__(guard)
        self._connection = connection

    def begin(self, *, write: bool) -> None:
        """See `EngineSession`."""
        with self.guard:
            self._connection.execute("BEGIN")

    def commit(self, *, write: bool) -> None:
        """See `EngineSession`."""
        with self.guard, faults.inside("inside_commit" if write else "", self.lose_connection):
            self._connection.execute("COMMIT")

    def rollback(self) -> bool:
        """See `EngineSession`."""
        try:
            self._connection.execute("ROLLBACK")
        except duckdb.Error as error:
            return "no transaction is active" in str(error)
        return True

    def rows(self, sql: str, params: Params = ()) -> list[Row]:
        """See `Session`."""
        with self.guard:
            return self._connection.execute(sql, params).fetchall()

    def row(self, sql: str, params: Params = ()) -> Row | None:
        """See `Session`."""
        with self.guard:
            return self._connection.execute(sql, params).fetchone()

    def run(self, sql: str, params: Params = ()) -> int:
        """See `Session`. The count is the only row of the answer, where there is one."""
        row = self.row(sql, params)
        return int(row[0]) if row and isinstance(row[0], int) else 0

    def send(self, sql: str, params: Params = ()) -> None:
        """See `Session`."""
        with self.guard:
            self._connection.execute(sql, params)

    def insert(self, table: Table, rows: Sequence[Row]) -> None:
        """See `Session`."""
        if not rows:
            return
        given = tuple(given_columns(rows))
        if len(rows) < _MANY:
            values = [row[i] for row in rows for i in given]
            self.send(_insert_values(table, given, len(rows)), values)
            return
        for start in range(0, len(rows), _CHUNK):
            self._insert_arrow(table, given, rows[start : start + _CHUNK])

    def _insert_arrow(self, table: Table, given: tuple[int, ...], rows: Sequence[Row]) -> None:
        import pyarrow as pa

        columns = [table.columns[i] for i in given]
        names = [column.name for column in columns]
        listed = ", ".join(names)
        with self.guard:
            arrays = [
                pa.array([row[i] for row in rows], _arrow_type(column.type))
                for i, column in zip(given, columns, strict=True)
            ]
            self._connection.register("dl_new_rows", pa.table(arrays, names=names))
            try:
                self._connection.execute(
                    f"INSERT INTO {table.name} ({listed}) SELECT {listed} FROM dl_new_rows"
                )
            finally:
                self._connection.unregister("dl_new_rows")

    def batches(
        self, sql: str, params: Params, schema: pa.Schema, key: str | None
    ) -> Iterator[pa.RecordBatch]:
        """See `EngineSession`. The engine is columnar itself and needs no help from a key."""
        from deltalakedb.sql import arrow

        with self.guard:
            text = sql if key is None else arrow.columns_of(sql, schema)
            reader = self._connection.execute(text, params).to_arrow_reader(arrow.ROWS)
        while True:
            with self.guard:
                batch = next(reader, None)
            if batch is None:
                return
            yield batch if batch.schema.equals(schema) else batch.cast(schema)


@cache
def _insert_values(table: Table, given: tuple[int, ...], count: int) -> str:
    names = ", ".join(table.columns[i].name for i in given)
    row = f"({', '.join('?' * len(given))})"
    return f"INSERT INTO {table.name} ({names}) VALUES {', '.join([row] * count)}"


@cache
def _arrow_type(kind: str) -> Any:
    import pyarrow as pa

    types = {"bigint": pa.int64, "boolean": pa.bool_, "smallint": pa.int16, "text": pa.string}
    return types[kind]()
