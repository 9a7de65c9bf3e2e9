from __future__ import annotations

import json

import pytest
from hypothesis import given

from deltalakedb.errors import CorruptLog
from deltalakedb.model.schema import (
    ArrayType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
    UnknownType,
    leaves,
    mapping_mode,
    parse_schema,
    primitives,
    to_json,
    walk,
)
from support.schemas import foreign_schemas

LONG, STRING = PrimitiveType("long"), PrimitiveType("string")


@given(foreign_schemas)
def test_any_schema_survives_json(schema):
    assert parse_schema(to_json(schema)) == schema


def test_layout_is_deltas():
    schema = StructType(
        (
            StructField("a", PrimitiveType("integer"), False),
            StructField("e", ArrayType(StructType((StructField("d", LONG),)), True)),
            StructField("f", MapType(STRING, STRING), True, {"comment": "x"}),
        )
    )
    assert to_json(schema) == (
        '{"type":"struct","fields":['
        '{"name":"a","type":"integer","nullable":false,"metadata":{}},'
        '{"name":"e","type":{"type":"array","elementType":{"type":"struct","fields":['
        '{"name":"d","type":"long","nullable":true,"metadata":{}}]},"containsNull":true},'
        '"nullable":true,"metadata":{}},'
        '{"name":"f","type":{"type":"map","keyType":"string","valueType":"string",'
        '"valueContainsNull":true},"nullable":true,"metadata":{"comment":"x"}}]}'
    )


def of_type(kind):
    text = json.dumps({"type": "struct", "fields": [{"name": "c", "type": kind}]})
    return parse_schema(text).fields[0].type


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("decimal(6, 2)", PrimitiveType("decimal(6,2)")),
        ("decimal", PrimitiveType("decimal(10,0)")),
        ({"type": "variant"}, PrimitiveType("variant")),
        ("geography(OGC:CRS84, spherical)", PrimitiveType("geography(OGC:CRS84, spherical)")),
        ({"type": "array", "elementType": "long"}, ArrayType(LONG, True)),
        ({"type": "udt", "class": "C"}, UnknownType('{"type":"udt","class":"C"}')),
    ],
)
def test_lenient_and_foreign_types(written, read):
    assert of_type(written) == read


def test_what_is_unknown_is_carried_but_not_supported():
    assert PrimitiveType("long").supported
    assert PrimitiveType("decimal(38,38)").supported
    for name in ("geometry(OGC:CRS84)", "void", "decimal(39,0)", "decimal(5,6)", "interval"):
        assert not PrimitiveType(name).supported


def test_no_text_is_no_columns():
    assert parse_schema("") == StructType()


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "5",
        '"long"',
        "[]",
        '{"type":"struct"}',
        '{"type":"struct","fields":5}',
        '{"type":"struct","fields":[5]}',
        '{"type":"struct","fields":[{"type":"long"}]}',
        '{"type":"struct","fields":[{"name":5,"type":"long"}]}',
        '{"type":"struct","fields":[{"name":"a","type":"long","nullable":"x"}]}',
        '{"type":"struct","fields":[{"name":"a","type":{"type":"array"}}]}',
        '{"type":"array","elementType":"long"}',
        "[" * 100_000,
    ],
)
def test_what_is_not_a_schema_is_corrupt(text):
    with pytest.raises(CorruptLog) as caught:
        parse_schema(text)
    assert caught.value.reason


NESTED = StructType(
    (
        StructField("Id", LONG, False),
        StructField(
            "addr",
            StructType((StructField("Zip.code", STRING), StructField("geo", ArrayType(LONG)))),
            True,
            {"delta.columnMapping.physicalName": "col-1", "delta.columnMapping.id": 2},
        ),
        StructField("tags", MapType(STRING, StructType((StructField("v", LONG),)))),
    )
)


def test_names_are_found_without_regard_to_case():
    assert NESTED.field("ID") is NESTED.fields[0]
    assert NESTED.field("nope") is None
    found = NESTED.at(("ADDR", "zip.CODE"))
    assert found is not None
    assert [field.name for field in found] == ["addr", "Zip.code"]
    assert NESTED.at(("addr", "nope")) is None
    assert NESTED.at(("id", "x")) is None
    assert NESTED.at(()) is None


def test_leaves_are_what_statistics_count():
    assert [leaf.path for leaf in leaves(NESTED)] == [
        ("Id",),
        ("addr", "Zip.code"),
        ("addr", "geo"),
        ("tags",),
    ]
    assert [leaf.physical[0] for leaf in leaves(NESTED, "name")] == ["Id", "col-1", "col-1", "tags"]
    assert [leaf.physical[0] for leaf in leaves(NESTED)] == ["Id", "addr", "addr", "tags"]


def test_walk_reaches_every_column_and_type():
    paths = [".".join(path) for path, _ in walk(NESTED)]
    assert paths == ["Id", "addr", "addr.Zip.code", "addr.geo", "tags", "tags.value.v"]
    assert [kind.name for kind in primitives(NESTED)] == [
        "long",
        "string",
        "long",
        "string",
        "long",
    ]


def test_physical_name_counts_only_under_column_mapping():
    field = NESTED.fields[1]
    assert field.physical_name("none") == "addr"
    assert field.physical_name("id") == field.physical_name("name") == "col-1"
    assert field.column_id == 2


def test_column_metadata_in_words():
    field = StructField(
        "c",
        STRING,
        True,
        {
            "delta.generationExpression": "a + 1",
            "delta.invariants": '{"expression": { "expression": "c > 3"} }',
            "delta.identity.start": 10,
            "delta.identity.step": -1,
            "delta.identity.allowExplicitInsert": True,
            "delta.identity.highWaterMark": 4,
            "CURRENT_DEFAULT": "'x'",
            "__CHAR_VARCHAR_TYPE_STRING": "varchar(10)",
        },
    )
    assert field.generation_expression == "a + 1"
    assert field.invariant == "c > 3"
    assert field.default == "'x'"
    assert field.char_varchar == "varchar(10)"
    assert field.identity is not None
    assert (field.identity.start, field.identity.step) == (10, -1)
    assert (field.identity.high_water_mark, field.identity.allow_explicit_insert) == (4, True)
    plain = StructField("c", STRING)
    assert plain.invariant is plain.identity is plain.default is plain.generation_expression is None
    with pytest.raises(CorruptLog):
        _ = StructField("c", STRING, True, {"delta.invariants": "{}"}).invariant


def test_mapping_mode():
    assert mapping_mode({}) == "none"
    assert mapping_mode({"delta.columnMapping.mode": "Name"}) == "name"
    assert mapping_mode({"delta.columnMapping.mode": "id"}) == "id"
    with pytest.raises(CorruptLog):
        mapping_mode({"delta.columnMapping.mode": "other"})


def test_types_read_well():
    assert str(NESTED) == (
        "struct<Id: long not null, addr: struct<Zip.code: string, geo: array<long>>,"
        " tags: map<string,struct<v: long>>>"
    )
