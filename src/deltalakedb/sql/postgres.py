"""Postgres: many processes, and commits to different tables run in parallel.

Every transaction runs in the protocol's pipeline mode. Writes are not waited for one by one: they
travel with the next statement that has an answer, the last of them with COMMIT.
"""

from __future__ import annotations

import hashlib
import os
import re
import select
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from functools import cache, lru_cache, partial
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from deltalakedb.errors import (
    CatalogError,
    CatalogFull,
    CatalogLocked,
    CatalogReadOnly,
    CatalogUnavailable,
    ConnectionLost,
    InvalidArgument,
    MigrationError,
)
from deltalakedb.extras import require
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
from deltalakedb.sql.pool import PATIENCE_SECS, Pool
from deltalakedb.uri import redact

if TYPE_CHECKING:
    import psycopg
    import pyarrow as pa
    from psycopg.types.numeric import Int8BinaryDumper

    from deltalakedb.uri import DeltaSqlUri
else:
    psycopg = require("psycopg", "postgres")
    Int8BinaryDumper = psycopg.types.numeric.Int8BinaryDumper

DIALECT: Final = Dialect(
    name="postgres",
    types={
        "bigint": "bigint",
        "boolean": "boolean",
        "smallint": "smallint",
        "text": 'text COLLATE "C"',
    },
    count_tables="SELECT count(*) FROM pg_tables"
    " WHERE schemaname = current_schema() AND tablename = ?",
    lock_rows=" FOR UPDATE",
    # Without these the planner expects many rows of an overlap, and reads both tables whole.
    among="{} = ANY(ARRAY({}))",
    each="CROSS JOIN LATERAL (SELECT * FROM {} s WHERE {} OFFSET 0) s",
    binary_text=' COLLATE "C"',
)
_COPY_TYPES: Final = {"bigint": "int8", "boolean": "bool", "smallint": "int2", "text": "text"}
_MANY: Final = 50
"""Rows from which COPY is faster than statements."""
_A_LOT: Final = 50_000
"""Rows after which the planner must not go by what it knew before them."""
_POOL_SIZE: Final = 10
_CONNECT_SECS: Final = 10

_BEGIN: Final = {
    True: "BEGIN ISOLATION LEVEL READ COMMITTED",
    False: "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
}
_BY_STATE: Final = (
    ("08", ConnectionLost, "the connection was lost"),
    ("57P0", ConnectionLost, "the server ended the connection"),
    ("22", InvalidArgument, "a value cannot be stored"),
    ("40", CatalogLocked, "another transaction was in the way"),
    ("55P03", CatalogLocked, "another transaction holds the rows"),
    ("25006", CatalogReadOnly, "the database cannot be written"),
    ("42501", CatalogReadOnly, "the user has no right to do this"),
    ("53100", CatalogFull, "there is no space left on the server"),
    ("57014", CatalogUnavailable, "the statement took longer than statement_timeout"),
    ("42P01", MigrationError, "it has no schema, or an old one"),
    ("3F000", MigrationError, "it has no schema, or an old one"),
)


def translate(error: Exception, catalog: str) -> Exception:
    """The error of our tree for one of the driver's. Without a state it is the driver's own."""
    text = redact(str(error).strip())
    state = error.sqlstate if isinstance(error, psycopg.Error) else None
    if state is None:
        if isinstance(error, psycopg.DataError | ValueError | OverflowError):
            return InvalidArgument(f"a value cannot be stored: {text}", argument="value")
        lost = isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
        return (ConnectionLost if lost else CatalogError)(f"{catalog}: {text}", catalog=catalog)
    found = (entry for entry in _BY_STATE if state.startswith(entry[0]))
    _, kind, what = next(found, ("", CatalogError, "the database refused"))
    return kind(f"{catalog}: {what} ({text})", catalog=catalog)


def _unreachable(error: Exception, catalog: str) -> Exception:
    return CatalogUnavailable(f"{catalog}: {redact(str(error).strip())}", catalog=catalog)


def _connect(catalog: str, conninfo: dict[str, Any]) -> psycopg.Connection[Row]:
    with Guard(catalog, (psycopg.Error,), _unreachable):
        connection = psycopg.connect(autocommit=True, **conninfo)
    # One size of integer: a statement is then prepared once, whatever numbers it is given.
    connection.adapters.register_dumper(int, Int8BinaryDumper)
    return connection


class PostgresDatabase(Engine["psycopg.Connection[Row]"]):
    """A catalog in a schema of a Postgres server."""

    dialect = DIALECT
    one_writer = False

    def __init__(self, uri: DeltaSqlUri) -> None:
        digest = hashlib.blake2b(f"deltalakedb {uri.schema}".encode(), digest_size=8).digest()
        self._order_lock = int.from_bytes(digest, signed=True)
        pool = Pool(
            str(uri),
            partial(_connect, str(uri), _conninfo(uri)),
            psycopg.Connection.close,
            usable=_usable,
            size=uri.options.pool_size or _POOL_SIZE,
            timeout_secs=uri.options.pool_timeout or PATIENCE_SECS,
        )
        super().__init__(uri, pool)

    def _session(self, connection: psycopg.Connection[Row]) -> EngineSession:
        kinds = (psycopg.Error, UnicodeEncodeError, OverflowError)
        return PostgresSession(connection, Guard(str(self.uri), kinds, translate))

    def next_seq(self, session: Session) -> int:
        """See `Database`. The shared lock tells `settle` that a number is not yet decided."""
        session.send("SELECT pg_advisory_xact_lock_shared(?)", (self._order_lock,))
        seq: int = first_value(session.row("SELECT nextval('dl_commit_order')"))
        return seq

    def settle(self) -> None:
        """See `Database`."""
        with self.read() as session:
            session.row("SELECT pg_advisory_xact_lock(?)", (self._order_lock,))

    def lock_schema(self, session: Session) -> None:
        """See `Database`. Waits for commits under way, and makes the Postgres schema."""
        session.send("SELECT pg_advisory_xact_lock(?)", (self._order_lock,))
        known = "SELECT 1 FROM pg_namespace WHERE nspname = ?"
        if session.row(known, (self.uri.schema,)) is None:
            session.send(f"CREATE SCHEMA {_quoted(self.uri.schema)}")


class PostgresSession(EngineSession):
    """One transaction on one connection."""

    def __init__(self, connection: psycopg.Connection[Row], guard: Guard) -> None:
        super().__init__(guard)
        self._connection = connection
        self._pipeline: AbstractContextManager[Any] | None = None
        self._numbers = count(1)

    def _start(
        self, sql: str, params: Params, *, binary: bool = False, prepare: bool | None = None
    ) -> psycopg.Cursor[Row]:
        """Put a statement in the pipeline. Fetching from the cursor waits for its answer."""
        if self._pipeline is None:
            self._pipeline = self._connection.pipeline()
            self._pipeline.__enter__()
        return self._connection.execute(_with_percents(sql), params, binary=binary, prepare=prepare)

    def _leave_pipeline(self) -> None:
        """Wait for everything that is under way; the first error among it is raised."""
        pipeline, self._pipeline = self._pipeline, None
        if pipeline is not None:
            pipeline.__exit__(None, None, None)

    def begin(self, *, write: bool) -> None:
        """See `EngineSession`. It travels with the first statement."""
        with self.guard:
            self._start(_BEGIN[write], ())

    def commit(self, *, write: bool) -> None:
        """See `EngineSession`."""
        with self.guard:
            done = self._start("COMMIT", ())
            if write and (action := faults.strikes("inside_commit")):
                self._connection.pgconn.pipeline_sync()
                faults.act("inside_commit", action, self.lose_connection)
            self._leave_pipeline()
        if done.statusmessage != "COMMIT":  # what Postgres answers if a statement had failed
            raise CatalogError(
                f"{self.guard.catalog}: rolled back, because one of the statements had failed",
                catalog=self.guard.catalog,
            )

    def rollback(self) -> bool:
        """See `EngineSession`."""
        # The error that brought us here, or its consequence; a pipeline that was cut in the
        # middle loses count of its answers, and says so with an IndexError.
        with suppress(psycopg.Error, IndexError):
            self._leave_pipeline()
        try:
            self._connection.rollback()
        except psycopg.Error:
            return False
        return not self._connection.closed

    def lose_connection(self) -> None:
        """See `EngineSession`."""
        with socket.socket(fileno=os.dup(self._connection.pgconn.socket)) as shared:
            shared.shutdown(socket.SHUT_RDWR)

    def rows(self, sql: str, params: Params = ()) -> list[Row]:
        """See `Session`."""
        with self.guard:
            return self._start(sql, params).fetchall()

    def row(self, sql: str, params: Params = ()) -> Row | None:
        """See `Session`."""
        with self.guard:
            return self._start(sql, params).fetchone()

    def run(self, sql: str, params: Params = ()) -> int:
        """See `Session`."""
        with self.guard:
            cursor = self._start(sql, params)
            self._leave_pipeline()
            return cursor.rowcount

    def send(self, sql: str, params: Params = ()) -> None:
        """See `Session`."""
        with self.guard:
            self._start(sql, params)

    def insert(self, table: Table, rows: Sequence[Row]) -> None:
        """See `Session`."""
        if not rows:
            return
        given = tuple(given_columns(rows))
        if len(rows) >= _MANY:
            with self.guard:
                self._copy(table, given, rows)
            return
        sql = _insert_sql(table, given)
        for row in picked(rows, given):
            self.send(sql, row)

    def _copy(self, table: Table, given: tuple[int, ...], rows: Sequence[Row]) -> None:
        columns = [table.columns[i] for i in given]
        names = ", ".join(column.name for column in columns)
        self._leave_pipeline()
        with (
            self._connection.cursor() as cursor,
            cursor.copy(f"COPY {table.name} ({names}) FROM STDIN (FORMAT BINARY)") as copy,
        ):
            copy.set_types([_COPY_TYPES[column.type] for column in columns])
            for row in picked(rows, given):
                copy.write_row(row)
        if len(rows) >= _A_LOT:
            self._start(f"ANALYZE {table.name}", ())

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
            as_text="{}::text",
            join=f"convert_to(string_agg({{}}, '{arrow.SEPARATOR}'), 'UTF8')",
        )
        yield from joined.batches(self._fetching)

    def _fetching(
        self, sql: str, params: Params = (), *, prepare: bool | None = None
    ) -> Callable[[], list[Row]]:
        with self.guard:
            cursor = self._start(sql, params, binary=True, prepare=prepare)

        def wait() -> list[Row]:
            with self.guard:
                return cursor.fetchall()

        return wait

    def _plain_batches(
        self, sql: str, params: Params, schema: pa.Schema, key: str | None
    ) -> Iterator[pa.RecordBatch]:
        from deltalakedb.sql import arrow

        text = sql if key is None else arrow.columns_of(sql, schema)
        cursor = f"dl_rows_{next(self._numbers)}"
        # A prepared FETCH would insist on the columns that a cursor of this name had before.
        more = partial(self._fetching, f"FETCH {arrow.ROWS} FROM {cursor}", prepare=False)
        self.send(f"DECLARE {cursor} NO SCROLL CURSOR FOR {text}", params)
        ahead = more()
        while True:
            rows = ahead()
            if len(rows) < arrow.ROWS:
                self.send(f"CLOSE {cursor}")
                yield arrow.batch_of(rows, schema)
                return
            ahead = more()
            yield arrow.batch_of(rows, schema)


@lru_cache(maxsize=1024)
def _with_percents(sql: str) -> str:
    return sql.replace("%", "%%").replace("?", "%s")


@cache
def _insert_sql(table: Table, given: tuple[int, ...]) -> str:
    names = [table.columns[i].name for i in given]
    return f"INSERT INTO {table.name} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _conninfo(uri: DeltaSqlUri) -> dict[str, Any]:
    """For libpq: the URI's own settings, and the schema as the only place for names."""
    path = re.sub(r"([\\\s])", r"\\\1", _quoted(uri.schema))
    known: dict[str, Any] = {
        "connect_timeout": _CONNECT_SECS,
        "client_encoding": "utf8",
        "fallback_application_name": "deltalakedb",
        **uri.conninfo(),
    }
    # Cursors are read to their end, so a plan that is quick to start is not what they need.
    own = f"-c search_path={path} -c cursor_tuple_fraction=1"
    known["options"] = f"{known.get('options', '')} {own}".strip()
    return known


def _usable(connection: psycopg.Connection[Row]) -> bool:
    """Whether an idle connection still stands, found out without asking the server.

    A server that goes away closes its end, and then there is something to read.
    """
    if connection.closed:
        return False
    poll = select.poll()
    poll.register(connection.pgconn.socket, select.POLLIN)
    return not poll.poll(0)
