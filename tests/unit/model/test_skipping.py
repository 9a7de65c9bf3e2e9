from __future__ import annotations

import math
from datetime import UTC, datetime

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from deltalakedb.model import stats_collect
from deltalakedb.model.expr import evaluate, parse
from deltalakedb.model.intervals import intervals
from deltalakedb.model.keys import EMPTY, MAX, MIN, UNKNOWN, Interval, string_key
from deltalakedb.model.skipping import ALWAYS, NEVER, Any, Probe, may_match, skipping
from deltalakedb.model.stats import to_json, tracked_columns
from support.predicates import SCHEMA, predicates, rows

COLUMNS = tracked_columns(SCHEMA, [], {})


def _known(table):
    import pyarrow as pa

    from deltalakedb.model.arrow import arrow_schema

    data = pa.Table.from_pylist(table, schema=arrow_schema(SCHEMA))
    stats = to_json(stats_collect.from_arrow(data, COLUMNS))
    found = intervals(stats, {}, COLUMNS)
    return {column.path: interval for column, interval in zip(COLUMNS, found, strict=True)}


@settings(max_examples=600)
@given(rows, predicates)
def test_a_file_with_a_matching_row_is_kept(table, predicate):
    bound = parse(predicate, SCHEMA)
    skip = skipping(bound, SCHEMA)
    known = _known(table)
    kept = may_match(skip, lambda path: known.get(path, UNKNOWN))
    matches = any(evaluate(bound, row) is True for row in table)
    event(f"kept {kept} matches {matches}")
    assert kept or not matches


@given(predicates)
def test_a_file_nothing_is_known_of_is_kept_unless_nothing_can_match(predicate):
    skip = skipping(parse(predicate, SCHEMA), SCHEMA)
    assert may_match(skip, lambda _: UNKNOWN) == (skip != NEVER)


def _range(column, lo=MIN, hi=MAX):
    return Probe((column,), "range", lo, hi)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("id = 5", _range("id", 5, 5)),
        ("5 < id", _range("id", 6)),
        ("id between 1 and 3", _range("id", 1, 3)),
        ("id >= 1 and id < 10 and id > 3", _range("id", 4, 9)),
        ("id in (1, 2, 3)", _range("id", 1, 3)),
        ("id in (1, 7)", Any((_range("id", 1, 1), _range("id", 7, 7)))),
        ("id != 5", Any((_range("id", MIN, 4), _range("id", 6, MAX)))),
        ("not (id < 5)", _range("id", 5)),
        ("id > 5 and id < 3", NEVER),
        ("id = 1.5", NEVER),
        ("id = null", NEVER),
        ("id not in (1, null)", NEVER),
        ("id is null", Probe(("id",), "null")),
        ("id is not null", Probe(("id",), "not_null")),
        ("id <=> null", Probe(("id",), "null")),
        ("b", _range("b", 1, 1)),
        ("not b", _range("b", 0, 0)),
        ("dec > 1.005", _range("dec", 101)),
        ("cast(id as int) = 5", _range("id", 5, 5)),
        ("st.x = 1", Probe(("st", "x"), "range", 1, 1)),
        ("length(s) = 3", ALWAYS),
        ("id = i", ALWAYS),
        ("id = 1 or length(s) = 3", ALWAYS),
        ("id = 1 and length(s) = 3", _range("id", 1, 1)),
        ("1 = 1", ALWAYS),
        ("cast(i as string) = '5'", ALWAYS),
    ],
)
def test_probes(text, expected):
    assert skipping(parse(text, SCHEMA), SCHEMA) == expected


def _micros(*moment):
    return int(datetime(*moment, tzinfo=UTC).timestamp()) * 1_000_000


@pytest.mark.parametrize(
    "text",
    [
        "year(ts) = 2024",
        "cast(ts as date) between '2024-01-01' and '2024-12-31'",
        "to_date(ts) >= '2024-01-01' and year(ts) < 2025",
        "ts >= '2024-01-01' and ts < timestamp '2025-01-01 00:00:00Z'",
    ],
)
def test_functions_of_time_become_ranges(text):
    expected = _range("ts", _micros(2024, 1, 1), _micros(2025, 1, 1) - 1)
    assert skipping(parse(text, SCHEMA), SCHEMA) == expected


def test_years_beyond_the_calendar_keep_everything():
    assert skipping(parse("year(ts) = 9999", SCHEMA), SCHEMA) == ALWAYS
    assert skipping(parse("year(ts) = -5", SCHEMA), SCHEMA) == ALWAYS


def _file(low, high):
    return lambda _: Interval(string_key(low), string_key(high), 0, low, high)


@pytest.mark.parametrize(
    ("text", "low", "high", "kept"),
    [
        ("s = 'abcdefghij'", "abcdefghia", "abcdefghii", False),  # equal in the first 8 bytes
        ("s = 'abcdefghij'", "abcdefghia", "abcdefghij", True),
        ("s != 'abc'", "abc", "abc", False),
        ("s != 'abc'", "abc", "abd", True),
        ("s > 'abc'", "aaa", "abc", False),
        ("s >= 'abc'", "aaa", "abc", True),
        ("s < 'abc'", "abc", "abd", False),
        ("s like 'abc%'", "abd", "abe", False),
        ("s like 'abc%'", "abb", "abcz", True),
        ("s like 'abcdefghij%'", "abcdefghik", "abcdefghiz", False),
        (r"s like 'a\_b%'", "azb", "azc", False),
        ("s like '%c'", "abd", "abe", True),
        ("startswith(s, 'x')", "a", "w", False),
        ("s > 'a' and s < 'b'", "b", "c", False),
    ],
)
def test_strings_are_compared_exactly(text, low, high, kept):
    assert may_match(skipping(parse(text, SCHEMA), SCHEMA), _file(low, high)) is kept


def test_texts_no_database_holds_stay_out_of_probes():
    probe = skipping(parse([("s", ">", "a\0b")], SCHEMA), SCHEMA)
    assert isinstance(probe, Probe)
    assert probe.lo_string is None


def test_all_null_files():
    for text, kept in [("id > 0", False), ("id is null", True), ("id is not null", False)]:
        assert may_match(skipping(parse(text, SCHEMA), SCHEMA), lambda _: EMPTY) is kept


def test_nan_is_above_every_number():
    skip = skipping(parse([("f", "=", math.nan)], SCHEMA), SCHEMA)
    known = [{"f": 1.0}, {"f": math.nan}]
    full = [{field.name: row.get(field.name) for field in SCHEMA.fields} for row in known]
    assert may_match(skip, _known(full).__getitem__)
    assert not may_match(skip, _known(full[:1]).__getitem__)


@given(st.lists(st.integers(-100, 100), min_size=1, max_size=50))
def test_long_lists_join_neighbours(values):
    skip = skipping(parse([("id", "in", values)], SCHEMA), SCHEMA)
    for value in range(-101, 102):
        kept = may_match(skip, lambda _, v=value: Interval(v, v, 0))
        assert kept == (value in values)
