"""Statistics of new data files, from their Parquet footers or from the Arrow data itself.

Both give the same statistics, with two exceptions that footers cannot help: the null counts of
arrays, maps and variants, and the maximum of floats (see `from_parquet_metadata`). Bounds that
JSON cannot hold (infinities, dates beyond the year 9999) are left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as pt

from deltalakedb.model.arrow import arrow_type
from deltalakedb.model.expr import Path, Value
from deltalakedb.model.schema import DataType
from deltalakedb.model.stats import FileStats, StatsColumn, lower_text, upper_text

_FLOATS: Final = ("float", "double")


class _Bounds:
    """Minimum, maximum and null count of one column, as far as they are known."""

    def __init__(self, column: StatsColumn) -> None:
        self.column = column
        self.nulls: int | None = 0
        self.low: Value = None
        self.high: Value = None
        self.has_low = self.has_high = column.bounded

    def add_nulls(self, count: int | None) -> None:
        self.nulls = None if self.nulls is None or count is None else self.nulls + count

    def add(self, low: Value, high: Value) -> None:
        """Take in the bounds of more rows; None is a bound that is not known."""
        self.has_low &= low is not None
        self.has_high &= high is not None
        if self.has_low:
            self.low = low if self.low is None else min(self.low, low)  # type: ignore[type-var]
        if self.has_high:
            self.high = high if self.high is None else max(self.high, high)  # type: ignore[type-var]


def _file_stats(rows: int, bounds: Iterable[_Bounds]) -> FileStats:
    found = list(bounds)
    lows = {b.column.physical: _lower(b.low) for b in found if b.has_low}
    highs = {b.column.physical: _upper(b.high) for b in found if b.has_high}
    return FileStats(
        num_records=rows,
        min_values={path: value for path, value in lows.items() if value is not None},
        max_values={path: value for path, value in highs.items() if value is not None},
        null_count={b.column.physical: b.nulls for b in found if b.nulls is not None},
    )


def _lower(value: Value) -> Value:
    if isinstance(value, float):
        return value + 0.0 if math.isfinite(value) else None  # -0.0 + 0.0 is 0.0
    return lower_text(value) if isinstance(value, str) else value


def _upper(value: Value) -> Value:
    return upper_text(value) if isinstance(value, str) else _lower(value)


def _checked(value: Any, kind: DataType) -> Any:
    """A value that is one of the type, None otherwise."""
    match str(kind):
        case "string":
            return value if isinstance(value, str) else None
        case "float" | "double":
            return value if isinstance(value, float) and not math.isnan(value) else None
        case "timestamp" | "timestamp_ntz":
            if not isinstance(value, datetime):
                return None
            if hasattr(value, "to_pydatetime"):  # pandas has nanoseconds, Delta has not
                value = value.to_pydatetime(warn=False)
            zoned = value.tzinfo is not None
            if zoned != (str(kind) == "timestamp"):
                return None
            return value.astimezone(UTC) if zoned else value
        case "date":
            return value if type(value) is date else None
        case name if name.startswith("decimal"):
            return value if isinstance(value, Decimal) else None
    return value if type(value) is int else None


# -- from Arrow --------------------------------------------------------------------------------


class Collector:
    """Collects the statistics of a file while its batches are written."""

    def __init__(self, columns: Sequence[StatsColumn]) -> None:
        """`columns` are looked for in the batches by their physical paths."""
        self._bounds = [_Bounds(column) for column in columns]
        self._rows = 0
        self.nan: set[Path] = set()
        """Physical paths of the float columns that held a NaN so far."""

    def add(self, batch: pa.RecordBatch | pa.Table) -> None:
        """Take in the rows of a batch."""
        self._rows += batch.num_rows
        for bounds in self._bounds:
            array = _array(batch, bounds.column.physical)
            if array is None:  # a column the data does not have is null
                bounds.add_nulls(batch.num_rows)
                continue
            bounds.add_nulls(array.null_count)
            if bounds.column.bounded and array.null_count < batch.num_rows:
                self._add_bounds(bounds, array)

    def _add_bounds(self, bounds: _Bounds, array: pa.Array | pa.ChunkedArray) -> None:
        kind, wanted = bounds.column.type, arrow_type(bounds.column.type)
        if array.type != wanted:
            array = array.cast(wanted)
        if str(kind) in _FLOATS and pc.any(pc.is_nan(array)).as_py():
            self.nan.add(bounds.column.physical)
            bounds.has_high = False
            array = array.filter(pc.invert(pc.is_nan(array)))
            if array.null_count == len(array):
                return
        found = pc.min_max(array)
        low = _safely(found["min"].as_py, kind)
        bounds.add(low, _safely(found["max"].as_py, kind))

    def finish(self) -> FileStats:
        """The statistics of all batches so far."""
        return _file_stats(self._rows, self._bounds)


def _safely(read: Callable[[], Any], kind: DataType) -> Any:
    try:
        return _checked(read(), kind)
    except (ValueError, OverflowError):  # a time that Python cannot hold
        return None


def _array(batch: pa.RecordBatch | pa.Table, path: Path) -> pa.Array | pa.ChunkedArray | None:
    """The values of a column; a child of a null struct is null."""
    position = batch.schema.get_field_index(path[0])
    if position < 0:
        return None
    array = batch.column(position)
    for name in path[1:]:
        position = array.type.get_field_index(name) if pt.is_struct(array.type) else -1
        if position < 0:
            return None
        array = pc.struct_field(array, [position])
    return array


def from_arrow(
    data: pa.Table | pa.RecordBatch | Iterable[pa.RecordBatch], columns: Sequence[StatsColumn]
) -> FileStats:
    """Statistics of data whose columns have their physical names."""
    collector = Collector(columns)
    for batch in [data] if isinstance(data, pa.Table | pa.RecordBatch) else data:
        collector.add(batch)
    return collector.finish()


# -- from Parquet ------------------------------------------------------------------------------


def from_parquet_metadata(
    metadata: Any, columns: Sequence[StatsColumn], *, nan: Collection[Path] | None = None
) -> FileStats:
    """Statistics of a Parquet file from its footer, a `pyarrow.parquet.FileMetaData`.

    Most writers leave NaN out of a footer's bounds, yet Delta orders NaN above every number. So
    the maximum of a float column is only taken if `nan` (such as `Collector.nan`) tells which
    columns hold NaN, or the file is by parquet-mr, which writes no bounds where there is NaN.
    """
    places = {path: place for place, path in enumerate(_leaf_paths(metadata)) if path}
    groups = [metadata.row_group(index) for index in range(metadata.num_row_groups)]
    groups = [group for group in groups if group.num_rows > 0]  # empty ones have no statistics
    honest = str(metadata.created_by or "").startswith("parquet-mr")
    found = []
    for column in columns:
        bounds = _Bounds(column)
        place = places.get(column.physical)
        if place is None:
            bounds.nulls = None
            bounds.has_low = bounds.has_high = False
        elif str(column.type) in _FLOATS and not honest:
            bounds.has_high = nan is not None and column.physical not in nan
        may_be_nan = nan is not None and column.physical in nan
        for group in groups if place is not None else ():
            _add_footer(bounds, group.column(place).statistics, may_be_nan=may_be_nan)
        found.append(bounds)
    return _file_stats(metadata.num_rows, found)


def _add_footer(bounds: _Bounds, statistics: Any, *, may_be_nan: bool) -> None:
    """Take in a column chunk. One without bounds is all NaN if it `may_be_nan`, else unknown."""
    if statistics is None:
        bounds.add_nulls(None)
        bounds.add(None, None)
        return
    bounds.add_nulls(statistics.null_count if statistics.has_null_count else None)
    if statistics.has_min_max:
        kind = bounds.column.type
        low = _safely(lambda: statistics.min, kind)
        bounds.add(low, _safely(lambda: statistics.max, kind))
    elif statistics.num_values > 0 and not may_be_nan:
        bounds.add(None, None)


def _leaf_paths(metadata: Any) -> Iterator[Path | None]:
    """The path of every leaf column in file order; None inside arrays and maps."""
    for field in metadata.schema.to_arrow_schema():
        yield from _leaves(field.type, (field.name,))


def _leaves(kind: pa.DataType, path: Path | None) -> Iterator[Path | None]:
    if pt.is_struct(kind):
        for field in kind:
            yield from _leaves(field.type, None if path is None else (*path, field.name))
    elif pt.is_map(kind):
        yield from _leaves(kind.key_type, None)
        yield from _leaves(kind.item_type, None)
    elif pt.is_list(kind) or pt.is_large_list(kind) or pt.is_fixed_size_list(kind):
        yield from _leaves(kind.value_type, None)
    else:
        yield path
