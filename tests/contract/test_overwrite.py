"""Overwrite, whole or by predicate, and delete."""

from __future__ import annotations

import pyarrow as pa
import pytest

from deltalakedb.errors import (
    ConstraintViolation,
    ExpressionError,
    InvalidCommit,
    UnsupportedByBackend,
)
from support.catalogs import files_below, put, rows

SALES = pa.table(
    {
        "region": ["eu", "eu", "us", "us", None],
        "n": [1, 2, 3, 4, 5],
        "note": ["a", None, "c", "d", "e"],
    }
)


@pytest.fixture
def sales(catalog):
    return put(catalog, "sales", SALES, partition_by="region")


def row(region, n, note):
    return {"region": region, "n": n, "note": note}


def test_overwrite_replaces_every_row_and_keeps_the_past(catalog, sales):
    table = put(catalog, "sales", pa.table(row(["jp"], [9], ["z"])), mode="overwrite")
    assert rows(table) == [row("jp", 9, "z")]
    assert table.count() == 1
    assert len(rows(catalog.table("sales", version=0))) == 5


@pytest.mark.parametrize(
    ("predicate", "kept"),
    [
        pytest.param("region = 'eu'", [3, 4, 5], id="partition"),
        pytest.param("region IS NULL", [1, 2, 3, 4], id="null partition"),
        pytest.param("region IN ('eu', 'us')", [5], id="partitions"),
        pytest.param("n >= 4", [1, 2, 3], id="data"),
        pytest.param("note IS NULL", [1, 3, 4, 5], id="null data"),
        pytest.param("note > 'c'", [1, 2, 3], id="null is not a match"),
        pytest.param("region = 'us' AND n = 3", [1, 2, 4, 5], id="mixed and"),
        pytest.param("region = 'us' OR n = 1", [2, 5], id="mixed or"),
        pytest.param("n > 100", [1, 2, 3, 4, 5], id="nothing matches"),
        pytest.param("region = 'jp'", [1, 2, 3, 4, 5], id="no such partition"),
        pytest.param("n > 0", [], id="everything matches"),
        pytest.param("true", [], id="true"),
        pytest.param([("region", "=", "eu"), ("n", "<", 2)], [2, 3, 4, 5], id="tuples"),
    ],
)
def test_delete_removes_exactly_the_rows_that_match(catalog, sales, predicate, kept):
    before = sales.version()
    sales.delete(predicate)

    assert sorted(r["n"] for r in rows(sales)) == kept
    assert sorted(r["n"] for r in rows(catalog.table("sales"))) == kept
    assert sales.count() == len(kept)
    assert catalog.table("sales", version=before).count() == 5
    for n in kept:
        (found,) = rows(sales, filter=f"n = {n}")
        assert found in SALES.to_pylist()


def test_delete_without_a_predicate_empties_the_table(catalog, sales):
    metrics = sales.delete()
    assert sales.count() == 0
    assert sales.files() == []
    assert metrics["num_removed_files"] == 3
    assert sales.history(1)[0].operation == "DELETE"


def test_delete_rewrites_only_the_files_that_hold_a_match(catalog, sales):
    before = set(sales.files())
    metrics = sales.delete("n = 3")
    after = set(sales.files())

    assert len(before - after) == 1
    assert len(after - before) == 1
    assert metrics == {
        "num_removed_files": 1,
        "num_added_files": 1,
        "num_copied_rows": 1,
        "num_deleted_rows": 1,
    }
    assert sales.history(1)[0].commit_info["operationMetrics"]["numDeletedRows"] == "1"


def test_delete_of_whole_partitions_writes_no_file(catalog, sales, warehouse):
    before = files_below(warehouse)
    metrics = sales.delete("region = 'eu'")
    assert files_below(warehouse) == before
    assert metrics["num_removed_files"] == 1
    assert metrics["num_deleted_rows"] == 2


def test_rows_that_stay_survive_every_kind_of_rewrite(catalog):
    """Column mapping, nested values, columns and types that came later, all in one table."""
    properties = {"delta.columnMapping.mode": "name", "delta.enableTypeWidening": "true"}
    point = pa.struct([("x", pa.int64())])
    first = {
        "id": pa.array([1, 2, 3], pa.int32()),
        "point": pa.array([{"x": 1}, None, {"x": None}], point),
        "tags": pa.array([[{"x": 1}], [], None], pa.list_(point)),
    }
    put(catalog, "t", pa.table(first), configuration=properties)
    second = {"id": [4, 2**40], "extra": ["a", None]}
    table = put(catalog, "t", pa.table(second), schema_mode="merge")
    table.alter.rename_column("point", "the point")
    before = rows(table)
    table.delete("id IN (2, 4)")
    assert rows(table) == [r for r in before if r["id"] not in (2, 4)]
    assert {r["id"]: r["the point"] for r in rows(table)} == {
        1: {"x": 1},
        3: {"x": None},
        2**40: None,
    }
    table = put(catalog, "t", pa.table({"id": [3]}), mode="overwrite", predicate="id = 3")
    assert table.count() == 3
    assert {"id": 1, "the point": {"x": 1}, "tags": [{"x": 1}], "extra": None} in rows(table)


def test_a_delete_that_matches_nothing_changes_nothing(catalog, sales, unchanged):
    with unchanged():
        metrics = sales.delete("n = 100")
    assert metrics["num_deleted_rows"] == 0
    assert sales.version() == 0


@pytest.mark.parametrize(
    ("predicate", "new", "kept"),
    [
        ("region = 'eu'", row(["eu"], [10], ["x"]), [3, 4, 5, 10]),
        ("n BETWEEN 2 AND 3", row(["eu", "jp"], [2, 3], ["x", "y"]), [1, 2, 3, 4, 5]),
        ("region = 'us' AND n > 3", row(["us"], [40], ["x"]), [1, 2, 3, 5, 40]),
        ("region = 'jp'", row(["jp"], [10], ["x"]), [1, 2, 3, 4, 5, 10]),
        ("n > 0", row(["jp"], [10], ["x"]), [10]),
        ("region IS NULL", row([None], [50], ["x"]), [1, 2, 3, 4, 50]),
    ],
)
def test_overwrite_by_predicate_replaces_exactly_the_rows_that_match(
    catalog, sales, predicate, new, kept
):
    new = pa.table({k: pa.array(v, SALES.schema.field(k).type) for k, v in new.items()})
    table = put(catalog, "sales", new, mode="overwrite", predicate=predicate)

    assert sorted(r["n"] for r in rows(table)) == kept
    assert all(r in rows(table) for r in new.to_pylist())
    assert table.version() == 1
    last = table.history(1)[0]
    assert last.parameters["mode"] == "Overwrite"
    assert "predicate" in last.parameters


@pytest.mark.parametrize(
    ("predicate", "new"),
    [
        ("region = 'eu'", row(["us"], [10], ["x"])),
        ("n > 5", row(["eu"], [5], ["x"])),
        ("region = 'eu' AND n > 5", row(["eu", "eu"], [6, 5], ["x", "y"])),
        ("note = 'x'", row(["eu"], [1], [None])),
    ],
)
def test_new_rows_outside_the_predicate_are_refused(catalog, sales, unchanged, predicate, new):
    new = pa.table({k: pa.array(v, SALES.schema.field(k).type) for k, v in new.items()})
    with unchanged(), pytest.raises(ConstraintViolation, match="do not match") as caught:
        put(catalog, "sales", new, mode="overwrite", predicate=predicate)
    assert caught.value.rows == 1
    assert caught.value.table == "sales"


def test_overwriting_a_predicate_with_no_rows_removes_them(catalog, sales):
    table = put(catalog, "sales", SALES.slice(0, 0), mode="overwrite", predicate="n < 3")
    assert sorted(r["n"] for r in rows(table)) == [3, 4, 5]


def test_an_append_only_table_gives_up_no_row(catalog, unchanged):
    table = put(catalog, "log", SALES, configuration={"delta.appendOnly": "true"})
    put(catalog, "log", SALES)
    with unchanged():
        for change in (
            lambda: table.delete("n = 1"),
            table.delete,
            lambda: put(catalog, "log", SALES, mode="overwrite"),
            lambda: put(catalog, "log", SALES.slice(0, 1), mode="overwrite", predicate="n = 1"),
        ):
            with pytest.raises(InvalidCommit, match="append-only") as caught:
                change()
            assert caught.value.rule == "delta.appendOnly"


def test_rows_of_a_change_feed_table_leave_by_whole_files_only(catalog, unchanged):
    table = put(
        catalog,
        "t",
        SALES,
        partition_by="region",
        configuration={"delta.enableChangeDataFeed": "true"},
    )
    with unchanged(), pytest.raises(UnsupportedByBackend, match="change data feed"):
        table.delete("n = 1")
    table.delete("region = 'eu'")
    assert sorted(r["n"] for r in rows(table)) == [3, 4, 5]


@pytest.mark.parametrize(
    ("predicate", "reason"),
    [
        ("nope = 1", "nope"),
        ("n = ", "syntax"),
        ("n", "not a condition"),
        ("n = 1; DROP TABLE dl_tables", "DROP"),
        ("n IN (SELECT 1)", "subquery"),
        ("count(n) > 1", "count"),
        ([("nope", "=", 1)], "nope"),
        ([("n", "~", 1)], "~"),
        ("", "expression"),
    ],
)
def test_a_predicate_that_is_not_understood_changes_nothing(
    catalog, sales, unchanged, predicate, reason
):
    with unchanged():
        with pytest.raises(ExpressionError, match=reason):
            sales.delete(predicate)
        with pytest.raises(ExpressionError, match=reason):
            put(catalog, "sales", SALES, mode="overwrite", predicate=predicate)
        with pytest.raises(ExpressionError, match=reason):
            sales.to_arrow(filter=predicate)
