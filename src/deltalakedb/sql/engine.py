"""What the databases have in common: guarded driver calls, and transactions."""

from __future__ import annotations

import os
import time
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from operator import itemgetter
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar

from deltalakedb.errors import (
    CatalogError,
    CatalogLocked,
    CatalogReadOnly,
    ConnectionLost,
)
from deltalakedb.sql import faults
from deltalakedb.sql.base import Dialect, Params, Row, Session, Table
from deltalakedb.sql.pool import Pool, leave_alone

if TYPE_CHECKING:
    import pyarrow as pa

    from deltalakedb.uri import DeltaSqlUri

C = TypeVar("C")


class Guard:
    """Around every call of a driver: its errors become ours, and a forked child makes none."""

    __slots__ = ("_kinds", "_pid", "_translate", "catalog")

    def __init__(
        self,
        catalog: str,
        kinds: tuple[type[Exception], ...],
        translate: Callable[[Exception, str], Exception],
    ) -> None:
        self.catalog = catalog
        self._kinds = kinds
        self._translate = translate
        self._pid = os.getpid()

    @property
    def foreign(self) -> bool:
        """Whether this is a process that the connection does not belong to."""
        return os.getpid() != self._pid

    def __enter__(self) -> Self:
        if self.foreign:
            raise CatalogError(
                f"{self.catalog}: this transaction belongs to the parent process;"
                " begin a new one after the fork",
                catalog=self.catalog,
            )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if isinstance(error, self._kinds):
            raise self._translate(error, self.catalog) from error


class EngineSession(ABC):
    """A `Session`, with the steps of its transaction."""

    def __init__(self, guard: Guard) -> None:
        self.guard = guard

    @abstractmethod
    def begin(self, *, write: bool) -> None:
        """Start the transaction."""

    @abstractmethod
    def commit(self, *, write: bool) -> None:
        """End it. A write passes the fault point ``inside_commit``."""

    @abstractmethod
    def rollback(self) -> bool:
        """End it without a trace. False if the connection cannot be used again."""

    def lose_connection(self) -> None:
        """For fault injection: break the connection. A file has none, so who retries sees this."""
        raise ConnectionLost("a fault was injected", catalog=self.guard.catalog)

    @abstractmethod
    def rows(self, sql: str, params: Params = ()) -> list[Row]:
        """See `Session`."""

    @abstractmethod
    def row(self, sql: str, params: Params = ()) -> Row | None:
        """See `Session`."""

    @abstractmethod
    def run(self, sql: str, params: Params = ()) -> int:
        """See `Session`."""

    def send(self, sql: str, params: Params = ()) -> None:
        """See `Session`."""
        self.run(sql, params)

    @abstractmethod
    def insert(self, table: Table, rows: Sequence[Row]) -> None:
        """See `Session`."""

    @abstractmethod
    def batches(
        self, sql: str, params: Params, schema: pa.Schema, key: str | None
    ) -> Iterator[pa.RecordBatch]:
        """The batches of `arrow`."""

    def arrow(
        self, sql: str, params: Params, schema: pa.Schema, *, key: str | None = None
    ) -> pa.RecordBatchReader:
        """See `Session`."""
        import pyarrow as pa

        return pa.RecordBatchReader.from_batches(schema, self.batches(sql, params, schema, key))


class Engine(ABC, Generic[C]):
    """A `Database` on top of a pool of connections."""

    dialect: Dialect
    one_writer: ClassVar[bool] = True
    """Whether writers of this process queue up before they reach the engine."""

    survives_fork: bool = True

    def __init__(self, uri: DeltaSqlUri, pool: Pool[C]) -> None:
        self.uri = uri
        self._pool = pool
        self._closing = weakref.finalize(self, pool.close)

    @abstractmethod
    def _session(self, connection: C) -> EngineSession:
        """A session on a connection that has none."""

    @property
    def alive(self) -> bool:
        """See `Database`."""
        return not self._pool.closed and (self.survives_fork or os.getpid() == self._pool.pid)

    def close(self) -> None:
        """See `Database`."""
        self._closing()

    def read(self) -> AbstractContextManager[Session]:
        """See `Database`."""
        return self._transaction(write=False)

    def write(self) -> AbstractContextManager[Session]:
        """See `Database`."""
        return self._transaction(write=True)

    @contextmanager
    def _transaction(self, *, write: bool) -> Iterator[EngineSession]:
        if not self.survives_fork and os.getpid() != self._pool.pid:
            raise CatalogLocked(
                f"{self.uri} belongs to the parent process and cannot be used after a fork; open it"
                " in the child alone, or use Postgres or a SQLite file to share a catalog",
                catalog=str(self.uri),
            )
        connection = self._pool.take()
        session, usable = self._session(connection), False
        try:
            with self._turn() if write and self.one_writer else nullcontext():
                try:
                    session.begin(write=write)
                    if write:
                        faults.point("begin", session.lose_connection)
                    yield session
                    if write:
                        faults.point("before_commit", session.lose_connection)
                    session.commit(write=write)
                    usable = True
                except BaseException:
                    usable = not session.guard.foreign and session.rollback()
                    raise
            if write:
                faults.point("after_commit", session.lose_connection)
        finally:
            if session.guard.foreign:
                leave_alone(session)
            else:
                self._pool.give(connection, broken=not usable)

    @contextmanager
    def _turn(self) -> Iterator[None]:
        began, lock = time.monotonic(), self._pool.writing
        if not lock.acquire(timeout=self._pool.timeout_secs):
            raise CatalogLocked(
                f"{self.uri}: another thread has been writing for {time.monotonic() - began:.0f} s",
                catalog=str(self.uri),
            )
        try:
            yield
        finally:
            lock.release()

    def stream(
        self, sql: str, params: Params, schema: pa.Schema, *, key: str | None = None
    ) -> pa.RecordBatchReader:
        """See `Database`."""
        import pyarrow as pa

        def batches() -> Iterator[pa.RecordBatch]:
            with self._transaction(write=False) as session:
                yield from session.batches(sql, params, schema, key)

        return pa.RecordBatchReader.from_batches(schema, batches())

    def next_value(self, session: Session, counter: str) -> int:
        """See `Database`."""
        sql = "UPDATE dl_counters SET value = value + 1 WHERE name = ? RETURNING value"
        row = session.row(sql, (counter,))
        assert row is not None, f"no counter {counter}"
        value: int = row[0]
        return value

    @abstractmethod
    def next_seq(self, session: Session) -> int:
        """See `Database`."""

    def settle(self) -> None:
        """See `Database`: the one writer, if there is one, is waited for."""
        with suppress(CatalogReadOnly), self.write():
            pass

    def lock_schema(self, session: Session) -> None:
        """See `Database`: the one writer has it locked already."""


def given_columns(rows: Sequence[Row]) -> list[int]:
    """Which columns have a value in any row. The others need not be sent: they are null."""
    return [i for i in range(len(rows[0])) if any(row[i] is not None for row in rows)]


def picked(rows: Sequence[Row], given: Sequence[int]) -> Iterable[Row]:
    """The rows with those columns only."""
    if len(given) == len(rows[0]):
        return rows
    if len(given) == 1:
        return ((row[given[0]],) for row in rows)
    return map(itemgetter(*given), rows)


def first_value(row: Row | None) -> Any:
    """The only value of the only row."""
    assert row is not None
    return row[0]
