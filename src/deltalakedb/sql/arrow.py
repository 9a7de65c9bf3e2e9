"""Long answers as Arrow, from drivers that hand out rows.

A Python object for every value is what makes rows slow. For ranges of a key the database is asked
to join each column into one text, and Arrow splits it again, all outside the interpreter. Counts
that come along prove that nothing was lost: where a value happens to contain the separator, that
range is fetched again as rows.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, Literal, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from deltalakedb.sql.base import Params, Row

SEPARATOR: Final = "\x1f"
NULL: Final = "\x1e"

ROWS: Final = 8_192
"""Rows of a batch."""
_BYTES: Final = 4 << 20
_FIRST_RANGE: Final = 256
"""The first range is short: it tells which columns are null."""
_IN_FLIGHT: Final = 2

Form: TypeAlias = Literal["null", "plain", "marked"]
"""How a column travels: not at all, joined, or joined with a mark for every null."""

Fetch: TypeAlias = Callable[[str, Params], Callable[[], list[Row]]]
"""Start a statement, and later wait for its rows."""


def batch_of(rows: Sequence[Row], schema: pa.Schema) -> pa.RecordBatch:
    """A batch of rows whose columns are the schema's, in order."""
    columns = zip(*rows, strict=True) if rows else ((),) * len(schema)
    arrays = [
        _booleans(column) if pa.types.is_boolean(field.type) else pa.array(column, field.type)
        for field, column in zip(schema, columns, strict=True)
    ]
    return pa.record_batch(arrays, schema=schema)


def _booleans(column: Sequence[Any]) -> pa.Array:
    return pa.array([None if value is None else bool(value) for value in column], pa.bool_())


def columns_of(sql: str, schema: pa.Schema) -> str:
    """The statement with the schema's columns only."""
    return f"SELECT {', '.join(schema.names)} FROM ({sql}) q"


def can_join(schema: pa.Schema) -> bool:
    """Whether every column survives the way through text."""
    return all(
        pa.types.is_string(t) or pa.types.is_integer(t) or pa.types.is_boolean(t)
        for t in schema.types
    )


class Joined:
    """One statement's answer, by ranges of its key."""

    def __init__(
        self, sql: str, params: Params, schema: pa.Schema, key: str, *, as_text: str, join: str
    ) -> None:
        """`as_text` and `join` are the engine's SQL for a value and for an aggregate of texts."""
        self._sql = sql
        self._params = list(params)
        self._schema = schema
        self._key = key
        self._as_text = as_text
        self._join = join
        self._forms: list[Form] = ["plain"] * len(schema)

    def batches(self, fetch: Fetch) -> Iterator[pa.RecordBatch]:
        """Every batch, in the order of the key. The next range is under way meanwhile."""
        anywhere = [*self._params, -(2**63), 2**63 - 1]
        low, last = fetch(self._bounds(), [*anywhere, *anywhere])()[0]
        if low is None:
            return
        width = _FIRST_RANGE
        under_way: deque[tuple[int, int, tuple[Form, ...], Callable[[], list[Row]]]] = deque()
        while low <= last or under_way:
            while low <= last and len(under_way) < _IN_FLIGHT:
                forms, bounds = tuple(self._forms), (low, low + width)
                started = fetch(self._statement(forms), [*self._params, *bounds])
                under_way.append((*bounds, forms, started))
                low += width
            start, end, forms, wait = under_way.popleft()
            batch = self._batch(fetch, start, end, forms, wait()[0])
            if batch.num_rows < ROWS // 2 and batch.nbytes < _BYTES // 2:
                width *= 2
            elif batch.nbytes > _BYTES * 2:
                width = max(1, width // 2)
            if batch.num_rows:
                yield batch

    def _batch(
        self, fetch: Fetch, start: int, end: int, forms: tuple[Form, ...], row: Row
    ) -> pa.RecordBatch:
        total, counts, texts = row[0], row[1::2], row[2::2]
        self._forms = [_form(count, total) for count in counts] if total else list(forms)
        if any(_misfit(form, count, total) for form, count in zip(forms, counts, strict=True)):
            forms = tuple(self._forms)
            texts = fetch(self._statement(forms), [*self._params, start, end])()[0][2::2]
        arrays = [
            _split(text, total, count, field.type)
            for field, count, text in zip(self._schema, counts, texts, strict=True)
        ]
        if None in arrays:
            sql = f"{columns_of(self._sql, self._schema)} WHERE {self._in_range()}"
            return batch_of(fetch(sql, [*self._params, start, end])(), self._schema)
        return pa.record_batch(arrays, schema=self._schema)

    def _bounds(self) -> str:
        # With a range, even an endless one, no planner misses that the key has an index.
        end = f"({self._key}) FROM ({self._sql}) q WHERE {self._in_range()}"
        return f"SELECT (SELECT min{end}), (SELECT max{end})"

    def _in_range(self) -> str:
        return f"{self._key} >= ? AND {self._key} < ?"

    def _statement(self, forms: Sequence[Form]) -> str:
        columns = ", ".join(
            f"{f'count({field.name})' if field.nullable else 'count(*)'},"
            f" {self._joined(field.name, form)}"
            for field, form in zip(self._schema, forms, strict=True)
        )
        return f"SELECT count(*), {columns} FROM ({self._sql}) q WHERE {self._in_range()}"

    def _joined(self, name: str, form: Form) -> str:
        if form == "null":
            return "NULL"
        text = self._as_text.format(name)
        return self._join.format(text if form == "plain" else f"coalesce({text}, '{NULL}')")


def _form(count: int, total: int) -> Form:
    if count == 0:
        return "null"
    return "plain" if count == total else "marked"


def _misfit(form: Form, count: int, total: int) -> bool:
    """Whether a column came in a form that cannot say where its nulls are."""
    if form == "marked" or count == 0:
        return False
    return form == "null" or count < total


def _split(text: bytes | None, total: int, count: int, kind: pa.DataType) -> pa.Array | None:
    """The column's values, or None if the text does not hold what was counted."""
    if count == 0:
        return pa.nulls(total, kind)
    assert text is not None
    offsets = struct.pack("ii", 0, len(text))
    whole = pa.StringArray.from_buffers(1, pa.py_buffer(offsets), pa.py_buffer(text))
    values = pc.split_pattern(whole, SEPARATOR).flatten()
    if count < total:
        values = pc.if_else(pc.equal(values, NULL), pa.scalar(None, pa.string()), values)
    if len(values) != total or values.null_count != total - count:
        return None
    return values.cast(kind)
