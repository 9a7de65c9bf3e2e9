"""Per-file statistics: which columns get them, and their JSON in the log.

Statistics name columns by their physical paths. They are advice: what cannot be read is unknown,
never an error. `stats_collect` makes them from Parquet footers and Arrow data; `intervals` turns
them into keys.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, Final

import msgspec

from deltalakedb.errors import InvalidArgument
from deltalakedb.model.expr import Path, Value
from deltalakedb.model.keys import key_family
from deltalakedb.model.schema import (
    TYPE_CHANGES,
    DataType,
    Leaf,
    PrimitiveType,
    StructType,
    leaves,
    mapping_mode,
)

NUM_INDEXED_COLUMNS: Final = "delta.dataSkippingNumIndexedCols"
STATS_COLUMNS: Final = "delta.dataSkippingStatsColumns"
STRING_LIMIT: Final = 32
"""Characters that are kept of a string."""


class StatsColumn(msgspec.Struct, frozen=True):
    """A leaf column with statistics, or a partition column, whose value is as good as both."""

    path: Path
    physical: Path
    type: DataType
    partition: bool = False
    was_float: bool = False
    """Widened from float to double: older files have bounds in 32 bits."""

    @property
    def bounded(self) -> bool:
        """Whether the column gets minimum and maximum, and not only a null count."""
        return key_family(self.type) is not None and str(self.type) != "boolean"


class FileStats(msgspec.Struct, frozen=True):
    """Statistics of one data file, by physical path of the column.

    `num_records` counts physical rows, also deleted ones. Bounds that are not `tight_bounds`
    hold, but need not be attained.
    """

    num_records: int | None = None
    min_values: Mapping[Path, Value] = {}
    max_values: Mapping[Path, Value] = {}
    null_count: Mapping[Path, int] = {}
    tight_bounds: bool | None = None


# -- which columns -----------------------------------------------------------------------------


def stats_columns(
    schema: StructType, partition_columns: Collection[str], configuration: Mapping[str, str]
) -> tuple[StatsColumn, ...]:
    """The columns that statistics are written for, in order.

    These are the leading 32 leaves that are not partition columns, or as many as
    `delta.dataSkippingNumIndexedCols` says (-1 for all), or those that
    `delta.dataSkippingStatsColumns` names, where a struct stands for all its leaves.
    """
    found = leaves(schema, mapping_mode(configuration))
    data = [leaf for leaf in found if leaf.path[0] not in partition_columns]
    if named := configuration.get(STATS_COLUMNS):
        wanted = {tuple(part.lower() for part in path) for path in _names(named)}
        data = [leaf for leaf in data if _is_named(leaf, wanted)]
    else:
        limit = _limit(configuration.get(NUM_INDEXED_COLUMNS, "32"))
        data = data if limit < 0 else data[:limit]
    return tuple(map(_stats_column, data))


def tracked_columns(
    schema: StructType, partition_columns: Collection[str], configuration: Mapping[str, str]
) -> tuple[StatsColumn, ...]:
    """The columns whose files can be pruned: partition columns, then those with statistics."""
    found = leaves(schema, mapping_mode(configuration))
    partitions = [
        msgspec.structs.replace(_stats_column(leaf), partition=True)
        for leaf in found
        if leaf.path[0] in partition_columns
    ]
    columns = (*partitions, *stats_columns(schema, partition_columns, configuration))
    return tuple(column for column in columns if key_family(column.type) is not None)


def _stats_column(leaf: Leaf) -> StatsColumn:
    changes = leaf.field.metadata.get(TYPE_CHANGES) or ()
    was_float = any(change.get("fromType") == "float" for change in changes)
    return StatsColumn(leaf.path, leaf.physical, leaf.field.type, was_float=was_float)


def _names(text: str) -> Iterator[list[str]]:
    """Dotted names in a list, with backticks around parts that have dots or commas."""
    for name in re.findall(r"(?:`[^`]*`|[^,`])+", text):
        parts = re.findall(r"`([^`]*)`|([^.`]+)", name.strip())
        yield [quoted or plain.strip() for quoted, plain in parts]


def _is_named(leaf: Leaf, wanted: Collection[tuple[str, ...]]) -> bool:
    path = tuple(part.lower() for part in leaf.path)
    return any(path[:length] in wanted for length in range(1, len(path) + 1))


def _limit(text: str) -> int:
    try:
        limit = int(text)
    except ValueError:
        limit = -2
    if limit < -1:
        message = f"{NUM_INDEXED_COLUMNS} is {text!r}: it takes a number of columns, or -1 for all"
        raise InvalidArgument(message, argument=NUM_INDEXED_COLUMNS, allowed="-1, 0, 1, ...")
    return limit


# -- strings -----------------------------------------------------------------------------------


def lower_text(text: str) -> str:
    """A bound not above `text` and not longer than 32 characters."""
    return text[:STRING_LIMIT]


def upper_text(text: str) -> str | None:
    """A bound not below `text`, of 32 characters and one that breaks the tie; None without one."""
    if len(text) <= STRING_LIMIT:
        return text
    for highest in ("\x7f", "\U0010ffff"):
        if text[STRING_LIMIT] < highest:
            return text[:STRING_LIMIT] + highest
    return None


# -- JSON --------------------------------------------------------------------------------------


class _Json(msgspec.Struct, rename="camel"):
    """The layout of the `stats` field of an add or remove."""

    num_records: int | None = None
    min_values: dict[str, Any] | None = None
    max_values: dict[str, Any] | None = None
    null_count: dict[str, Any] | None = None
    tight_bounds: bool | None = None


_DECODER: Final = msgspec.json.Decoder(_Json, float_hook=Decimal)
_ENCODER: Final = msgspec.json.Encoder(decimal_format="number")


def parse(text: str | None, types: Mapping[Path, DataType] | None = None) -> FileStats:
    """The statistics in a `stats` text; empty where there are none or they cannot be read.

    With `types`, by physical path, bounds are values of those types and other columns are left
    out; without, they are JSON's.
    """
    try:
        found = _DECODER.decode(text or "{}")
    except msgspec.DecodeError:
        return FileStats()
    counts = dict(_flat(found.null_count or {}))
    return FileStats(
        found.num_records,
        _bounds(found.min_values or {}, types),
        _bounds(found.max_values or {}, types),
        {path: count for path, count in counts.items() if isinstance(count, int)},
        found.tight_bounds,
    )


def _flat(tree: Mapping[str, Any], path: Path = ()) -> Iterator[tuple[Path, Any]]:
    for name, value in tree.items():
        if isinstance(value, dict):
            yield from _flat(value, (*path, name))
        elif value is not None:
            yield (*path, name), value


def _bounds(tree: Mapping[str, Any], types: Mapping[Path, DataType] | None) -> dict[Path, Value]:
    if types is None:
        return dict(_flat(tree))
    typed = ((path, _typed(value, types.get(path))) for path, value in _flat(tree))
    return {path: value for path, value in typed if value is not None}


def _typed(value: Any, kind: DataType | None) -> Any:
    """A JSON value as a value of the type; None if it is not one."""
    name = str(kind)
    try:
        if name in ("float", "double"):
            return float(value)
        if name == "date":
            return date.fromisoformat(value)
        if name in ("timestamp", "timestamp_ntz"):
            at = datetime.fromisoformat(value)
            zone = UTC if name == "timestamp" else None
            return at.replace(tzinfo=zone) if at.tzinfo is None or zone is None else at
        if isinstance(kind, PrimitiveType) and kind.decimal:
            return Decimal(value)
    except (TypeError, ValueError, ArithmeticError):
        return None
    plain: Any = {"string": str, "boolean": bool}.get(name, int)
    return value if kind is not None and type(value) is plain else None


def to_json(stats: FileStats) -> str:
    """The statistics as Delta writes them: timestamps in milliseconds, decimals as numbers."""
    found: dict[str, Any] = {}
    if stats.num_records is not None:
        found["numRecords"] = stats.num_records
    found["minValues"] = _tree(stats.min_values)
    found["maxValues"] = _tree(stats.max_values)
    found["nullCount"] = _tree(stats.null_count)
    if stats.tight_bounds is not None:
        found["tightBounds"] = stats.tight_bounds
    return _ENCODER.encode(found).decode()


def _tree(values: Mapping[Path, Value]) -> dict[str, Any]:
    root: dict[str, Any] = {}
    for path, value in values.items():
        inside = root
        for name in path[:-1]:
            inside = inside.setdefault(name, {})
        inside[path[-1]] = _plain(value)
    return root


def _plain(value: Value) -> Any:
    if isinstance(value, datetime):
        if value.tzinfo is None:
            return value.isoformat(timespec="milliseconds")
        utc = value.astimezone(UTC).replace(tzinfo=None)
        return utc.isoformat(timespec="milliseconds") + "Z"
    return value.isoformat() if isinstance(value, date) else value
