"""The seam between deltalakedb and its databases: a few methods, and differences as data.

SQL is written once, with ``?`` for every value. Values are always bound: a statement's text holds
no literal with a ``?`` or a ``%`` in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    import pyarrow as pa

    from deltalakedb.uri import DeltaSqlUri

Row: TypeAlias = tuple[Any, ...]
Params: TypeAlias = Sequence[Any]


@dataclass(frozen=True)
class Dialect:
    """What differs in the SQL of the engines."""

    name: str
    types: Mapping[str, str]
    """Type names of `tables` and migrations, as the engine spells them."""

    count_tables: str
    """How many tables of a name the catalog has."""

    lock_rows: str = ""
    """Ends a SELECT whose rows stay locked to the end of the transaction."""

    binary_text: str = ""
    """Follows a text expression to compare it by its bytes."""

    among: str = "{} IN ({})"
    """Whether a value is one of a subquery's, where those are few."""

    each: str = "JOIN {} s ON {}"
    """Joins the rows of a table, as s, to each of the few rows before it, by seeking."""

    clustered: str = ""
    """Ends a CREATE TABLE whose rows lie in the order of the key."""

    indexes: bool = True
    """Whether secondary indexes pay, and keys of tables with a row for each file."""

    sequences: bool = True
    """Whether there are sequences; without them one writer counts up the last number."""


@dataclass(frozen=True)
class Column:
    """A column as far as a bulk insert needs to know it."""

    name: str
    type: str


@dataclass(frozen=True, eq=False)
class Table:
    """A table's columns in the order in which rows are inserted. There is one of each."""

    name: str
    columns: tuple[Column, ...]
    key: tuple[str, ...] = ()
    """Order in which a clustered table's rows lie."""


class Session(Protocol):
    """One transaction. It ends with the ``with`` block that made it.

    A write may be sent to the database later than its call, but before the next statement that
    has an answer and before the commit: there its error appears.
    """

    def rows(self, sql: str, params: Params = ()) -> list[Row]:
        """Every row of the answer."""

    def row(self, sql: str, params: Params = ()) -> Row | None:
        """The first row, None without one."""

    def run(self, sql: str, params: Params = ()) -> int:
        """How many rows the statement changed."""

    def send(self, sql: str, params: Params = ()) -> None:
        """`run` for a statement whose count nobody asks: it costs no round trip of its own."""

    def insert(self, table: Table, rows: Sequence[Row]) -> None:
        """Insert one row or a million, each in the fastest way the engine has."""

    def arrow(
        self, sql: str, params: Params, schema: pa.Schema, *, key: str | None = None
    ) -> pa.RecordBatchReader:
        """The answer as Arrow, streamed; read it up before the session's next statement.

        `schema` names the columns to keep and their types. `key`, a unique integer column of the
        statement, lets the engine fetch ranges of it, which is several times faster for long
        answers; the statement must then be cheap to start again for every range.
        """


class Database(Protocol):
    """A catalog's database. Safe to use from several threads, and in a forked child."""

    dialect: Dialect
    uri: DeltaSqlUri

    @property
    def alive(self) -> bool:
        """Whether it can be used: not closed, nor left behind by a fork."""

    def read(self) -> AbstractContextManager[Session]:
        """Reads that all see the database as it is at the first of them."""

    def write(self) -> AbstractContextManager[Session]:
        """A transaction: committed when the block ends, rolled back when it raises.

        Rows that `Dialect.lock_rows` locked are read as they are after the lock was granted.
        """

    def stream(
        self, sql: str, params: Params, schema: pa.Schema, *, key: str | None = None
    ) -> pa.RecordBatchReader:
        """`Session.arrow` in a read of its own, which lasts as long as the reader."""

    def next_value(self, session: Session, counter: str) -> int:
        """The counter's next number, from 1. No other writer gets one until this one is done."""

    def next_seq(self, session: Session) -> int:
        """The transaction's place in the catalog's order. Writers need not wait for each other."""

    def settle(self) -> None:
        """Wait until every place given out so far is committed or given up."""

    def lock_schema(self, session: Session) -> None:
        """Keep other processes from changing the schema until the session ends."""

    def close(self) -> None:
        """Close every connection. Sessions that are open keep theirs."""
