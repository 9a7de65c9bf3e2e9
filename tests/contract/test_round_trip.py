"""What is written is what is read: every type, every awkward value, inside files and partitions."""

# ruff: noqa: DTZ001 - timestamp_ntz has no time zone

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from deltalakedb.errors import InvalidArgument
from deltalakedb.model.arrow import delta_schema
from support import values
from support.catalogs import put, rows
from support.values import shown


def test_every_type_comes_back_as_it_went_in(catalog):
    table = put(catalog, "t", values.FLAT_TABLE)

    found = table.to_arrow()
    assert found.schema.remove_metadata() == values.FLAT
    assert shown(found) == shown(values.FLAT_TABLE)


def test_nested_values_come_back_as_they_went_in(catalog):
    table = put(catalog, "t", values.NESTED_TABLE)

    found = table.to_arrow()
    assert delta_schema(found.schema) == table.schema()
    assert shown(found) == shown(values.NESTED_TABLE)


@pytest.mark.parametrize("mode", ["name", "id"])
def test_column_mapping_does_not_change_a_value(catalog, mode):
    data = values.NESTED_TABLE
    table = put(catalog, "t", data, configuration={"delta.columnMapping.mode": mode})

    assert shown(table.to_arrow()) == shown(data)
    assert shown(table.to_arrow(["deep", "id"])) == shown(data.select(["deep", "id"]))
    assert [r["id"] for r in rows(table, filter="point.x = 1")] == [1]


@pytest.mark.parametrize("name", values.FLAT.names)
def test_every_partitionable_type_comes_back_from_a_partition(catalog, name):
    data = values.FLAT_TABLE.select([name]).append_column(
        "row", pa.array(range(values.FLAT_TABLE.num_rows))
    )
    table = put(catalog, "t", data, partition_by=[name])

    # Delta has one way to write null and the empty text in a partition: both are null.
    empty = ("", b"")
    expected = [{**row, name: None} if row[name] in empty else row for row in data.to_pylist()]
    # A partition is known by its value, and 0.0 equals -0.0.
    expected = _unsigned(expected)
    assert shown(_unsigned(table.to_arrow().to_pylist())) == shown(expected)
    for row in expected:
        value = row[name]
        found = rows(table, filter=[(name, "=", value)])
        assert row["row"] in [r["row"] for r in found], f"{name} = {value!r}"
        assert all(repr(r[name]) == repr(value) for r in _unsigned(found)), f"{name} = {value!r}"


def _unsigned(found):
    return [
        {k: 0.0 if v == 0.0 and isinstance(v, float) else v for k, v in r.items()} for r in found
    ]


def test_partition_folders_may_hold_any_text(catalog):
    texts = [
        "plain",
        "a/b",
        "../up",
        "..",
        "a=b",
        "50%",
        "%2F",
        "x y",
        'it\'s "q"',
        "semi;colon",
        "newline\n",
        "tab\t",
        "雪🎿",
        "ÄÖ",
        "#?&+",
        "back\\slash",
        "{brace}[x]",
        "__HIVE_DEFAULT_PARTITION__ ",
        " lead",
        "trail ",
        "null",
        "NULL",
        "*:<>|",
        "~",
        "a" * 200,
    ]
    data = pa.table({"p": [*texts, None], "n": range(len(texts) + 1)})
    table = put(catalog, "t", data, partition_by="p")

    assert rows(table) == sorted(data.to_pylist(), key=repr)
    assert len(table.files()) == len(texts) + 1
    for number, text in enumerate(texts):
        assert rows(table, filter=[("p", "=", text)]) == [{"p": text, "n": number}], text
        assert len(table.files([("p", "=", text)])) == 1, text
    assert rows(table, filter="p IS NULL") == [{"p": None, "n": len(texts)}]


def test_partition_values_beyond_the_calendar_are_refused(catalog, unchanged):
    far = pa.array([2**31 - 1], pa.int32()).cast(pa.date32())
    with unchanged(), pytest.raises(InvalidArgument, match="9999"):
        put(catalog, "t", pa.table({"p": far, "n": [1]}), partition_by="p")


def test_several_partition_columns_split_by_combination(catalog):
    combinations = [
        {"a": a, "b": b, "c": c, "n": number}
        for number, (a, b, c) in enumerate(
            (a, b, c)
            for a in (1, 2, None)
            for b in (date(2026, 1, 1), None)
            for c in (Decimal("1.50"), Decimal("-0.25"))
        )
    ]
    schema = pa.schema(
        [("a", pa.int32()), ("b", pa.date32()), ("c", pa.decimal128(5, 2)), ("n", pa.int64())]
    )
    data = pa.Table.from_pylist(combinations * 3, schema)
    table = put(catalog, "t", data, partition_by=["c", "a", "b"])

    assert shown(table.to_arrow()) == shown(data)
    assert len(table.files()) == len(combinations)
    parts = [{k: row[k] for k in ("c", "a", "b")} for row in combinations]
    assert shown(table.partitions()) == shown(parts)


def test_arrows_many_spellings_of_a_type_are_stored_as_one(catalog):
    moment = datetime(2026, 1, 1, 12, tzinfo=UTC)
    data = pa.table(
        {
            "large": pa.array(["a", None], pa.large_string()),
            "view": pa.array(["b", None], pa.string_view()),
            "dictionary": pa.array(["c", None]).dictionary_encode(),
            "bytes": pa.array([b"xy", None], pa.binary(2)),
            "unsigned": pa.array([2**32 - 1, None], pa.uint32()),
            "huge": pa.array([2**64 - 1, None], pa.uint64()),
            "half": pa.array([1.5, None], pa.float16()),
            "seconds": pa.array([moment, None], pa.timestamp("s", "UTC")),
            "zone": pa.array([moment, None], pa.timestamp("us", "Europe/Berlin")),
            "nanos": pa.array([1_000_000_001, None], pa.timestamp("ns")),
            "day": pa.array([date(2026, 1, 1), None], pa.date64()),
            "fixed": pa.array([[1, 2], None], pa.list_(pa.int64(), 2)),
            "large_list": pa.array([[1], None], pa.large_list(pa.int64())),
            "list_view": pa.array([[1, 2], None], pa.list_view(pa.int64())),
            "names": pa.array([["x"], None], pa.list_(pa.dictionary(pa.int8(), pa.string()))),
            "runs": pa.RunEndEncodedArray.from_arrays([1, 2], pa.array(["r", None])),
        }
    )
    table = put(catalog, "t", data)

    assert rows(table)[0] == {
        "large": "a",
        "view": "b",
        "dictionary": "c",
        "bytes": b"xy",
        "unsigned": 2**32 - 1,
        "huge": Decimal(2**64 - 1),
        "half": 1.5,
        "seconds": moment,
        "zone": moment,
        "nanos": datetime(1970, 1, 1, 0, 0, 1),  # Delta keeps microseconds
        "day": date(2026, 1, 1),
        "fixed": [1, 2],
        "large_list": [1],
        "list_view": [1, 2],
        "names": ["x"],
        "runs": "r",
    }
    assert all(value is None for value in rows(table)[1].values())


def test_statistics_of_awkward_values_never_hide_a_row(catalog):
    """One file a row: what the file holds must be found whatever its bounds look like."""
    for row in values.FLAT_ROWS:
        table = put(catalog, "t", pa.Table.from_pylist([row], values.FLAT))
    assert len(table.files()) == len(values.FLAT_ROWS)
    for row in values.FLAT_ROWS:
        for name, value in row.items():
            found = rows(table, columns=[name], filter=[(name, "=", value)])
            assert any(_equal(r[name], value) for r in found), f"{name} = {value!r}"
            assert all(_equal(r[name], value) for r in found), f"{name} = {value!r}"


def _equal(left, right):
    both = isinstance(left, float) and isinstance(right, float)
    return left == right or (both and math.isnan(left) and math.isnan(right))
