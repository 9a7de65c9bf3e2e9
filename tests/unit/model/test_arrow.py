from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given

from deltalakedb.errors import InvalidSchema
from deltalakedb.model.arrow import (
    VARIANT,
    arrow_schema,
    arrow_type,
    delta_schema,
    physical_arrow_schema,
)
from deltalakedb.model.schema import (
    ArrayType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
    UnknownType,
)
from support.schemas import schemas


@given(schemas)
def test_schemas_survive_arrow(schema):
    assert delta_schema(arrow_schema(schema)) == schema


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("byte", pa.int8()),
        ("short", pa.int16()),
        ("integer", pa.int32()),
        ("long", pa.int64()),
        ("float", pa.float32()),
        ("double", pa.float64()),
        ("boolean", pa.bool_()),
        ("string", pa.string()),
        ("binary", pa.binary()),
        ("date", pa.date32()),
        ("timestamp", pa.timestamp("us", tz="UTC")),
        ("timestamp_ntz", pa.timestamp("us")),
        ("decimal(38,18)", pa.decimal128(38, 18)),
        ("variant", VARIANT),
        ("void", pa.null()),
    ],
)
def test_every_type_has_one_arrow_type(name, expected):
    assert arrow_type(PrimitiveType(name)) == expected


def test_nested_types():
    kind = MapType(
        PrimitiveType("string"),
        ArrayType(StructType((StructField("x", PrimitiveType("long"), False),)), False),
        False,
    )
    struct = pa.struct([pa.field("x", pa.int64(), False)])
    made = arrow_type(kind)
    assert made.key_type == pa.string()
    assert made.item_field.type == pa.list_(pa.field("element", struct, False))
    assert not made.item_field.nullable


def read(kind):
    return str(delta_schema(pa.schema([pa.field("c", kind)])).fields[0].type)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (pa.uint8(), "short"),
        (pa.uint16(), "integer"),
        (pa.uint32(), "long"),
        (pa.uint64(), "decimal(20,0)"),
        (pa.float16(), "float"),
        (pa.large_string(), "string"),
        (pa.string_view(), "string"),
        (pa.large_binary(), "binary"),
        (pa.binary_view(), "binary"),
        (pa.binary(16), "binary"),
        (pa.dictionary(pa.int8(), pa.large_string()), "string"),
        (pa.run_end_encoded(pa.int32(), pa.uint8()), "short"),
        (pa.date64(), "date"),
        (pa.timestamp("ns"), "timestamp_ntz"),
        (pa.timestamp("s", tz="Europe/Berlin"), "timestamp"),
        (pa.decimal256(20, 3), "decimal(20,3)"),
        (pa.large_list(pa.int8()), "array<byte>"),
        (pa.list_(pa.int8(), 3), "array<byte>"),
        (pa.list_view(pa.int8()), "array<byte>"),
        (pa.map_(pa.string_view(), pa.uint8()), "map<string,short>"),
        (pa.null(), "void"),
    ],
)
def test_spellings_of_arrow_are_one_type(kind, expected):
    assert read(kind) == expected


@pytest.mark.parametrize(
    "kind",
    [
        pa.time32("s"),
        pa.time64("us"),
        pa.duration("us"),
        pa.month_day_nano_interval(),
        pa.sparse_union([pa.field("a", pa.int8())]),
        pa.decimal256(50, 3),
        pa.decimal128(5, -2),
    ],
)
def test_what_delta_does_not_have_is_refused_by_column(kind):
    schema = pa.schema([pa.field("s", pa.struct([pa.field("bad", pa.list_(kind))]))])
    with pytest.raises(InvalidSchema) as caught:
        delta_schema(schema)
    assert caught.value.column == "s.bad.element"


@pytest.mark.parametrize("kind", [PrimitiveType("geometry(OGC:CRS84)"), UnknownType("{}")])
def test_types_this_build_only_carries_have_no_arrow_type(kind):
    with pytest.raises(InvalidSchema) as caught:
        arrow_schema(StructType((StructField("g", kind),)))
    assert caught.value.column == "g"


def test_a_struct_that_looks_like_a_variant_is_a_struct():
    assert isinstance(delta_schema(pa.schema([("c", VARIANT)])).fields[0].type, StructType)


MAPPED = StructType(
    (
        StructField(
            "a",
            PrimitiveType("long"),
            False,
            {"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": "col-a"},
        ),
        StructField(
            "m",
            MapType(
                PrimitiveType("integer"),
                ArrayType(
                    StructType(
                        (
                            StructField(
                                "x",
                                PrimitiveType("string"),
                                True,
                                {
                                    "delta.columnMapping.id": 3,
                                    "delta.columnMapping.physicalName": "col-x",
                                },
                            ),
                        )
                    )
                ),
            ),
            True,
            {
                "delta.columnMapping.id": 2,
                "delta.columnMapping.physicalName": "col-m",
                "delta.columnMapping.nested.ids": {
                    "col-m.key": 100,
                    "col-m.value": 101,
                    "col-m.value.element": 102,
                },
            },
        ),
    )
)


def ids(column):
    return column.metadata and column.metadata.get(b"PARQUET:field_id")


def test_files_have_physical_names_and_ids():
    made = physical_arrow_schema(MAPPED, "name")
    assert made.names == ["col-a", "col-m"]
    assert [ids(column) for column in made] == [b"1", b"2"]
    column = made.field("col-m").type
    assert (ids(column.key_field), ids(column.item_field)) == (b"100", b"101")
    element = column.item_type.value_field
    assert ids(element) == b"102"
    assert ids(element.type.field("col-x")) == b"3"


def test_ids_reach_parquet(tmp_path):
    pq.write_table(physical_arrow_schema(MAPPED, "id").empty_table(), tmp_path / "f.parquet")
    found = pq.read_schema(tmp_path / "f.parquet")
    assert [ids(column) for column in found] == [b"1", b"2"]
    assert ids(found.field("col-m").type.item_type.value_field.type.field("col-x")) == b"3"


def test_without_column_mapping_files_have_logical_names():
    made = physical_arrow_schema(MAPPED, "none")
    assert made.names == ["a", "m"]
    assert all(ids(column) is None for column in made)


def test_metadata_of_any_kind_is_kept_and_field_ids_are_not_metadata():
    metadata = {"comment": "5", "number": 5, "delta.typeChanges": [{"toType": "long"}], "n": None}
    schema = StructType((StructField("a", PrimitiveType("long"), True, metadata),))
    made = arrow_schema(schema)
    assert made.field("a").metadata[b"comment"] == b"5"
    assert delta_schema(made) == schema
    read_back = pa.schema([pa.field("a", pa.int64(), metadata={b"PARQUET:field_id": b"7"})])
    assert delta_schema(read_back).fields[0].metadata == {}
