"""Values of every Delta type, the awkward ones first of all."""

# ruff: noqa: DTZ001 - timestamp_ntz has no time zone

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

WIDE = Decimal("9" * 28 + "." + "9" * 10)

FLAT = pa.schema(
    [
        ("bool", pa.bool_()),
        ("byte", pa.int8()),
        ("short", pa.int16()),
        ("int", pa.int32()),
        ("long", pa.int64()),
        ("float", pa.float32()),
        ("double", pa.float64()),
        ("money", pa.decimal128(9, 2)),
        ("wide", pa.decimal128(38, 10)),
        ("text", pa.string()),
        ("blob", pa.binary()),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", "UTC")),
        ("local", pa.timestamp("us")),
    ]
)
DELTA_TYPES = {
    "bool": "boolean",
    "byte": "byte",
    "short": "short",
    "int": "integer",
    "long": "long",
    "float": "float",
    "double": "double",
    "money": "decimal(9,2)",
    "wide": "decimal(38,10)",
    "text": "string",
    "blob": "binary",
    "day": "date",
    "at": "timestamp",
    "local": "timestamp_ntz",
}
"""Delta's names for the types of `FLAT`."""

_ROWS: list[tuple[Any, ...]] = [
    (
        True,
        1,
        -2,
        3,
        -4,
        0.5,
        -1.25,
        Decimal("12.34"),
        Decimal("-0.0000000001"),
        "plain",
        b"\x00\xff",
        date(2026, 1, 31),
        datetime(2026, 1, 31, 12, 30, 15, 123456, UTC),
        datetime(2026, 1, 31, 12, 30, 15, 123456),
    ),
    (None,) * len(FLAT),
    (
        False,
        -(2**7),
        -(2**15),
        -(2**31),
        -(2**63),
        -math.inf,
        -1.7976931348623157e308,
        Decimal("-9999999.99"),
        WIDE.copy_negate(),
        "",
        b"",
        date(1, 1, 1),
        datetime(1, 1, 1, tzinfo=UTC),
        datetime(1, 1, 1),
    ),
    (
        True,
        2**7 - 1,
        2**15 - 1,
        2**31 - 1,
        2**63 - 1,
        math.inf,
        5e-324,
        Decimal("9999999.99"),
        WIDE,
        "\U0010ffff" * 40,
        bytes(range(256)),
        date(9999, 12, 31),
        datetime(9999, 12, 31, 23, 59, 59, 999999, UTC),
        datetime(9999, 12, 31, 23, 59, 59, 999999),
    ),
    (
        False,
        0,
        0,
        0,
        0,
        math.nan,
        math.nan,
        Decimal("0.00"),
        Decimal("0E-10"),
        'it\'s; "quoted" \\ \n\t %41 ${x} 雪 \0 end',
        b"'; DROP TABLE dl_tables; --",
        date(1970, 1, 1),
        datetime(1969, 12, 31, 23, 59, 59, 999999, UTC),
        datetime(1969, 12, 31, 23, 59, 59, 999999),
    ),
    (False, 0, 0, 0, 0, -0.0, -0.0, None, None, "ß", None, date(1582, 10, 15), None, None),
]
FLAT_ROWS = [dict(zip(FLAT.names, row, strict=True)) for row in _ROWS]

_POINT = pa.struct([("x", pa.int64()), ("tag", pa.string())])
NESTED = pa.schema(
    [
        ("id", pa.int64()),
        ("point", _POINT),
        ("deep", pa.struct([("inner", pa.struct([("at", pa.timestamp("us", "UTC"))]))])),
        ("list", pa.list_(pa.int64())),
        ("points", pa.list_(_POINT)),
        ("matrix", pa.list_(pa.list_(pa.decimal128(5, 1)))),
        ("scores", pa.map_(pa.string(), pa.float64())),
        ("groups", pa.map_(pa.int32(), pa.list_(pa.string()))),
        ("homes", pa.map_(pa.string(), _POINT)),
    ]
)
_NESTED_ROWS: list[tuple[Any, ...]] = [
    (
        1,
        {"x": 1, "tag": "a"},
        {"inner": {"at": datetime(2026, 1, 1, tzinfo=UTC)}},
        [1, None, 3],
        [{"x": 1, "tag": None}, None],
        [[Decimal("1.5")], [], None],
        [("pi", 3.14), ("nothing", None)],
        [(1, ["a", None]), (2, [])],
        [("home", {"x": 7, "tag": ""})],
    ),
    (2,) + (None,) * 8,
    (3, {"x": None, "tag": None}, {"inner": None}, [], [], [], [], [], []),
]
NESTED_ROWS = [dict(zip(NESTED.names, row, strict=True)) for row in _NESTED_ROWS]


def table(schema: pa.Schema, rows: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(rows, schema)


FLAT_TABLE = table(FLAT, FLAT_ROWS)
NESTED_TABLE = table(NESTED, NESTED_ROWS)


def shown(found: pa.Table | list[dict[str, Any]]) -> list[str]:
    """Rows as text, in which NaN equals NaN and 0.0 differs from -0.0, in a fixed order."""
    listed = found.to_pylist() if isinstance(found, pa.Table) else found
    return sorted(map(repr, listed))
