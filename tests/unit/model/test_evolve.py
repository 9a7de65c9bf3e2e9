from __future__ import annotations

from itertools import count

import pytest
from hypothesis import given

from deltalakedb.errors import InvalidSchema, ProtocolError, SchemaMismatch
from deltalakedb.model.evolve import (
    assign_column_mapping,
    can_store,
    can_widen,
    check_type_changes,
    merge,
    validate_schema,
)
from deltalakedb.model.schema import (
    ArrayType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
    UnknownType,
    walk,
)
from support.schemas import schemas


def kind(name):
    return PrimitiveType(name) if isinstance(name, str) else name


def table(**columns):
    return StructType(tuple(StructField(name, kind(of)) for name, of in columns.items()))


# -- validation --------------------------------------------------------------------------------


@given(schemas)
def test_strange_names_are_fine_under_column_mapping(schema):
    validate_schema(schema, mode="name")


@pytest.mark.parametrize("character", list(" ,;{}()\n\t="))
def test_characters_parquet_cannot_take(character):
    schema = table(ok="long", **{f"a{character}b": "long"})
    with pytest.raises(InvalidSchema) as caught:
        validate_schema(schema)
    assert caught.value.column == f"a{character}b"
    validate_schema(schema, mode="id")


def pair(one, two):
    return StructType((StructField(one, kind("long")), StructField(two, kind("long"))))


@pytest.mark.parametrize(
    ("schema", "column", "reason"),
    [
        (StructType(), None, "no columns"),
        (pair("a", "a"), "a", "twice"),
        (pair("a", "A"), "A", "only in case"),
        (table(s=pair("x", "X")), "s.X", "only in case"),
        (table(s=ArrayType(pair("x", "x"))), "s.element.x", "twice"),
        (table(s=MapType(kind("long"), pair("x", "x"))), "s.value.x", "twice"),
        (table(s=StructType()), "s", "no columns"),
        (StructType((StructField("", kind("long")),)), None, "needs a name"),
        (table(d="decimal(39,0)"), "d", "out of range"),
        (table(d="decimal(5,6)"), "d", "out of range"),
        (table(d=ArrayType(kind("decimal(0,0)"))), "d.element", "out of range"),
        (table(v="void"), "v", "not supported"),
        (table(g="geometry(OGC:CRS84)"), "g", "not supported"),
        (table(u=UnknownType('{"type":"udt"}')), "u", "not supported"),
    ],
)
def test_schemas_delta_cannot_hold(schema, column, reason):
    with pytest.raises(InvalidSchema, match=reason) as caught:
        validate_schema(schema)
    assert caught.value.column == column
    assert reason in caught.value.reason


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        (["nope"], "must be in the schema"),
        (["ID"], "only 'id'"),
        (["id", "id"], "twice"),
        (["s"], "cannot partition"),
        (["v"], "cannot partition"),
    ],
)
def test_partition_columns_delta_cannot_have(columns, reason):
    schema = table(id="long", s=table(x="long"), v="variant")
    validate_schema(schema, partition_columns=["id"])
    with pytest.raises(InvalidSchema, match=reason):
        validate_schema(schema, partition_columns=columns)


def test_one_column_must_hold_data():
    with pytest.raises(InvalidSchema, match="every column"):
        validate_schema(table(a="long", b="long"), partition_columns=["b", "a"])


# -- widening ----------------------------------------------------------------------------------

WIDER = {
    "byte": "short integer long double decimal(10,0) decimal(12,2)",
    "short": "integer long double decimal(10,0)",
    "integer": "long double decimal(10,0) decimal(38,28)",
    "long": "decimal(20,0) decimal(22,2)",
    "float": "double",
    "double": "",
    "date": "timestamp_ntz",
    "timestamp": "",
    "timestamp_ntz": "",
    "string": "",
    "binary": "",
    "boolean": "",
    "decimal(10,2)": "decimal(11,2) decimal(11,3) decimal(38,2)",
}
SOME = sorted({*WIDER, *" ".join(WIDER.values()).split(), "decimal(10,3)", "decimal(9,2)"})


@pytest.mark.parametrize("old", WIDER)
def test_widening_is_the_protocols_table(old):
    found = {new for new in SOME if can_widen(kind(old), kind(new))}
    listed = set(WIDER[old].split())
    decimals = {new for new in found if "decimal" in new}
    assert found - decimals == {new for new in listed if "decimal" not in new}
    assert listed <= found


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("integer", "decimal(10,1)"),
        ("integer", "decimal(9,0)"),
        ("long", "decimal(19,0)"),
        ("long", "double"),
        ("decimal(10,2)", "decimal(10,3)"),
        ("decimal(10,2)", "decimal(11,1)"),
        ("decimal(10,2)", "decimal(10,2)"),
        ("date", "timestamp"),
        ("float", "decimal(38,10)"),
        ("string", "decimal(38,0)"),
        ("long", "long"),
    ],
)
def test_no_widening(old, new):
    assert not can_widen(kind(old), kind(new))


def test_old_files_must_be_readable_as_the_new_type():
    def changed(old, new):
        change = {"fromType": old, "toType": new}
        field = StructField("x", kind(new), True, {"delta.typeChanges": [change]})
        return table(s=ArrayType(StructType((field,))))

    check_type_changes(changed("integer", "long"))
    check_type_changes(changed("decimal(6, 2)", "decimal(10, 4)"))
    check_type_changes(changed("byte", "decimal(4,1)"))  # the preview of the feature did
    with pytest.raises(ProtocolError) as caught:
        check_type_changes(changed("string", "integer"), table="t")
    assert caught.value.missing == ("s.element.x from string to integer",)
    assert (caught.value.table, caught.value.operation) == ("t", "read")


def test_what_may_be_cast_when_it_is_written():
    assert can_store(kind("long"), kind("integer"))  # the values decide
    assert can_store(kind("decimal(20,0)"), kind("long"))
    assert can_store(kind("double"), kind("float"))
    assert can_store(kind("void"), ArrayType(kind("string")))
    assert not can_store(kind("string"), kind("long"))
    assert not can_store(kind("timestamp_ntz"), kind("timestamp"))
    assert not can_store(kind("long"), ArrayType(kind("long")))


# -- merging -----------------------------------------------------------------------------------


@given(schemas)
def test_merging_a_schema_with_itself_changes_nothing(schema):
    assert merge(schema, schema) == schema
    assert merge(schema, schema, types="widen") == schema


def test_new_columns_follow_and_are_nullable():
    old = StructType((StructField("Id", kind("long"), False, {"comment": "key"}),))
    metadata = {"delta.columnMapping.id": 7, "delta.columnMapping.physicalName": "p", "c": 1}
    new = StructType(
        (StructField("z", kind("string"), False, metadata), StructField("ID", kind("integer")))
    )
    assert merge(old, new) == StructType(
        (*old.fields, StructField("z", kind("string"), True, {"c": 1}))
    )


def test_new_columns_inside_structs_arrays_and_maps():
    old = table(
        s=table(a="long"), l=ArrayType(table(a="long")), m=MapType(kind("string"), table(a="long"))
    )
    more = table(A="long", b="string")
    new = table(s=more, l=ArrayType(more), m=MapType(kind("string"), more))
    grown = table(a="long", b="string")
    assert merge(old, new) == table(s=grown, l=ArrayType(grown), m=MapType(kind("string"), grown))


def test_a_clash_shows_both_schemas():
    old, new = table(a="long", b="string", c="date"), table(A="string", b="string", d="long")
    with pytest.raises(SchemaMismatch) as caught:
        merge(old, new)
    assert caught.value.columns == ("a",)
    assert caught.value.expected == old
    assert caught.value.found == new
    assert str(caught.value).splitlines() == [
        "the data does not fit the table in a",
        "  table     | data",
        "! a: long   | A: string",
        "  b: string | b: string",
        "  c: date   | -",
        "  -         | d: long",
    ]


def test_every_clash_is_named():
    old = table(s=table(a="long", b="long"), l=ArrayType(kind("string")))
    new = table(s=table(a="date", b="long"), l=ArrayType(kind("long")))
    with pytest.raises(SchemaMismatch) as caught:
        merge(old, new)
    assert caught.value.columns == ("s.a", "l.element")


def test_types_are_kept_unless_widening_is_wanted():
    old, new = table(a="integer", b="long"), table(a="long", b="integer")
    assert merge(old, new) == old
    widened = merge(old, new, types="widen")
    assert [field.type.name for field in widened.fields] == ["long", "long"]
    change = {"fromType": "integer", "toType": "long"}
    assert widened.fields[0].metadata == {"delta.typeChanges": [change]}
    assert widened.fields[1].metadata == {}


def test_the_history_of_types_grows_on_the_nearest_column():
    def nested_map(value):
        return ArrayType(MapType(kind("float"), kind(value)))

    first = merge(table(e=nested_map("byte")), table(e=nested_map("short")), types="widen")
    wider = ArrayType(MapType(kind("double"), kind("long")))
    second = merge(first, table(e=wider), types="widen")
    assert second.fields[0].type == wider
    assert second.fields[0].metadata["delta.typeChanges"] == [
        {"fromType": "byte", "toType": "short", "fieldPath": "element.value"},
        {"fromType": "float", "toType": "double", "fieldPath": "element.key"},
        {"fromType": "short", "toType": "long", "fieldPath": "element.value"},
    ]


# -- column mapping ----------------------------------------------------------------------------


def assigned(schema, max_id=0):
    numbers = count(1)
    return assign_column_mapping(
        schema, mode="name", max_id=max_id, new_name=lambda _: f"col-{next(numbers)}"
    )


@given(schemas)
def test_every_column_gets_its_own_id_and_name(schema):
    made, max_id = assigned(schema)
    fields = [field for _, field in walk(made)]
    assert sorted(field.column_id for field in fields) == list(range(1, max_id + 1))
    assert len({field.physical_name("name") for field in fields}) == len(fields)
    assert [field.name for field in fields] == [field.name for _, field in walk(schema)]
    assert assigned(made, max_id) == (made, max_id)


def test_ids_only_grow():
    schema = table(a="long", l=ArrayType(table(x="long")))
    made, max_id = assigned(schema, max_id=40)
    assert max_id == 43
    more = StructType((*made.fields, StructField("b", kind("long"))))
    grown, max_id = assigned(more, max_id=2)
    assert grown.fields[:2] == made.fields
    assert grown.fields[2].column_id == max_id == 44


def test_an_existing_table_keeps_its_names():
    made, _ = assign_column_mapping(
        table(a="long", s=table(x="long")), mode="id", max_id=0, new_name=str
    )
    assert {field.physical_name("id") for _, field in walk(made)} == {"a", "s", "x"}


def test_nothing_happens_without_column_mapping():
    schema = table(a="long")
    made = assign_column_mapping(schema, mode="none", max_id=3, new_name=str)
    assert made == (schema, 3)
