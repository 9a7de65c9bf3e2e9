"""Files of a plain log that a predicate can be true for, by partition values and statistics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import msgspec

from deltalakedb.model.intervals import interval_reader
from deltalakedb.model.keys import UNKNOWN
from deltalakedb.model.skipping import ALWAYS, All, Any, Probe, Skip, may_match, skipping
from deltalakedb.model.stats import NUM_INDEXED_COLUMNS, STATS_COLUMNS, tracked_columns

if TYPE_CHECKING:
    import pyarrow as pa

    from deltalakedb.log.base import Snapshot
    from deltalakedb.model.expr import Expr, Path
    from deltalakedb.model.schema import StructType

_partition_values: Final = msgspec.json.Decoder(dict[str, str | None])


def prune(files: pa.Table, where: Expr, snapshot: Snapshot) -> pa.Table:
    """The rows of `files` that may hold a match; all that cannot be told stay."""
    import pyarrow as pa

    skip = skipping(where, snapshot.schema)
    if skip == ALWAYS:
        return files
    probed = set(_columns(skip))
    columns = [
        column for column in tracked_columns(*_everything(snapshot)) if column.path in probed
    ]
    place = {column.path: i for i, column in enumerate(columns)}
    read = interval_reader(columns)

    @lru_cache(maxsize=1024)  # many files share them
    def partition(text: str) -> Mapping[str, str | None]:
        return _partition_values.decode(text)

    def matches(stats: str | None, partition_values: str) -> bool:
        found = read(stats, partition(partition_values))
        return may_match(skip, lambda path: found[place[path]] if path in place else UNKNOWN)

    rows = zip(files["stats"].to_pylist(), files["partition_values"].to_pylist(), strict=True)
    return files.filter(pa.array((matches(*row) for row in rows), pa.bool_()))


def _everything(snapshot: Snapshot) -> tuple[StructType, tuple[str, ...], dict[str, str]]:
    """Arguments by which every column has statistics.

    Files may have more of them than the table's properties ask for today.
    """
    given = {k: v for k, v in snapshot.metadata.configuration.items() if k != STATS_COLUMNS}
    limitless = {**given, NUM_INDEXED_COLUMNS: "-1"}
    return snapshot.schema, snapshot.metadata.partition_columns, limitless


def _columns(skip: Skip) -> Iterator[Path]:
    match skip:
        case Probe():
            yield skip.column
        case All(terms) | Any(terms):
            for term in terms:
                yield from _columns(term)
