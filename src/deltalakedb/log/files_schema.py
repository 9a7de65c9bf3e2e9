"""The Arrow shape in which every log lists its live files."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

FILE_COLUMNS = (
    "path",
    "partition_values",
    "size",
    "modification_time",
    "data_change",
    "stats",
    "tags",
    "dv_storage_type",
    "dv_path",
    "dv_offset",
    "dv_size",
    "dv_cardinality",
    "base_row_id",
    "default_row_commit_version",
    "clustering_provider",
    "num_records",
)
"""`partition_values`, `stats` and `tags` are JSON text; `num_records` is the physical count."""

_TEXT = {
    "path",
    "partition_values",
    "stats",
    "tags",
    "dv_storage_type",
    "dv_path",
    "clustering_provider",
}


@cache
def _schema(columns: tuple[str, ...]) -> pa.Schema:
    import pyarrow as pa

    def kind(name: str) -> pa.DataType:
        if name in _TEXT:
            return pa.string()
        return pa.bool_() if name == "data_change" else pa.int64()

    return pa.schema([(name, kind(name)) for name in columns])


def files_schema(columns: Sequence[str] = FILE_COLUMNS) -> pa.Schema:
    """The schema of those columns, in their order."""
    return _schema(tuple(columns))
