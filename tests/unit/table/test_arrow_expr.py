from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings

from deltalakedb.errors import ExpressionError
from deltalakedb.model.arrow import arrow_schema
from deltalakedb.model.expr import Not, evaluate, parse, parse_scalar
from deltalakedb.model.expr_functions import FUNCTIONS
from deltalakedb.table.arrow_expr import (
    compile_filter,
    compile_scalar,
    compile_scan,
    filter_table,
    project,
)
from deltalakedb.table.arrow_functions import _ARITHMETIC, _SIMPLE, _SPECIAL
from support.predicates import SCHEMA, predicates, rows

ARROW = arrow_schema(SCHEMA)


@settings(max_examples=500)
@given(rows, predicates)
def test_arrow_and_python_agree_on_predicates(table, predicate):
    bound = parse(predicate, SCHEMA)
    data = pa.Table.from_pylist(table, schema=ARROW)
    expected = [evaluate(bound, row) for row in data.to_pylist()]
    assert project(data, {"found": bound})["found"].to_pylist() == expected
    assert filter_table(data, bound).num_rows == expected.count(True)
    assert filter_table(data, parse(Not(bound), SCHEMA)).num_rows == expected.count(False)


ROW = {
    "id": 7,
    "i": -7,
    "s": "  Hé%llo ",
    "f": 2.5,
    "g": 0.5,
    "d": date(2024, 2, 29),
    "ts": datetime(1969, 12, 31, 23, 59, 58, 120000, tzinfo=UTC),
    "n": datetime.fromisoformat("2024-05-17 13:14:15"),
    "dec": Decimal("-2.25"),
    "b": True,
    "st": {"x": 3, "y": "2024-03-04"},
}
NULLS = dict.fromkeys(ROW)
ZEROS = {**ROW, "id": 0, "i": 0, "f": 0.0, "dec": Decimal("0.00"), "s": "", "g": -0.0}

EXPRESSIONS = [
    "id + i",
    "id - i * 2",
    "id / i",
    "id / 0",
    "id div 2",
    "i div 2",
    "f div 2",
    "i % 3",
    "id % i",
    "f % 2",
    "pmod(i, 3)",
    "pmod(i, id)",
    "-i",
    "abs(i)",
    "abs(dec)",
    "ceil(f)",
    "floor(dec)",
    "ceil(i)",
    "round(f)",
    "round(dec, 1)",
    "round(i, -1)",
    "round(i)",
    "isnan(f)",
    "isnan(i)",
    "f + id",
    "dec + id",
    "dec * 2",
    "dec - 0.5",
    "lower(s)",
    "upper(s)",
    "length(s)",
    "substring(s, 2, 3)",
    "substring(s, -3)",
    "substring(s, -3, 2)",
    "substring(s, 0, 2)",
    "left(s, 3)",
    "concat(s, '-', i)",
    "s || s",
    "trim(s)",
    "ltrim(s)",
    "rtrim(s)",
    "replace(s, 'l', '')",
    "replace(s, '', 'x')",
    "startswith(s, ' ')",
    "endswith(s, 'o ')",
    "contains(s, 'é')",
    "s rlike 'l+'",
    "s like '%\\\\%%'",
    "coalesce(i, 5)",
    "coalesce(dec, 0)",
    "coalesce(i, id, 5)",
    "greatest(i, id)",
    "least(i, id, 3)",
    "greatest(f, 1)",
    "least(f, 1)",
    "nullif(id, 7)",
    "if(b, s, 'no')",
    "if(b, null, i)",
    "case when i > 0 then 'a' when i < 0 then 'b' end",
    "case id when 7 then 1.5 else f end",
    "year(d)",
    "year(ts)",
    "quarter(d)",
    "month(n)",
    "day(ts)",
    "dayofweek(d)",
    "dayofyear(ts)",
    "weekofyear(d)",
    "hour(ts)",
    "hour(d)",
    "minute(n)",
    "second(ts)",
    "extract(month from ts)",
    "date_format(ts, 'yyyy-MM')",
    "date_format(d, 'yyyy-MM-dd')",
    "date_format(n, 'yyyy-MM-dd-HH')",
    "date_format(ts, \"yyyy/MM/dd'T'HH:mm:ss\")",
    "date_trunc('month', ts)",
    "date_trunc('WEEK', n)",
    "date_trunc('quarter', d)",
    "date_trunc('hour', ts)",
    "date_trunc('second', ts)",
    "trunc(d, 'year')",
    "trunc(ts, 'month')",
    "date_add(d, 1)",
    "date_sub(ts, id)",
    "datediff(d, ts)",
    "to_date(ts)",
    "to_date(st.y)",
    "to_timestamp(st.y)",
    "year(st.y)",
    "cast(ts as string)",
    "cast(n as string)",
    "cast(d as string)",
    "cast(dec as string)",
    "cast(b as string)",
    "cast(i as string)",
    "cast(f > 1 as int)",
    "cast(i as boolean)",
    "cast(dec as int)",
    "cast(dec as decimal(5,1))",
    "cast(id as decimal(20,3))",
    "cast(dec as double)",
    "cast(id as float)",
    "cast(ts as timestamp_ntz)",
    "cast(n as timestamp)",
    "cast(d as timestamp)",
    "cast(s as binary)",
    "cast('2024-01-01T00:00:00+01:00' as timestamp)",
    "ts = n",
    "d < ts",
    "id > f",
    "f <=> cast('NaN' as double)",
    "f > 1e300",
    "id in (7, null)",
    "id not in (7, null)",
    "f in (0.0, 2.5)",
    "g in (0)",
    "id in (7, 1e30)",
    "null",
    "b and null",
    "b or null",
    "not (s is null)",
    "'constant'",
]


@pytest.mark.parametrize("text", EXPRESSIONS)
@pytest.mark.parametrize("row", [ROW, NULLS, ZEROS], ids=["values", "nulls", "zeros"])
def test_arrow_and_python_agree_on_functions(text, row):
    bound = parse_scalar(text, SCHEMA, double_quotes="string")
    data = pa.Table.from_pylist([row], schema=ARROW)
    [found] = project(data, {"x": bound})["x"].to_pylist()
    expected = evaluate(bound, data.to_pylist()[0])
    if isinstance(expected, float):
        assert found == pytest.approx(expected, nan_ok=True)
    else:
        assert found == expected


@pytest.mark.parametrize(
    "text", ["isnan(f)", "greatest(f, 1)", "least(f, 1)", "f + 1", "-f", "f % 2"]
)
def test_arrow_and_python_agree_on_nan(text):
    test_arrow_and_python_agree_on_functions(text, {**ROW, "f": math.nan})


def test_arrow_knows_every_function():
    assert {*_SIMPLE, *_ARITHMETIC, *_SPECIAL} == {*FUNCTIONS}


def test_nothing_matches_an_empty_list():
    data = pa.Table.from_pylist([ROW], schema=ARROW)
    assert filter_table(data, parse([("id", "in", [])], SCHEMA)).num_rows == 0


def test_many_terms():
    data = pa.Table.from_pylist([ROW, NULLS], schema=ARROW)
    text = " or ".join(f"(id = {number} and i < 0)" for number in range(2000))
    assert filter_table(data, parse(text, SCHEMA)).num_rows == 1


def test_physical_names():
    data = pa.table({"col-1": [1, 2, 3]})
    keep = compile_filter(parse("id >= 2", SCHEMA), physical=lambda path: (f"col-{len(path)}",))
    assert data.filter(keep).num_rows == 2
    with pytest.raises(pa.ArrowInvalid):
        data.filter(compile_scalar(parse("id >= 2", SCHEMA)))


@pytest.mark.parametrize(
    ("text", "piece"),
    [
        ("replace(s, s, 'x') = 'a'", "replace"),
        ("s rlike '(?=a)'", "regular expression"),
        ("cast(f as string) = '1'", "STRING"),
        ("cast(i as date) = d", "DATE"),
    ],
)
def test_what_arrow_cannot_do_is_named(text, piece):
    with pytest.raises(ExpressionError, match=piece):
        compile_filter(parse(text, SCHEMA))


def test_errors_while_computing_name_the_expression():
    data = pa.Table.from_pylist([{**ROW, "s": "nonsense"}], schema=ARROW)
    with pytest.raises(ExpressionError, match=r"CAST\(s AS INT\)"):
        filter_table(data, parse("cast(s as int) = 1", SCHEMA))
    with pytest.raises(ExpressionError, match="overflow"):
        project(data, {"x": parse_scalar("id + 9223372036854775807", SCHEMA)})


@pytest.fixture(scope="module")
def fragment(tmp_path_factory):
    """One Parquet file of a hundred row groups."""
    path = tmp_path_factory.mktemp("pruning") / "data.parquet"
    numbers = range(10_000)
    table = pa.table(
        {
            "id": numbers,
            "i": pa.array(numbers, pa.int32()),
            "s": [f"{number:05}" for number in numbers],
            "f": [float(number) for number in numbers],
            "g": pa.array([float(number) for number in numbers], pa.float32()),
            "d": pa.array(numbers, pa.int32()).cast(pa.date32()),
            "ts": pa.array(numbers, pa.timestamp("us", "UTC")),
            "n": pa.array(numbers, pa.timestamp("us")),
            "dec": pa.array([Decimal(number) for number in numbers], pa.decimal128(10, 2)),
        }
    )
    pq.write_table(table, path, row_group_size=100)
    return next(iter(ds.dataset(path).get_fragments()))


@pytest.mark.parametrize(
    ("text", "groups"),
    [
        ("id = 150", 1),
        ("i = 150", 1),
        ("i >= 100 and i < 300", 2),
        ("i in (50, 150, 5000)", 3),
        ("not (i >= 100)", 1),
        ("s = '00150'", 1),
        ("s like '0015%'", 1),
        ("startswith(s, '0015')", 1),
        ("f <= 150", 2),
        ("f = 150", 1),
        ("g < 150", 2),
        ("f between 100 and 150", 1),
        ("d < '1970-02-01'", 1),
        ("ts < '1970-01-01 00:00:00.000150'", 2),
        ("n = '1970-01-01 00:00:00.000150'", 1),
        ("dec = 150", 1),
        ("dec < 150.5", 2),
        ("id < 150 or id > 9950", 3),
        ("id = 150 and length(s) = 5", 1),
    ],
)
def test_row_groups_are_skipped(fragment, text, groups):
    keep = compile_filter(parse(text, SCHEMA))
    assert len(fragment.split_by_row_group(keep)) == groups
    table = fragment.to_table()
    assert (
        fragment.to_table(filter=keep).num_rows == filter_table(table, parse(text, SCHEMA)).num_rows
    )


NAN_TESTS = ["f > 5", "f != 3", "not (f <= 3)", "f + 1 > 9 and i = 1", "f >= 3 and f <= 3", "f < 5"]


@pytest.mark.parametrize("text", NAN_TESTS)
@pytest.mark.parametrize("values", [[3.0, math.nan, 3.0], [1.0, math.nan, 3.0]])
def test_nan_is_found_in_files(tmp_path, text, values):
    table = pa.table({"f": values, "i": pa.array([1, 1, 2], pa.int32())})
    pq.write_table(table, tmp_path / "nan.parquet")
    bound = parse(text, SCHEMA)
    scan, rest = compile_scan(bound)
    found = ds.dataset(tmp_path).to_table(filter=scan)
    found = found if rest is None else found.filter(rest)
    expected = [evaluate(bound, row) for row in table.to_pylist()].count(True)
    assert found.num_rows == filter_table(table, bound).num_rows == expected


def test_scans_take_what_they_can():
    scan, rest = compile_scan(parse("i = 1 and f > 5 and (f < 9 or s = 'x')", SCHEMA))
    assert str(scan) == str(compile_filter(parse("i = 1 and (f < 9 or s = 'x')", SCHEMA)))
    assert str(rest) == str(compile_filter(parse("f > 5", SCHEMA)))
    assert compile_scan(parse("f between 1 and 2", SCHEMA))[1] is None
