from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltalakedb.model.expr_values import compare
from deltalakedb.model.keys import (
    EMPTY,
    MAX,
    MIN,
    UNKNOWN,
    float_key,
    key,
    key_family,
    key_range,
    prefix_end,
    prefix_range,
    probe_ranges,
    span,
    storable,
    string_key,
)
from deltalakedb.model.schema import ArrayType, PrimitiveType

KEYS = st.integers(MIN, MAX) | st.integers(-20, 20) | st.sampled_from([MIN, MIN + 1, MAX, MAX - 1])
VALUES = {
    "int": st.integers(-(2**63), 2**63 - 1),
    "float": st.floats(),
    "decimal:2": st.decimals(allow_nan=False, allow_infinity=False, places=2),
    "decimal:0": st.decimals(allow_nan=False, allow_infinity=False, places=0),
    "string": st.text(),
}
FAMILIES = st.sampled_from(sorted(VALUES))


def _ordered(a: object, b: object) -> int:
    return compare(a, b)  # type: ignore[arg-type]


@given(FAMILIES.flatmap(lambda f: st.tuples(st.just(f), VALUES[f], VALUES[f])))
def test_keys_keep_the_order(case):
    family, a, b = case
    low, high = (a, b) if _ordered(a, b) <= 0 else (b, a)
    assert key(low, family) <= key(high, family)
    assert MIN <= key(low, family) <= MAX


@given(st.floats())
def test_floats_have_keys_of_their_own(value):
    assert float_key(value) < float_key(math.nextafter(value, math.inf)) or not (
        -math.inf < value < math.inf
    )


def test_special_floats():
    assert float_key(-0.0) == float_key(0.0) == 0
    assert float_key(math.inf) < float_key(math.nan) < MAX
    assert float_key(-math.nan) == float_key(math.nan)
    assert float_key(-math.inf) > MIN


def test_times_and_booleans():
    assert key(date(1970, 1, 2), "int") == 1
    assert key(datetime.fromisoformat("1970-01-01 00:00:01"), "int") == 1_000_000
    assert key(datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), "int") == 1_000_000
    assert (key(False, "int"), key(True, "int")) == (0, 1)
    assert type(key(True, "int")) is int


def test_large_decimals_are_clamped():
    assert key(Decimal("1e30"), "decimal:2") == MAX
    assert key(Decimal("-1e30"), "decimal:2") == MIN
    assert key(Decimal("1.239"), "decimal:2") == 123


@pytest.mark.parametrize(
    ("type_name", "family"),
    [
        ("byte", "int"),
        ("long", "int"),
        ("boolean", "int"),
        ("date", "int"),
        ("timestamp", "int"),
        ("timestamp_ntz", "int"),
        ("float", "float"),
        ("double", "float"),
        ("decimal(38,5)", "decimal:5"),
        ("string", "string"),
        ("binary", None),
        ("variant", None),
    ],
)
def test_families(type_name, family):
    assert key_family(PrimitiveType(type_name)) == family


def test_nested_types_have_no_family():
    assert key_family(ArrayType(PrimitiveType("long"))) is None


@given(st.tuples(KEYS, KEYS), st.tuples(KEYS, KEYS))
def test_probes_find_exactly_the_overlapping_intervals(interval, probe):
    lo, hi = sorted(interval)
    a, b = sorted(probe)
    width = span(lo, hi)
    found = [
        lo_from <= lo <= lo_to and hi >= a
        for class_, lo_from, lo_to in probe_ranges(a, b)
        if class_ == width
    ]
    assert found == [lo <= b and hi >= a]


@given(st.tuples(KEYS, KEYS))
def test_unknown_is_always_found_and_empty_never(probe):
    a, b = sorted(probe)
    classes = {class_ for class_, lo_from, lo_to in probe_ranges(a, b) if lo_from <= MIN <= lo_to}
    assert span(UNKNOWN.lo, UNKNOWN.hi) in classes
    assert span(EMPTY.lo, EMPTY.hi) == -1
    assert -1 not in [class_ for class_, _, _ in probe_ranges(a, b)]


def test_probe_of_nothing():
    assert probe_ranges(1, 0) == []
    assert len(probe_ranges(0, 0)) == 65


NUMBERS = (
    st.integers(-5, 5)
    | st.floats(allow_nan=False)
    | st.decimals(allow_nan=False, allow_infinity=False)
    | st.integers()
)
OPS = {
    "=": lambda order: order == 0,
    "<": lambda order: order < 0,
    "<=": lambda order: order <= 0,
    ">": lambda order: order > 0,
    ">=": lambda order: order >= 0,
}


@given(
    FAMILIES.flatmap(
        lambda f: st.tuples(
            st.just(f), VALUES[f], VALUES[f] if f in ("string", "float") else NUMBERS
        )
    ),
    st.sampled_from(sorted(OPS)),
)
def test_key_range_holds_every_matching_value(case, op):
    family, value, bound = case
    keys = key_range(op, bound, family)
    if OPS[op](_ordered(value, bound)):
        assert keys is not None
        assert keys[0] <= key(value, family) <= keys[1]
    elif family in ("int", "float") and keys is not None:
        assert not keys[0] <= key(value, family) <= keys[1]


def test_no_integer_is_one_and_a_half():
    assert key_range("=", 1.5, "int") is None
    assert key_range(">", Decimal("1.5"), "int") == (2, MAX)
    assert key_range("<", 1.5, "int") == (MIN, 1)
    assert key_range(">", 10**30, "int") is None
    assert key_range("<", 10**30, "int") == (MIN, MAX)


@given(st.text(), st.text())
def test_prefixes(prefix, rest):
    low, high = prefix_range(prefix)
    assert low <= string_key(prefix + rest) <= high
    end = prefix_end(prefix)
    assert end is None or prefix + rest < end


def test_texts_a_database_cannot_hold():
    assert storable("é\U0001f600")
    assert not storable("a\0b")
    assert not storable("a\ud800")
