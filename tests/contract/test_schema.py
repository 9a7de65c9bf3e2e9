"""A table's schema against the schema of data: strict, merged, replaced."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from deltalakedb.errors import InvalidSchema, SchemaMismatch
from support.catalogs import put, rows

BASE = pa.table({"id": [1], "name": ["a"]})
POINTS = pa.table(
    {
        "id": [1],
        "point": pa.array([{"x": 1}], pa.struct([("x", pa.int64())])),
        "list": pa.array([[{"x": 1}]], pa.list_(pa.struct([("x", pa.int64())]))),
        "map": pa.array([[("k", {"x": 1})]], pa.map_(pa.string(), pa.struct([("x", pa.int64())]))),
    }
)
DEEPER = pa.struct([("y", pa.string()), ("x", pa.int64())])
DEEPER_POINTS = pa.table(
    {
        "id": [2],
        "point": pa.array([{"y": "p", "x": 2}], DEEPER),
        "list": pa.array([[{"y": "l", "x": 2}, None]], pa.list_(DEEPER)),
        "map": pa.array([[("k", {"y": "m", "x": 2})]], pa.map_(pa.string(), DEEPER)),
    }
)


def test_an_unknown_column_is_refused_with_both_schemas(catalog, unchanged):
    put(catalog, "t", BASE)
    with unchanged(), pytest.raises(SchemaMismatch) as caught:
        put(catalog, "t", pa.table({"id": [2], "extra": [1.5]}))
    error = caught.value
    assert error.columns == ("extra",)
    assert error.table == "t"
    assert error.expected.names == ["id", "name"]
    assert error.found.names == ["id", "extra"]
    for piece in ("schema_mode='merge'", "id: long", "name: string", "extra: double"):
        assert piece in str(error)


def test_a_type_that_does_not_fit_is_refused_with_both_schemas(catalog, unchanged):
    put(catalog, "t", BASE)
    with unchanged(), pytest.raises(SchemaMismatch) as caught:
        put(catalog, "t", pa.table({"id": ["one"], "name": ["b"]}))
    assert caught.value.columns == ("id",)
    for piece in ("id: long", "id: string", "name: string"):
        assert piece in str(caught.value)


@pytest.mark.parametrize("column", ["point", "list", "map"])
def test_an_unknown_nested_column_is_refused_not_dropped(catalog, unchanged, column):
    put(catalog, "t", POINTS)
    with unchanged(), pytest.raises(SchemaMismatch) as caught:
        put(catalog, "t", DEEPER_POINTS.select(["id", column]))
    assert caught.value.columns[0].startswith(f"{column}.")
    assert "schema_mode='merge'" in str(caught.value)


def test_merge_adds_columns_at_the_end_and_old_rows_read_null(catalog):
    put(catalog, "t", BASE)
    table = put(catalog, "t", pa.table({"extra": [1.5], "id": [2]}), schema_mode="merge")

    assert table.to_arrow().column_names == ["id", "name", "extra"]
    assert rows(table) == [
        {"id": 1, "name": "a", "extra": None},
        {"id": 2, "name": None, "extra": 1.5},
    ]
    assert rows(table, filter="extra IS NULL") == [{"id": 1, "name": "a", "extra": None}]
    assert rows(table, filter="extra > 1") == [{"id": 2, "name": None, "extra": 1.5}]
    assert catalog.table("t", version=0).to_arrow().column_names == ["id", "name"]


def test_merge_without_news_leaves_the_metadata_alone(catalog):
    put(catalog, "t", BASE)
    before = catalog.table("t").metadata()
    table = put(catalog, "t", pa.table({"ID": [2]}), schema_mode="merge")
    assert table.metadata() == before
    assert table.count() == 2


def test_merge_adds_nested_columns_too(catalog):
    put(catalog, "t", POINTS)
    table = put(catalog, "t", DEEPER_POINTS, schema_mode="merge")

    first, second = rows(table)
    assert first == {
        "id": 1,
        "point": {"x": 1, "y": None},
        "list": [{"x": 1, "y": None}],
        "map": [("k", {"x": 1, "y": None})],
    }
    assert second == {
        "id": 2,
        "point": {"x": 2, "y": "p"},
        "list": [{"x": 2, "y": "l"}, None],
        "map": [("k", {"x": 2, "y": "m"})],
    }
    assert [r["id"] for r in rows(table, filter="point.y = 'p'")] == [2]
    assert [r["id"] for r in rows(table, filter="point.y IS NULL")] == [1]


def test_nested_columns_may_be_left_out_and_come_in_any_order(catalog):
    put(catalog, "t", DEEPER_POINTS)
    table = put(catalog, "t", POINTS)
    first, second = rows(table)
    assert first["point"] == {"y": None, "x": 1}
    assert first["list"] == [{"y": None, "x": 1}]
    assert first["map"] == [("k", {"y": None, "x": 1})]
    assert second["point"] == {"y": "p", "x": 2}


def test_nested_columns_are_matched_without_regard_to_case(catalog):
    put(catalog, "t", POINTS)
    shouted = pa.struct([("X", pa.int32())])
    loud = {
        "point": pa.array([{"X": 2}], shouted),
        "list": pa.array([[{"X": 2}]], pa.large_list(shouted)),
        "map": pa.array([[("k", {"X": 2})]], pa.map_(pa.string(), shouted)),
    }
    table = put(catalog, "t", pa.table({"id": [2], **loud}))
    assert rows(table)[1] == {
        "id": 2,
        "point": {"x": 2},
        "list": [{"x": 2}],
        "map": [("k", {"x": 2})],
    }


def test_merge_works_under_column_mapping(catalog):
    put(catalog, "t", POINTS, configuration={"delta.columnMapping.mode": "name"})
    before = catalog.table("t").metadata().configuration["delta.columnMapping.maxColumnId"]
    table = put(catalog, "t", DEEPER_POINTS, schema_mode="merge")
    after = table.metadata().configuration["delta.columnMapping.maxColumnId"]

    assert int(after) > int(before)
    assert rows(table)[0]["point"] == {"x": 1, "y": None}
    assert rows(table)[1]["point"] == {"x": 2, "y": "p"}


WIDENINGS = [
    (pa.int8(), pa.int16(), 1, 300),
    (pa.int16(), pa.int32(), 1, 70_000),
    (pa.int32(), pa.int64(), 1, 2**40),
    (pa.float32(), pa.float64(), 0.5, 1e300),
    (pa.int32(), pa.float64(), 1, 0.5),
    (pa.date32(), pa.timestamp("us"), date(2026, 1, 1), datetime(2026, 1, 2, 3)),  # noqa: DTZ001
    (pa.decimal128(5, 2), pa.decimal128(10, 3), Decimal("1.25"), Decimal("1234567.125")),
    (pa.int32(), pa.decimal128(12, 2), 7, Decimal("0.25")),
]


@pytest.mark.parametrize(("narrow", "wide", "small", "large"), WIDENINGS, ids=str)
def test_merge_widens_a_type_where_the_table_allows_it(catalog, narrow, wide, small, large):
    properties = {"delta.enableTypeWidening": "true", "delta.feature.timestampNtz": "supported"}
    first = pa.table({"id": [1], "v": pa.array([small], narrow)})
    put(catalog, "t", first, configuration=properties)
    second = pa.table({"id": [2], "v": pa.array([large], wide)})
    table = put(catalog, "t", second, schema_mode="merge")

    found = table.to_arrow().sort_by("id")
    assert found.schema.field("v").type == wide
    assert found["v"].to_pylist() == [pa.scalar(small, narrow).cast(wide).as_py(), large]
    changes = table.schema().field("v").metadata["delta.typeChanges"]
    assert len(changes) == 1
    assert [r["id"] for r in rows(table, filter=[("v", "=", large)])] == [2]
    assert rows(table, filter="v IS NULL") == []


def test_merge_keeps_the_type_where_the_table_does_not_allow_widening(catalog, unchanged):
    put(catalog, "t", pa.table({"v": pa.array([1], pa.int32())}))
    put(catalog, "t", pa.table({"v": pa.array([2], pa.int64())}), schema_mode="merge")
    assert str(catalog.table("t").schema().field("v").type) == "integer"
    with unchanged(), pytest.raises(SchemaMismatch):
        put(catalog, "t", pa.table({"v": [2**40]}), schema_mode="merge")


def test_overwrite_can_replace_schema_and_partitioning(catalog):
    put(catalog, "t", BASE, partition_by="name")
    new = pa.table({"when": [datetime(2026, 1, 1, tzinfo=UTC)], "id": ["one"], "k": [5]})
    table = put(
        catalog, "t", new, mode="overwrite", schema_mode="overwrite", partition_by=["k", "id"]
    )

    assert table.to_arrow().column_names == ["when", "id", "k"]
    assert table.metadata().partition_columns == ("k", "id")
    assert rows(table) == new.to_pylist()
    assert table.partitions() == [{"k": 5, "id": "one"}]
    assert rows(table, filter="id = 'one' AND k = 5") == new.to_pylist()
    old = catalog.table("t", version=0)
    assert old.metadata().partition_columns == ("name",)
    assert rows(old) == BASE.to_pylist()
    assert rows(old, filter="id = 1 AND name = 'a'") == BASE.to_pylist()


def test_a_replaced_schema_keeps_the_partitioning_it_still_can(catalog):
    put(catalog, "t", BASE, partition_by="name")
    new = pa.table({"name": ["b"], "other": [1]})
    table = put(catalog, "t", new, mode="overwrite", schema_mode="overwrite")
    assert table.metadata().partition_columns == ("name",)
    table = put(catalog, "t", pa.table({"other": [1]}), mode="overwrite", schema_mode="overwrite")
    assert table.metadata().partition_columns == ()
    assert rows(table) == [{"other": 1}]


def test_replacing_the_schema_keeps_name_id_and_properties(catalog):
    before = put(catalog, "t", BASE, configuration={"team": "x"}).metadata()
    after = put(
        catalog, "t", pa.table({"z": [1]}), mode="overwrite", schema_mode="overwrite"
    ).metadata()
    assert (after.id, after.name, after.configuration) == (before.id, "t", {"team": "x"})


def test_overwrite_without_a_schema_mode_keeps_the_schema(catalog, unchanged):
    put(catalog, "t", BASE)
    with unchanged(), pytest.raises(SchemaMismatch):
        put(catalog, "t", pa.table({"other": [1]}), mode="overwrite")
    table = put(catalog, "t", pa.table({"id": [5]}), mode="overwrite")
    assert rows(table) == [{"id": 5, "name": None}]
    table = put(catalog, "t", pa.table({"z": [1]}), mode="overwrite", schema_mode="merge")
    assert rows(table) == [{"id": None, "name": None, "z": 1}]


def test_another_partitioning_is_refused(catalog, unchanged):
    put(catalog, "t", BASE, partition_by="name")
    with unchanged(), pytest.raises(SchemaMismatch, match="partitioned by") as caught:
        put(catalog, "t", BASE, partition_by="id")
    assert caught.value.expected == ("name",)
    assert rows(put(catalog, "t", BASE, partition_by=["name"])) == BASE.to_pylist() * 2


def test_a_column_of_nothing_but_nulls_fits_any_column_but_makes_none(catalog, unchanged):
    put(catalog, "t", BASE)
    assert {"id": 2, "name": None} in rows(
        put(catalog, "t", pa.table({"id": [2], "name": pa.nulls(1)}))
    )
    with unchanged(), pytest.raises(SchemaMismatch, match=r"void|null"):
        put(catalog, "new", pa.table({"id": [2], "empty": pa.nulls(1)}))
    with unchanged(), pytest.raises(SchemaMismatch):
        put(catalog, "t", pa.table({"id": [2], "empty": pa.nulls(1)}), schema_mode="merge")


@pytest.mark.parametrize(
    ("schema", "options", "reason"),
    [
        (pa.schema([]), {}, "no columns"),
        (pa.schema([("a", pa.int64()), ("a", pa.string())]), {}, "twice"),
        (pa.schema([("Name", pa.int64()), ("nAME", pa.string())]), {}, "case"),
        (pa.schema([("s", pa.struct([("x", pa.int64()), ("X", pa.int64())]))]), {}, "case"),
        (pa.schema([("", pa.int64())]), {}, "name"),
        (pa.schema([("a b", pa.int64())]), {}, "column mapping"),
        (pa.schema([("a;b", pa.int64())]), {}, "column mapping"),
        (pa.schema([("t", pa.time64("us"))]), {}, "time64"),
        (pa.schema([("d", pa.duration("s"))]), {}, "duration"),
        (pa.schema([("d", pa.decimal256(50, 2))]), {}, "decimal"),
        (pa.schema([("a", pa.int64())]), {"partition_by": "b"}, "partition column"),
        (pa.schema([("a", pa.int64())]), {"partition_by": "a"}, "every column"),
        (pa.schema([("a", pa.int64()), ("b", pa.int64())]), {"partition_by": "A"}, "'a'"),
        (
            pa.schema([("a", pa.int64()), ("l", pa.list_(pa.int64()))]),
            {"partition_by": "l"},
            "cannot partition",
        ),
        (
            pa.schema([("a", pa.int64()), ("b", pa.int64())]),
            {"partition_by": ["a", "a"]},
            "twice",
        ),
    ],
)
def test_a_schema_delta_cannot_hold_is_refused(catalog, unchanged, schema, options, reason):
    with unchanged():
        with pytest.raises(InvalidSchema, match=reason):
            catalog.create_table("t", schema, **options)
        with pytest.raises(InvalidSchema, match=reason):
            put(catalog, "t", schema.empty_table(), **options)


def test_data_with_colliding_columns_is_refused(catalog, unchanged):
    put(catalog, "t", BASE)
    with unchanged():
        for names in (["id", "ID"], ["id", "id"]):
            twice = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names)
            with pytest.raises(SchemaMismatch):
                put(catalog, "t", twice)
            with pytest.raises(SchemaMismatch):
                put(catalog, "t", twice, schema_mode="merge")
