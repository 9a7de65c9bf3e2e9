"""Structs of statistics: from text to their types, and into columns of their own."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc


def nested(column: Any, kind: pa.DataType) -> Any:
    """A column of structs with its leaves in other types; what does not parse becomes null."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if not pa.types.is_struct(kind):
        return _typed(column, kind)
    children = [nested(column.field(i), kind.field(i).type) for i in range(kind.num_fields)]
    if not children:
        return pa.array([{}] * len(column), kind)
    return pa.StructArray.from_arrays(
        children, fields=[kind.field(i) for i in range(kind.num_fields)], mask=column.is_null()
    )


def _typed(column: pa.Array, kind: pa.DataType) -> pa.Array:
    if column.type == kind:
        return column
    if pa.types.is_timestamp(kind) and kind.tz is None:
        column = pc.replace_substring_regex(column, r"(Z|[+-]\d\d:?\d\d)$", "")
    try:
        return column.cast(kind)
    except pa.ArrowInvalid:
        return pa.nulls(len(column), kind)


def flattened(table: pa.Table) -> pa.Table:
    """Every leaf of every struct as a column named by its dotted path."""
    columns: dict[str, Any] = {}
    for name in table.column_names:
        _flatten(name, table[name], columns)
    return pa.table(columns)


def _flatten(name: str, column: Any, into: dict[str, Any]) -> None:
    if not pa.types.is_struct(column.type):
        into[name] = column
        return
    for i, field in enumerate(column.type):
        _flatten(f"{name}.{field.name}", pc.struct_field(column, [i]), into)
