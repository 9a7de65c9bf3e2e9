from __future__ import annotations

import math
import struct
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Context, Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltalakedb.errors import CorruptLog, InvalidArgument, UnsupportedByBackend
from deltalakedb.model.partition import (
    date_days,
    deserialize,
    hive_path,
    serialize,
    timestamp_micros,
)
from deltalakedb.model.schema import ArrayType, PrimitiveType

WIDE = Context(prec=50)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def local(*parts):
    """A moment without a zone."""
    return datetime(*parts)  # noqa: DTZ001


def kind(name):
    return PrimitiveType(name)


def integers(bits):
    return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


decimals = st.integers(-(10**38) + 1, 10**38 - 1).map(lambda n: Decimal(n).scaleb(-18, WIDE))
values = st.one_of(
    st.tuples(st.just("string"), st.text(min_size=1)),
    st.tuples(st.just("binary"), st.binary(min_size=1)),
    st.tuples(st.just("boolean"), st.booleans()),
    st.tuples(st.just("byte"), integers(8)),
    st.tuples(st.just("short"), integers(16)),
    st.tuples(st.just("integer"), integers(32)),
    st.tuples(st.just("long"), integers(64)),
    st.tuples(st.just("float"), st.floats(width=32, allow_nan=False)),
    st.tuples(st.just("double"), st.floats(allow_nan=False)),
    st.tuples(st.just("date"), st.dates()),
    st.tuples(st.just("timestamp"), st.datetimes(timezones=st.just(UTC))),
    st.tuples(st.just("timestamp_ntz"), st.datetimes()),
    st.tuples(st.just("decimal(38,18)"), decimals),
)


@given(values)
def test_any_value_survives_the_log(pair):
    name, value = pair
    text = serialize(value, kind(name))
    assert text
    assert deserialize(text, kind(name)) == value


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("boolean", True, "true"),
        ("long", -5, "-5"),
        ("float", struct.unpack("<f", struct.pack("<f", 3.1415927))[0], "3.1415927"),
        ("double", 3.141592653589793, "3.141592653589793"),
        ("double", 1, "1.0"),
        ("double", math.inf, "Infinity"),
        ("float", -math.inf, "-Infinity"),
        ("double", math.nan, "NaN"),
        ("decimal(12,5)", Decimal("-2342342.23423"), "-2342342.23423"),
        ("decimal(10,2)", 7, "7.00"),
        ("decimal(38,0)", Decimal(10**38 - 1), "9" * 38),
        ("date", date(1, 2, 3), "0001-02-03"),
        ("timestamp", EPOCH, "1970-01-01T00:00:00.000000Z"),
        (
            "timestamp",
            datetime(2024, 1, 2, 1, tzinfo=timezone(timedelta(hours=2))),
            "2024-01-01T23:00:00.000000Z",
        ),
        ("timestamp_ntz", local(2013, 7, 5, 17, 1), "2013-07-05 17:01:00"),
        ("timestamp_ntz", local(2013, 7, 5, 17, 1, 0, 123), "2013-07-05 17:01:00.000123"),
        ("binary", b"\x01\x02\x03", "\x01\x02\x03"),
        ("binary", "é".encode(), "é"),
        ("binary", b"\xff\x00", "\\u00FF\\u0000"),
        ("binary", b"\\u00FF", "\\u005C\\u0075\\u0030\\u0030\\u0046\\u0046"),
        ("string", "", None),
        ("binary", b"", None),
        ("long", None, None),
    ],
)
def test_the_text_in_the_log(name, value, text):
    assert serialize(value, kind(name)) == text


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("string", "", None),
        ("long", "", None),
        ("long", None, None),
        ("boolean", "TRUE", True),
        ("double", "1.0E10", 1e10),
        ("double", "-Infinity", -math.inf),
        ("float", "1e39", math.inf),
        ("decimal(38,18)", "12.000000000000000000", Decimal(12)),
        ("date", "2020-06-01", date(2020, 6, 1)),
        ("timestamp", "1970-01-01 00:00:00", EPOCH),
        ("timestamp", "1970-01-02", EPOCH + timedelta(days=1)),
        ("timestamp", "1970-01-01 00:00:00.5", EPOCH + timedelta(seconds=0.5)),
        ("timestamp", "1970-01-01T00:00:00.123456Z", EPOCH + timedelta(microseconds=123456)),
        ("timestamp", "1970-01-01T00:00:00.123456789Z", EPOCH + timedelta(microseconds=123456)),
        ("timestamp", "1970-01-01T02:30:00+02:30", EPOCH),
        ("timestamp", "1969-12-31T19:00:00-0500", EPOCH),
        ("timestamp_ntz", "2021-11-18 02:30:00.123456", local(2021, 11, 18, 2, 30, 0, 123456)),
        ("binary", "\\u00FF\\u0000", b"\xff\x00"),
    ],
)
def test_spellings_of_others(name, text, value):
    assert deserialize(text, kind(name)) == value


def test_not_a_number():
    found = deserialize("NaN", kind("double"))
    assert isinstance(found, float)
    assert math.isnan(found)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("long", "x"),
        ("long", "1.5"),
        ("long", "1_0"),
        ("long", " 1"),
        ("byte", "128"),
        ("double", "x"),
        ("double", "1_0"),
        ("decimal(5,2)", "NaN"),
        ("boolean", "1"),
        ("date", "2020-13-01"),
        ("date", "2020-02-30"),
        ("date", "2020-01-01 00:00:00"),
        ("timestamp", "yesterday"),
        ("timestamp", "2020-01-01 25:00:00"),
        ("timestamp", "2020-02-30 00:00:00"),
        ("geometry(OGC:CRS84)", "x"),
    ],
)
def test_text_that_is_no_value_is_corrupt(name, text):
    with pytest.raises(CorruptLog) as caught:
        deserialize(text, kind(name))
    assert text in caught.value.reason


def test_years_that_python_does_not_have():
    text = "10000-01-01 00:59:59.999999"
    with pytest.raises(UnsupportedByBackend):
        deserialize(text, kind("timestamp"))
    with pytest.raises(UnsupportedByBackend):
        deserialize("10000-01-01", kind("date"))
    last = (datetime(9999, 12, 31, tzinfo=UTC) - EPOCH).days
    assert date_days("10000-01-01") == last + 1
    assert timestamp_micros(text) == (last + 1) * 86_400_000_000 + 3_599_999_999
    assert date_days("0000-12-31") == date_days("0001-01-01") - 1
    assert date_days("-0001-12-31") == date_days("0000-01-01") - 1


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("string", 5),
        ("long", True),
        ("long", "5"),
        ("long", 1.5),
        ("byte", 128),
        ("float", 1e39),
        ("float", "x"),
        ("decimal(5,2)", Decimal("1.234")),
        ("decimal(5,2)", Decimal("1234.5")),
        ("decimal(5,2)", 1.5),
        ("decimal(5,2)", Decimal("NaN")),
        ("date", local(2020, 1, 1)),
        ("timestamp", local(2020, 1, 1)),
        ("timestamp", date(2020, 1, 1)),
        ("timestamp_ntz", EPOCH),
        ("boolean", 1),
        ("geometry(OGC:CRS84)", b"x"),
    ],
)
def test_values_of_another_type_are_refused(name, value):
    with pytest.raises(InvalidArgument):
        serialize(value, kind(name))


def test_nested_types_have_no_partition_values():
    with pytest.raises(InvalidArgument):
        serialize("x", ArrayType(kind("string")))
    with pytest.raises(CorruptLog):
        deserialize("x", ArrayType(kind("string")))


@pytest.mark.parametrize(
    ("values", "path"),
    [
        ([], ""),
        ([("a", "1"), ("b", "x")], "a=1/b=x"),
        ([("a", None)], "a=__HIVE_DEFAULT_PARTITION__"),
        ([("a", "")], "a=__HIVE_DEFAULT_PARTITION__"),
        ([("c2", "+ =%0")], "c2=+ %3D%250"),
        ([("x", "A/A")], "x=A%2FA"),
        ([("t", "2020-01-01T00:00:00.000000Z")], "t=2020-01-01T00%3A00%3A00.000000Z"),
        ([("a=b", "\n\x7f")], "a%3Db=%0A%7F"),
        ([("ü", "日本")], "ü=日本"),
        ([("up", "../..")], "up=..%2F.."),
    ],
)
def test_folders_as_hive_names_them(values, path):
    assert hive_path(values) == path
