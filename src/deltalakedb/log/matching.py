"""What a file's action tells about its rows: how many, and whether a predicate may match."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated

import msgspec

from deltalakedb.model.actions import Add, Metadata
from deltalakedb.model.intervals import IntervalReader, interval_reader
from deltalakedb.model.keys import MAX, UNKNOWN, Interval
from deltalakedb.model.schema import parse_schema
from deltalakedb.model.skipping import may_match, skipping
from deltalakedb.model.stats import StatsColumn, tracked_columns

if TYPE_CHECKING:
    from deltalakedb.log.base import Snapshot
    from deltalakedb.model.expr import Expr

Counted = tuple[int, int | None, int | None]
"""(size, physical rows, rows deleted by a vector) of a file."""


class _Rows(msgspec.Struct):
    numRecords: Annotated[int, msgspec.Meta(ge=0, le=MAX)] | None = None  # noqa: N815 - as in the log


_rows = msgspec.json.Decoder(_Rows)


def num_records(stats: str | None) -> int | None:
    """The physical row count in a `stats` text, None where it does not say."""
    try:
        return _rows.decode(stats).numRecords if stats else None
    except msgspec.DecodeError:
        return None


def counted(add: Add) -> Counted:
    """What the file adds to a table's totals."""
    dv = add.deletion_vector
    return add.size, num_records(add.stats), dv.cardinality if dv else None


def prunable(metadata: Metadata) -> tuple[tuple[StatsColumn, ...], IntervalReader]:
    """The columns files are pruned by, and how to read their intervals; partition columns first."""
    return _prunable(
        metadata.schema_string,
        tuple(metadata.partition_columns),
        tuple(metadata.configuration.items()),
    )


@lru_cache(maxsize=256)
def _prunable(
    schema: str, partition_columns: tuple[str, ...], configuration: tuple[tuple[str, str], ...]
) -> tuple[tuple[StatsColumn, ...], IntervalReader]:
    columns = tracked_columns(parse_schema(schema), partition_columns, dict(configuration))
    return columns, interval_reader(columns)


def file_matcher(where: Expr, snapshot: Snapshot) -> Callable[[Add], bool]:
    """Whether a file of the table may hold a row that the predicate is true for."""
    skip = skipping(where, snapshot.schema)
    columns, read = prunable(snapshot.metadata)
    places = {column.path: place for place, column in enumerate(columns)}

    def matches(file: Add) -> bool:
        found = read(file.stats, file.partition_values)

        def interval_of(path: tuple[str, ...]) -> Interval:
            place = places.get(path)
            return UNKNOWN if place is None else found[place]

        return may_match(skip, interval_of)

    return matches
