"""Arrow values in other types, all the way down: cast, relabelled, with nulls allowed."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from deltalakedb.model.schema import ArrayType, DataType, MapType, StructType


def loose(kind: pa.DataType) -> pa.DataType:
    """The type with nulls allowed at every level.

    What Delta forbids is checked on its own schema: Arrow would also refuse the placeholders
    below a null struct, and says less about where they are.
    """
    if pt.is_struct(kind):
        return pa.struct([_loose_field(field) for field in kind])
    if pt.is_map(kind):
        return pa.map_(
            kind.key_field.with_type(loose(kind.key_type)), _loose_field(kind.item_field)
        )
    if pt.is_list(kind):
        return pa.list_(_loose_field(kind.value_field))
    return kind


def loose_schema(schema: pa.Schema) -> pa.Schema:
    """`loose` for every column."""
    return pa.schema([_loose_field(field) for field in schema])


def _loose_field(field: pa.Field) -> pa.Field:
    return field.with_type(loose(field.type)).with_nullable(True)


def relabelled(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The same columns under a schema that differs in names and nullability alone.

    A cast would match nested fields by name, and fill with nulls what it does not find.
    """
    columns = zip(table.columns, schema.types, strict=True)
    return pa.Table.from_arrays([_relabel(c, kind) for c, kind in columns], schema=schema)


def _relabel(values: Any, kind: pa.DataType) -> Any:
    if not pt.is_nested(kind) or values.type.equals(kind, check_metadata=True):
        return values
    if isinstance(values, pa.ChunkedArray):
        return pa.chunked_array([_relabel(chunk, kind) for chunk in values.chunks], kind)
    if pt.is_struct(kind):
        children = [_relabel(values.field(i), field.type) for i, field in enumerate(kind)]
        return pa.StructArray.from_arrays(children, fields=list(kind), mask=values.is_null())
    if pt.is_map(kind):
        parts = [_relabel(values.keys, kind.key_type), _relabel(values.items, kind.item_type)]
        fields = [kind.key_field, kind.item_field]
        return _with_values(values, kind, pa.StructArray.from_arrays(parts, fields=fields))
    return _with_values(values, kind, _relabel(values.values, kind.value_type))


def _with_values(array: pa.Array, kind: pa.DataType, values: pa.Array) -> pa.Array:
    """A list or map with the same places in other values."""
    places = array.buffers()[:2]
    return pa.Array.from_buffers(kind, len(array), places, offset=array.offset, children=[values])


def cast(column: Any, kind: DataType, target: pa.DataType) -> Any:
    """The column as `target`, the Arrow type of `kind`; checked by value.

    Only timestamps may lose precision. Fields of structs are matched by name without regard to
    case, and those the data lacks become null.

    Raises:
        pyarrow.ArrowInvalid: a value does not fit.
    """
    if column.type.equals(target, check_metadata=True):
        return column
    if isinstance(column, pa.ChunkedArray):
        return pa.chunked_array([cast(chunk, kind, target) for chunk in column.chunks], target)
    column = _decoded(column)
    match kind:
        case StructType() if pt.is_struct(column.type):
            return _cast_struct(column, kind, target)
        case ArrayType() if _is_list(column.type):
            plain = _plain_list(column)
            return _with_values(
                plain, target, cast(plain.values, kind.element_type, target.value_type)
            )
        case MapType() if pt.is_map(column.type):
            keys = cast(column.keys, kind.key_type, target.key_type)
            items = cast(column.items, kind.value_type, target.item_type)
            fields = [target.key_field, target.item_field]
            entries = pa.StructArray.from_arrays([keys, items], fields=fields)
            return _with_values(column, target, entries)
    options = pc.CastOptions.safe(target)
    options.allow_time_truncate = True
    made = pc.cast(column, options=options)
    if pt.is_float32(target) and pc.any(pc.xor(pc.is_inf(made), _is_inf(column))).as_py():
        raise pa.ArrowInvalid("a number is too large for a float")
    return made


def _is_inf(numbers: pa.Array) -> Any:
    return pc.is_inf(numbers) if pt.is_floating(numbers.type) else pa.scalar(False)


def _cast_struct(array: pa.StructArray, kind: StructType, target: pa.StructType) -> pa.StructArray:
    given = {field.name.lower(): i for i, field in enumerate(array.type)}
    children = [
        cast(array.field(given[field.name.lower()]), field.type, target.field(i).type)
        if field.name.lower() in given
        else pa.nulls(len(array), target.field(i).type)
        for i, field in enumerate(kind.fields)
    ]
    return pa.StructArray.from_arrays(children, fields=list(target), mask=array.is_null())


def _decoded(array: pa.Array) -> pa.Array:
    """Without what wraps the values: extension types, dictionaries, runs."""
    while isinstance(array, pa.ExtensionArray | pa.DictionaryArray | pa.RunEndEncodedArray):
        if isinstance(array, pa.ExtensionArray):
            array = array.storage
        elif isinstance(array, pa.DictionaryArray):
            array = (
                array.dictionary_decode() if not _is_view(array.type.value_type) else _taken(array)
            )
        else:
            array = pc.run_end_decode(array)
    return array


def _is_view(kind: pa.DataType) -> bool:
    return bool(pt.is_string_view(kind) or pt.is_binary_view(kind))


def _taken(array: pa.DictionaryArray) -> pa.Array:
    """A dictionary of views, which Arrow has no kernel to decode: its values are cast first."""
    kind = pa.string() if pt.is_string_view(array.type.value_type) else pa.binary()
    return array.dictionary.cast(kind).take(array.indices)


def _plain_list(array: pa.Array) -> pa.ListArray:
    """Any kind of list as a plain one, with elements of the same type."""
    kind = array.type
    if not (pt.is_list_view(kind) or pt.is_large_list_view(kind)):
        return array.cast(pa.list_(kind.value_field))
    # Arrow's own cast of a view leaves offsets that are too short.
    ends = pc.cumulative_sum(pc.fill_null(pc.list_value_length(array), 0)).cast(pa.int32())
    offsets = pa.concat_arrays([pa.array([0], pa.int32()), ends])
    plain = pa.list_(kind.value_field)
    return pa.ListArray.from_arrays(offsets, array.flatten(), type=plain, mask=array.is_null())


def _is_list(kind: pa.DataType) -> bool:
    tests = (pt.is_list, pt.is_large_list, pt.is_fixed_size_list, pt.is_list_view)
    return any(test(kind) for test in (*tests, pt.is_large_list_view))
