"""Delta schemas as Arrow schemas, and back.

Out: every Delta type has one Arrow type; a `variant` is a struct of `metadata` and `value`.

In: whatever Arrow has several spellings for is one Delta type (large and view variants,
dictionaries, run-end encoding, fixed sizes, other time units). Nothing is narrowed: unsigned
integers go to the next larger signed type and `uint64` to `decimal(20,0)`, `float16` to `float`.
`null` becomes `void`, which fits any column but cannot be stored. Times of day, durations,
intervals, unions, and decimals beyond Delta's range are refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec
import pyarrow as pa
from pyarrow import types as pt

from deltalakedb.errors import InvalidSchema
from deltalakedb.model.schema import (
    NESTED_IDS,
    ArrayType,
    DataType,
    MappingMode,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
)

FIELD_ID: Final = b"PARQUET:field_id"
_JSON_KEYS: Final = b"deltalakedb.json"
"""Arrow metadata is text; this key lists the entries whose text is JSON and not a string."""
_TYPE: Final = b"deltalakedb.type"
"""Delta's type, where Arrow's does not tell: a variant looks like any struct."""

VARIANT: Final = pa.struct(
    [pa.field("metadata", pa.binary(), False), pa.field("value", pa.binary(), False)]
)
_TO_ARROW: Final[Mapping[str, pa.DataType]] = {
    "byte": pa.int8(),
    "short": pa.int16(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "variant": VARIANT,
    "void": pa.null(),
}
_FROM_ARROW: Final[Mapping[pa.DataType, str]] = {
    pa.int8(): "byte",
    pa.int16(): "short",
    pa.int32(): "integer",
    pa.int64(): "long",
    pa.uint8(): "short",
    pa.uint16(): "integer",
    pa.uint32(): "long",
    pa.uint64(): "decimal(20,0)",
    pa.float16(): "float",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.bool_(): "boolean",
    pa.string(): "string",
    pa.large_string(): "string",
    pa.string_view(): "string",
    pa.binary(): "binary",
    pa.large_binary(): "binary",
    pa.binary_view(): "binary",
    pa.date32(): "date",
    pa.date64(): "date",
    pa.null(): "void",
}


def arrow_schema(schema: StructType) -> pa.Schema:
    """The schema as users see it: logical names, metadata kept."""
    return pa.schema([_out_field(field, "none", logical=True) for field in schema.fields])


def physical_arrow_schema(schema: StructType, mode: MappingMode) -> pa.Schema:
    """The schema as data files have it: physical names and, under column mapping, field ids."""
    return pa.schema([_out_field(field, mode, logical=False) for field in schema.fields])


def arrow_type(kind: DataType) -> pa.DataType:
    """The Arrow type of a Delta type."""
    return _out(kind, "none", logical=True, path="", ids={})


def delta_schema(schema: pa.Schema) -> StructType:
    """The Delta schema for data of an Arrow schema.

    Raises:
        InvalidSchema: names the column whose type Delta does not have.
    """
    return StructType(tuple(_in_field(field, ()) for field in schema))


def _invalid(column: str, reason: str) -> InvalidSchema:
    return InvalidSchema(f"column {column!r}: {reason}", column=column, reason=reason)


# -- out ---------------------------------------------------------------------------------------


def _out_field(field: StructField, mode: MappingMode, *, logical: bool) -> pa.Field:
    name = field.physical_name(mode)
    ids = field.metadata.get(NESTED_IDS, {}) if mode != "none" else {}
    metadata = _out_metadata(field) if logical else {}
    if mode != "none" and field.column_id is not None:
        metadata[FIELD_ID] = str(field.column_id).encode()
    kind = _out(field.type, mode, logical=logical, path=name, ids=ids)
    return pa.field(name, kind, field.nullable, metadata or None)


def _out(
    kind: DataType, mode: MappingMode, *, logical: bool, path: str, ids: Mapping[str, int]
) -> pa.DataType:
    def inner(step: str, of: DataType, nullable: bool) -> pa.Field:
        here = f"{path}.{step}"
        metadata = {FIELD_ID: str(ids[here]).encode()} if here in ids else {}
        if logical and of == PrimitiveType("variant"):
            metadata[_TYPE] = b"variant"
        made = _out(of, mode, logical=logical, path=here, ids=ids)
        return pa.field(step, made, nullable, metadata or None)

    match kind:
        case StructType():
            return pa.struct([_out_field(field, mode, logical=logical) for field in kind.fields])
        case ArrayType():
            return pa.list_(inner("element", kind.element_type, kind.contains_null))
        case MapType():
            key = inner("key", kind.key_type, False)
            return pa.map_(key, inner("value", kind.value_type, kind.value_contains_null))
        case PrimitiveType() if kind.decimal and kind.supported:
            return pa.decimal128(*kind.decimal)
    if (made := _TO_ARROW.get(str(kind))) is None:
        raise _invalid(path, f"type {kind} is not supported")
    return made


def _out_metadata(field: StructField) -> dict[bytes, bytes]:
    """Strings as they are, everything else as JSON, with a list of which are which."""
    made, json_keys = {}, []
    for key, value in field.metadata.items():
        if isinstance(value, str):
            made[key.encode()] = value.encode()
        else:
            made[key.encode()] = msgspec.json.encode(value)
            json_keys.append(key)
    if json_keys:
        made[_JSON_KEYS] = msgspec.json.encode(json_keys)
    if field.type == PrimitiveType("variant"):
        made[_TYPE] = b"variant"
    return made


# -- in ----------------------------------------------------------------------------------------


def _in_field(field: pa.Field, path: tuple[str, ...]) -> StructField:
    here = (*path, field.name)
    return StructField(field.name, _in(field, here), field.nullable, _in_metadata(field))


def _in_metadata(field: pa.Field) -> dict[str, Any]:
    found = dict(field.metadata or {})
    json_keys = msgspec.json.decode(found.pop(_JSON_KEYS, b"[]"), type=set[str])
    for key in (FIELD_ID, _TYPE):
        found.pop(key, None)
    text = {key.decode(): value.decode() for key, value in found.items()}
    return {k: msgspec.json.decode(v) if k in json_keys else v for k, v in text.items()}


def _in(field: pa.Field, path: tuple[str, ...]) -> DataType:
    if (field.metadata or {}).get(_TYPE) == b"variant":
        return PrimitiveType("variant")
    kind = field.type
    while isinstance(kind, pa.BaseExtensionType | pa.DictionaryType | pa.RunEndEncodedType):
        kind = kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind.value_type
    if pt.is_struct(kind):
        return StructType(tuple(_in_field(kind.field(i), path) for i in range(kind.num_fields)))
    if pt.is_map(kind):
        key, value = kind.key_field, kind.item_field
        return MapType(_in(key, (*path, "key")), _in(value, (*path, "value")), value.nullable)
    if _is_list(kind):
        element = kind.value_field
        return ArrayType(_in(element, (*path, "element")), element.nullable)
    if (name := _primitive(kind)) is None:
        raise _invalid(".".join(path), f"Delta has no type for Arrow's {kind}")
    return PrimitiveType(name)


def _primitive(kind: pa.DataType) -> str | None:
    if pt.is_fixed_size_binary(kind):
        return "binary"
    if pt.is_timestamp(kind):
        return "timestamp_ntz" if kind.tz is None else "timestamp"
    if pt.is_decimal(kind) and 0 <= kind.scale <= kind.precision <= 38:
        return f"decimal({kind.precision},{kind.scale})"
    return _FROM_ARROW.get(kind)


def _is_list(kind: pa.DataType) -> bool:
    tests = (pt.is_list, pt.is_large_list, pt.is_fixed_size_list, pt.is_list_view)
    return any(test(kind) for test in (*tests, pt.is_large_list_view))
