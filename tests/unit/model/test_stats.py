from __future__ import annotations

import json
import math
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltalakedb.errors import InvalidArgument
from deltalakedb.model.arrow import arrow_schema
from deltalakedb.model.expr import evaluate, parse
from deltalakedb.model.intervals import interval_reader, intervals
from deltalakedb.model.keys import EMPTY, MAX, MIN, UNKNOWN, Interval, float_key, string_key
from deltalakedb.model.schema import ArrayType, MapType, PrimitiveType, StructField, StructType
from deltalakedb.model.skipping import may_match, skipping
from deltalakedb.model.stats import (
    FileStats,
    StatsColumn,
    lower_text,
    stats_columns,
    to_json,
    tracked_columns,
    upper_text,
)
from deltalakedb.model.stats import (
    parse as parse_stats,
)
from deltalakedb.model.stats_collect import Collector, from_arrow, from_parquet_metadata
from support.predicates import SCHEMA, predicates, rows, struct

COLUMNS = stats_columns(SCHEMA, [], {})


def _table(data, schema=SCHEMA):
    return pa.Table.from_pylist(data, schema=arrow_schema(schema))


def _footer(table, path, **options):
    pq.write_table(table, path, **options)
    return pq.read_metadata(path)


def _one(kind, *values):
    """Statistics of one column."""
    table = pa.table({"x": pa.array(values, kind)})
    names = {pa.float32(): "float", pa.float64(): "double", pa.string(): "string"}
    column = StatsColumn(("x",), ("x",), PrimitiveType(names[kind]))
    return from_arrow(table, [column])


# -- which columns -----------------------------------------------------------------------------


def _names(schema, partition_columns=(), **configuration):
    properties = {f"delta.dataSkipping{name}": text for name, text in configuration.items()}
    return [".".join(c.path) for c in stats_columns(schema, partition_columns, properties)]


WIDE = StructType(
    (
        *struct(a="long", p="string").fields,
        StructField("s", struct(x="long", y="string")),
        StructField("l", ArrayType(PrimitiveType("long"))),
        *struct(z="binary", **{"odd.name": "long"}).fields,
    )
)


def test_the_leading_leaves_have_statistics():
    many = struct(**{f"c{number}": "long" for number in range(40)})
    assert _names(many) == [f"c{number}" for number in range(32)]
    assert _names(WIDE, ["p"]) == ["a", "s.x", "s.y", "l", "z", "odd.name"]
    assert _names(WIDE, ["p"], NumIndexedCols="2") == ["a", "s.x"]
    assert _names(WIDE, ["p"], NumIndexedCols="0") == []
    assert len(_names(many, NumIndexedCols="-1")) == 40


def test_named_columns_have_statistics():
    assert _names(WIDE, StatsColumns="S, a") == ["a", "s.x", "s.y"]
    assert _names(WIDE, StatsColumns="s.y,`odd.name`,nope", NumIndexedCols="1") == [
        "s.y",
        "odd.name",
    ]


@pytest.mark.parametrize("text", ["many", "-2", "1.5"])
def test_a_broken_number_of_columns(text):
    with pytest.raises(InvalidArgument, match="dataSkippingNumIndexedCols"):
        _names(WIDE, NumIndexedCols=text)


def test_bounds_only_for_types_with_order():
    bounded = {c.path[-1]: c.bounded for c in stats_columns(WIDE, [], {})}
    assert bounded == {"a": True, "p": True, "x": True, "y": True, "l": False, "z": False} | {
        "odd.name": True
    }
    assert not StatsColumn(("b",), ("b",), PrimitiveType("boolean")).bounded
    tracked = [(c.path[-1], c.partition) for c in tracked_columns(WIDE, ["p"], {})]
    assert tracked == [("p", True), ("a", False), ("x", False), ("y", False), ("odd.name", False)]


def test_statistics_have_physical_names():
    metadata = {"delta.columnMapping.physicalName": "col-1", "delta.columnMapping.id": 1}
    schema = StructType((StructField("a", PrimitiveType("long"), True, metadata),))
    [column] = stats_columns(schema, [], {"delta.columnMapping.mode": "name"})
    assert (column.path, column.physical) == (("a",), ("col-1",))
    stats = from_arrow(pa.table({"col-1": [1, 2]}), [column])
    assert json.loads(to_json(stats))["minValues"] == {"col-1": 1}


# -- text --------------------------------------------------------------------------------------


@given(st.text() | st.text("a\x7f\U0010ffff\U0001f600", min_size=30, max_size=40))
def test_cut_strings_are_still_bounds(text):
    assert lower_text(text) <= text
    assert len(lower_text(text)) <= 32
    upper = upper_text(text)
    assert upper is None or (upper >= text and len(upper) <= 33)


def test_tie_breakers():
    assert upper_text("a" * 32) == "a" * 32
    assert upper_text("a" * 33) == "a" * 32 + "\x7f"
    assert upper_text("a" * 32 + "é") == "a" * 32 + "\U0010ffff"
    assert upper_text("a" * 32 + "\U0010ffff") is None
    assert lower_text("\U0001f600" * 40) == "\U0001f600" * 32


# -- JSON --------------------------------------------------------------------------------------


def test_the_layout_is_deltas():
    stats = FileStats(
        num_records=3,
        min_values={
            ("ts",): datetime(1960, 1, 1, 0, 0, 0, 123999, tzinfo=UTC),
            ("n",): datetime.fromisoformat("2024-01-01T05:00:00"),
            ("d",): date(2024, 1, 5),
            ("dec",): Decimal("12345678901234567890.20"),
            ("st", "x"): 1,
            ("st", "y"): "é",
            ("f",): 0.5,
        },
        max_values={},
        null_count={("st", "x"): 2},
        tight_bounds=False,
    )
    assert to_json(stats) == (
        '{"numRecords":3,"minValues":{"ts":"1960-01-01T00:00:00.123Z","n":"2024-01-01T05:00:00.000",'
        '"d":"2024-01-05","dec":12345678901234567890.20,"st":{"x":1,"y":"é"},"f":0.5},'
        '"maxValues":{},"nullCount":{"st":{"x":2}},"tightBounds":false}'
    )


TYPES = {column.physical: column.type for column in COLUMNS}


@given(rows)
def test_json_reads_back(table):
    stats = from_arrow(_table(table), COLUMNS)
    again = parse_stats(to_json(stats), TYPES)
    assert again.num_records == len(table)
    assert again.null_count == stats.null_count
    for found, bounds in (
        (again.min_values, stats.min_values),
        (again.max_values, stats.max_values),
    ):
        assert found.keys() == bounds.keys()
        for path, value in bounds.items():
            cut = value.microsecond % 1000 if isinstance(value, datetime) else 0
            assert found[path] == (
                value.replace(microsecond=value.microsecond - cut) if cut else value
            )


@pytest.mark.parametrize(
    "text", [None, "", "nonsense", "[]", '{"numRecords":"x"}', '{"minValues":5}']
)
def test_broken_statistics_are_no_statistics(text):
    assert parse_stats(text) == FileStats()
    assert intervals(text, {}, tracked_columns(SCHEMA, [], {})) == [UNKNOWN] * len(COLUMNS)


def test_parse_without_types_keeps_json():
    stats = parse_stats('{"numRecords":1,"minValues":{"a":{"b":"x"},"c":null},"tightBounds":true}')
    assert stats == FileStats(1, {("a", "b"): "x"}, {}, {}, True)


# -- collection --------------------------------------------------------------------------------


@settings(max_examples=200)
@given(rows, st.integers(1, 3))
def test_footers_and_arrow_agree(tmp_path_factory, table, group):
    data = _table(table)
    collector = Collector(COLUMNS)
    for batch in data.to_batches(max_chunksize=group):
        collector.add(batch)
    metadata = _footer(data, tmp_path_factory.getbasetemp() / "agree.parquet", row_group_size=group)
    assert from_parquet_metadata(metadata, COLUMNS, nan=collector.nan) == collector.finish()
    assert collector.finish() == from_arrow(data, COLUMNS)


@settings(max_examples=300)
@given(rows)
def test_bounds_hold(table):
    stats = from_arrow(_table(table), COLUMNS)
    for row in table:
        for column in COLUMNS:
            path = column.physical
            value = evaluate(parse_path(path), row)
            if value is None:
                assert stats.null_count[path] > 0
            if value is not None and path in stats.min_values:
                assert stats.min_values[path] <= value or math.isnan(value)
            if value is not None and path in stats.max_values:
                assert value <= stats.max_values[path]


def parse_path(path):
    from deltalakedb.model.expr import Column

    return Column(path)


def test_types(tmp_path):
    """Every type that has statistics, as Delta writes them, from both sources."""
    schema = StructType(
        (
            *struct(b="byte", h="short", i="integer", l="long", f="float", d="double").fields,
            *struct(s="string", day="date", ts="timestamp", n="timestamp_ntz").fields,
            *struct(small="decimal(9,2)", big="decimal(38,10)", t="boolean", x="binary").fields,
            StructField("list", ArrayType(PrimitiveType("long"))),
            StructField("map", MapType(PrimitiveType("string"), PrimitiveType("long"))),
            StructField("st", StructType((StructField("in", struct(deep="string")),))),
            StructField("after", PrimitiveType("long")),
        )
    )
    row = {
        "b": -1,
        "h": 2,
        "i": 3,
        "l": 2**62,
        "f": 0.5,
        "d": -0.0,
        "s": "é" * 40,
        "day": date(1960, 2, 29),
        "ts": datetime(1960, 1, 1, 0, 0, 0, 123456, tzinfo=UTC),
        "n": datetime.fromisoformat("2024-01-01T05:00:00.123456"),
        "small": Decimal("-1.25"),
        "big": Decimal("1234567890123456789012345678.0123456789"),
        "t": True,
        "x": b"\x00",
        "list": [1, None],
        "map": [("k", 1)],
        "st": {"in": {"deep": "v"}},
        "after": 9,
    }
    data = _table([row, dict.fromkeys(row)], schema)
    columns = stats_columns(schema, [], {})
    stats = from_arrow(data, columns)
    found = json.loads(to_json(stats), parse_float=str)
    assert found["minValues"] == {
        "b": -1,
        "h": 2,
        "i": 3,
        "l": 2**62,
        "f": "0.5",
        "d": "0.0",
        "s": "é" * 32,
        "day": "1960-02-29",
        "ts": "1960-01-01T00:00:00.123Z",
        "n": "2024-01-01T05:00:00.123",
        "small": "-1.25",
        "big": "1234567890123456789012345678.0123456789",
        "st": {"in": {"deep": "v"}},
        "after": 9,
    }
    assert found["maxValues"]["s"] == "é" * 32 + "\U0010ffff"
    assert found["nullCount"] == {**dict.fromkeys(row, 1), "st": {"in": {"deep": 1}}}
    for options in ({}, {"store_decimal_as_integer": True}, {"use_dictionary": False}):
        footer = _footer(data, tmp_path / "types.parquet", **options)
        again = from_parquet_metadata(footer, columns, nan=())
        assert again.min_values == stats.min_values
        assert again.max_values == stats.max_values
        missing = {("list",), ("map",)}
        assert again.null_count == {k: v for k, v in stats.null_count.items() if k not in missing}


def test_nan_takes_the_maximum_away():
    stats = _one(pa.float64(), 1.0, math.nan, 3.0)
    assert (stats.min_values, stats.max_values) == ({("x",): 1.0}, {})
    stats = _one(pa.float32(), math.nan, None)
    assert (stats.min_values, stats.max_values, stats.null_count) == ({}, {}, {("x",): 1})


def test_infinities_are_left_out():
    stats = _one(pa.float64(), -math.inf, 1.0)
    assert (stats.min_values, stats.max_values) == ({}, {("x",): 1.0})


def test_footers_of_unknown_floats_have_no_maximum(tmp_path):
    footer = _footer(pa.table({"f": [1.0, 2.0]}), tmp_path / "f.parquet")
    columns = stats_columns(struct(f="double"), [], {})
    assert from_parquet_metadata(footer, columns).max_values == {}
    assert from_parquet_metadata(footer, columns).min_values == {("f",): 1.0}
    assert from_parquet_metadata(footer, columns, nan={("f",)}).max_values == {}
    assert from_parquet_metadata(footer, columns, nan=()).max_values == {("f",): 2.0}


def test_footers_without_statistics(tmp_path):
    footer = _footer(_table([]), tmp_path / "none.parquet", write_statistics=False)
    assert from_parquet_metadata(footer, COLUMNS, nan=()).num_records == 0
    data = pa.table({"id": [1, 2]})
    footer = _footer(data, tmp_path / "none.parquet", write_statistics=False)
    assert from_parquet_metadata(footer, COLUMNS) == FileStats(2)


def test_times_beyond_python_are_left_out(tmp_path):
    schema = struct(ts="timestamp", d="date")
    data = pa.table(
        {
            "ts": pa.array([0, 2**61], pa.timestamp("us", "UTC")),
            "d": pa.array([0, 2**30], pa.int32()).cast(pa.date32()),
        }
    )
    columns = stats_columns(schema, [], {})
    for stats in (
        from_arrow(data, columns),
        from_parquet_metadata(_footer(data, tmp_path / "far.parquet"), columns),
    ):
        assert stats.min_values.keys() == {("ts",), ("d",)}
        assert stats.max_values == {}


def test_spellings_of_arrow(tmp_path):
    schema = struct(s="string", ts="timestamp")
    columns = stats_columns(schema, [], {})
    moments = pa.array([1_999, 2_001], pa.timestamp("ns", "UTC"))
    for text in (pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())):
        data = pa.table(
            {
                "s": pa.array(["b", "a"]).cast(text),
                "ts": moments.cast(pa.timestamp("us", "UTC"), safe=False),
            }
        )
        stats = from_arrow(data, columns)
        assert stats.min_values[("s",)] == "a"
    footer = _footer(pa.table({"ts": moments}), tmp_path / "ns.parquet")
    stats = from_parquet_metadata(footer, columns)
    assert stats.max_values[("ts",)] == datetime(1970, 1, 1, 0, 0, 0, 2, tzinfo=UTC)


def test_columns_the_data_does_not_have(tmp_path):
    data = pa.table({"id": [1, 2]})
    stats = from_arrow(data, COLUMNS)
    assert stats.null_count[("st", "x")] == 2
    assert stats.min_values == {("id",): 1}
    footer = from_parquet_metadata(_footer(data, tmp_path / "less.parquet"), COLUMNS)
    assert footer == FileStats(2, {("id",): 1}, {("id",): 2}, {("id",): 0})


def test_batches_add_up():
    batches = pa.table({"id": range(10)}).to_batches(max_chunksize=3)
    stats = from_arrow(iter(batches), COLUMNS[:1])
    assert stats == FileStats(10, {("id",): 0}, {("id",): 9}, {("id",): 0})


# -- intervals ---------------------------------------------------------------------------------


def _interval(kind, low, high, nulls=0, rows=10, **column):
    def tree(value):
        return {} if value is None else {"x": value}

    stats = {
        "numRecords": rows,
        "minValues": tree(low),
        "maxValues": tree(high),
        "nullCount": {"x": nulls},
    }
    columns = (StatsColumn(("x",), ("x",), PrimitiveType(kind), **column),)
    [found] = intervals(json.dumps(stats), {}, columns)
    return found


@pytest.mark.parametrize(
    ("kind", "low", "high", "expected"),
    [
        ("long", -(2**63), 2**63 - 1, (MIN, MAX)),
        ("integer", 1, None, (1, MAX)),
        ("integer", "x", 5, (MIN, MAX)),
        ("integer", 1.5, 5, (MIN, MAX)),
        ("integer", 7, 5, (MIN, MAX)),
        ("date", "1970-01-02", "1970-01-03", (1, 2)),
        ("timestamp", "1970-01-01T00:00:00.001Z", "1970-01-01T00:00:00.002Z", (1000, 2999)),
        ("timestamp", "1970-01-01T01:00:00.000+01:00", None, (0, MAX)),
        ("timestamp_ntz", "1970-01-01 00:00:00", "1970-01-01T00:00:00.001", (0, 1999)),
        ("timestamp_ntz", "1970-01-01", "1970-01-01", (0, 999)),  # widened from a date
        ("boolean", False, True, (0, 1)),
        ("double", 1, 2.5, (float_key(1.0), float_key(2.5))),
        ("double", "-Infinity", "NaN", (MIN, MAX)),
        ("double", "-Infinity", "Infinity", (float_key(-math.inf), float_key(math.inf))),
        ("double", -0.0, 0.0, (0, 0)),
        ("float", 0.1, 0.1, (float_key(0.10000000149011612),) * 2),
        ("decimal(10,2)", 1.25, 3, (125, 300)),
        ("decimal(10,2)", "1.25", "x", (MIN, MAX)),
        ("decimal(38,0)", 10**30, 10**31, (MAX, MAX)),
    ],
)
def test_intervals(kind, low, high, expected):
    found = _interval(kind, low, high)
    assert (found.lo, found.hi) == expected
    assert found.nulls == 0


def test_null_counts():
    assert _interval("long", 1, 2, nulls=3).nulls == 1
    assert _interval("long", 1, 2, nulls=None).nulls == 1
    assert _interval("long", 1, 2, nulls=10) == EMPTY
    assert _interval("long", None, None, nulls=10) == EMPTY
    assert _interval("long", 1, 2, nulls=3, rows=None) == Interval(1, 2, 1)


def test_decimals_that_went_through_a_double():
    real = Decimal("12345678901234567890.20")
    found = _interval("decimal(38,2)", float(real), float(real))
    assert found.lo <= int(real * 100) == 1234567890123456789020 <= found.hi or found.hi == MAX
    real = Decimal("12345678901234567.89")
    found = _interval("decimal(38,2)", float(real), float(real))
    assert found.lo < int(real * 100) < found.hi
    assert _interval("decimal(38,2)", 1.25, 1.25)[:2] == (125, 125)
    exact = json.loads("12345678901234567.89", parse_float=Decimal)
    stats = f'{{"minValues":{{"x":{exact}}},"maxValues":{{"x":{exact}}}}}'
    columns = (StatsColumn(("x",), ("x",), PrimitiveType("decimal(38,2)")),)
    assert intervals(stats, {}, columns)[0][:2] == (1234567890123456789,) * 2


def test_floats_that_became_doubles():
    found = _interval("double", 0.1, 0.1, was_float=True)
    assert found.lo == float_key(0.1)
    assert found.hi == float_key(0.10000000149011612)


def test_strings_keep_their_text():
    assert _interval("string", "a", "b") == Interval(string_key("a"), string_key("b"), 0, "a", "b")
    long = _interval("string", "a" * 50, "b" * 50)
    assert (long.min_string, long.max_string) == ("a" * 32, "b" * 32 + "\x7f")
    nul = _interval("string", "a\0", "b\0")
    assert (nul.min_string, nul.max_string) == ("a", None)
    assert _interval("string", None, "b").min_string is None


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        ("integer", "5", Interval(5, 5, 0)),
        ("string", "x", Interval(string_key("x"), string_key("x"), 0, "x", "x")),
        ("date", "1970-01-02", Interval(1, 1, 0)),
        ("timestamp", "1970-01-01 00:00:00.000001", Interval(1, 1, 0)),
        ("timestamp", "1970-01-01T00:00:00.000001Z", Interval(1, 1, 0)),
        ("boolean", "true", Interval(1, 1, 0)),
        ("double", "1.5", Interval(float_key(1.5), float_key(1.5), 0)),
        ("decimal(38,18)", "5", Interval(5 * 10**18, 5 * 10**18, 0)),
        ("integer", None, EMPTY),
        ("string", "", EMPTY),
        ("integer", "x", UNKNOWN),
        ("boolean", "x", UNKNOWN),
    ],
)
def test_partition_values(kind, text, expected):
    columns = (StatsColumn(("p",), ("p",), PrimitiveType(kind), partition=True),)
    assert intervals(None, {"p": text}, columns) == [expected]
    assert intervals(None, {}, columns) == [UNKNOWN]


def test_nested_and_odd_columns():
    columns = (
        StatsColumn(("a.b",), ("a.b",), PrimitiveType("long")),
        StatsColumn(("p",), ("p",), PrimitiveType("long"), partition=True),
        StatsColumn(("s", "x"), ("s", "x"), PrimitiveType("long")),
        StatsColumn(("s", "t", "y"), ("s", "t", "y"), PrimitiveType("long")),
    )
    bounds = {"a.b": 1, "s": {"t": {"y": 3}, "x": 2}, "other": [1, {"x": None}]}
    stats = json.dumps({"numRecords": 1, "minValues": bounds, "maxValues": bounds})
    read = interval_reader(columns)
    assert [found[:2] for found in read(stats, {"p": "7"})] == [(1, 1), (7, 7), (2, 2), (3, 3)]
    stats = json.dumps({"minValues": {"a.b": 1, "s": None}, "maxValues": bounds})
    assert [found[:2] for found in read(stats, {"p": "7"})] == [
        (MIN, 1),
        (7, 7),
        (MIN, 2),
        (MIN, 3),
    ]


# -- against delta-rs --------------------------------------------------------------------------


@settings(max_examples=25)
@given(rows.filter(bool), predicates)
def test_statistics_of_delta_rs_prune_soundly(tmp_path_factory, table, predicate):
    """Files by delta-rs, whose statistics differ from ours in many details, are never lost.

    But for NaN, which its bounds leave out.
    """
    from deltalake import DeltaTable, write_deltalake

    for row in table:
        for name in ("f", "g"):
            if row[name] is not None and math.isnan(row[name]):
                row[name] = None
    path = tmp_path_factory.mktemp("deltars")
    write_deltalake(path, _table(table))
    log = (path / "_delta_log" / f"{0:020}.json").read_text().splitlines()
    [stats] = [json.loads(line)["add"]["stats"] for line in log if '"add"' in line]
    tracked = tracked_columns(SCHEMA, [], {})
    known = dict(zip((c.path for c in tracked), intervals(stats, {}, tracked), strict=True))
    bound = parse(predicate, SCHEMA)
    kept = may_match(skipping(bound, SCHEMA), known.__getitem__)
    assert kept or not any(evaluate(bound, row) is True for row in table)
    assert DeltaTable(path).version() == 0


def test_delta_rs_reads_our_statistics(tmp_path):
    from deltalake import DeltaTable, write_deltalake

    table = pa.table({"id": [1, 2, None], "s": ["a", "b" * 50, "c"]})
    write_deltalake(tmp_path, table)
    log = tmp_path / "_delta_log" / f"{0:020}.json"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    schema = struct(id="long", s="string")
    for line in lines:
        if "add" in line:
            line["add"]["stats"] = to_json(from_arrow(table, stats_columns(schema, [], {})))
    log.write_text("\n".join(json.dumps(line) for line in lines))
    actions = pa.table(DeltaTable(tmp_path).get_add_actions(flatten=True)).to_pylist()[0]
    assert (actions["num_records"], actions["null_count.id"]) == (3, 1)
    assert (actions["min.id"], actions["max.id"]) == (1, 2)
    assert (actions["min.s"], actions["max.s"]) == ("a", "c")
