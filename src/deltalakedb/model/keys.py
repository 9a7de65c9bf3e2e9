"""Order-preserving 64-bit keys: one integer index for statistics of every type.

The values of a column in a file become an interval of signed 64-bit keys. A key is monotone: if
a <= b in Delta's order then key(a) <= key(b). So a file that holds a value of [a, b] has an
interval that overlaps [key(a), key(b)], whatever the type. Keys may be lossy (strings, large
decimals) but never wrong: a file is kept too often, not too rarely.

Families say how the values of a type become keys:

- ``int``: integers, booleans, dates (days) and timestamps (microseconds), as they are
- ``float``: the ordered integer image of the double; NaN lies above infinity, -0.0 is 0.0
- ``decimal:s``: the value times 10**s, clamped to 64 bits
- ``string``: the first eight bytes of UTF-8; the exact text is kept beside the key
"""

from __future__ import annotations

import math
import re
import struct
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import Final, Literal, NamedTuple, TypeAlias

from deltalakedb.model.schema import INTEGRAL, DataType, PrimitiveType

MIN: Final = -(2**63)
MAX: Final = 2**63 - 1

NO_NULLS: Final = 0
SOME_NULLS: Final = 1
ALL_NULLS: Final = 2

Number: TypeAlias = int | float | Decimal
Op: TypeAlias = Literal["=", "<", "<=", ">", ">="]

_INT: Final = frozenset((*INTEGRAL, "boolean", "date", "timestamp", "timestamp_ntz"))
_EPOCH_DAY: Final = date(1970, 1, 1).toordinal()
_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001 - the epoch of timestamps without a zone
_EPOCH_UTC: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_DOUBLE: Final = struct.Struct(">d")
_LONG: Final = struct.Struct(">q")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_EXACT: Final = Context(prec=1200)  # every double and every decimal fits without rounding


class Interval(NamedTuple):
    """What is known of one column in one file: the keys of its values lie in [lo, hi].

    `nulls` is 0 for none, 1 for some or unknown, 2 for all. For strings, `min_string` and
    `max_string` bound the text itself; None is unknown.
    """

    lo: int
    hi: int
    nulls: int
    min_string: str | None = None
    max_string: str | None = None


UNKNOWN: Final = Interval(MIN, MAX, SOME_NULLS)
"""Nothing is known; never prunes."""

EMPTY: Final = Interval(MAX, MIN, ALL_NULLS)
"""Every row is null; no comparison matches."""


def key_family(kind: DataType) -> str | None:
    """The key family of a type, or None for a type without order (binary, nested, variant)."""
    if not isinstance(kind, PrimitiveType):
        return None
    if kind.name in _INT:
        return "int"
    if kind.name in ("float", "double"):
        return "float"
    if kind.name == "string":
        return "string"
    return f"decimal:{kind.decimal[1]}" if kind.decimal else None


def key(value: object, family: str) -> int:
    """The key of a value, floored where it lies between two keys."""
    if family == "string":
        return string_key(str(value))
    if family == "float":
        return float_key(float(as_number(value)))
    return min(max(around(as_number(value), family)[0], MIN), MAX)


def as_number(value: object) -> Number:
    """Dates as days and datetimes as microseconds since the epoch; numbers as they are."""
    match value:
        case bool():
            return int(value)
        case int() | float() | Decimal():
            return value
        case datetime():
            return (value - (_EPOCH if value.tzinfo is None else _EPOCH_UTC)) // _MICROSECOND
        case date():
            return value.toordinal() - _EPOCH_DAY
    raise TypeError(f"{value!r} has no key")


def around(number: Number, family: str) -> tuple[int, int]:
    """The integers next below and next above a number in an ``int`` or ``decimal:s`` family.

    They are equal when the number has a key of its own. Not clamped to 64 bits.
    """
    if family == "int":
        if isinstance(number, int):
            return number, number
        exact = Decimal(number)
    else:
        exact = _EXACT.scaleb(Decimal(number), int(family.partition(":")[2]))
    if not exact.is_finite():
        bound = MAX + 1 if exact.is_nan() or exact > 0 else MIN - 1
        return bound, bound
    return (
        int(exact.to_integral_value(ROUND_FLOOR)),
        int(exact.to_integral_value(ROUND_CEILING)),
    )


def float_key(value: float) -> int:
    """Total order of doubles, with NaN above infinity and both zeros equal."""
    # Adding 0.0 turns -0.0 into 0.0; math.nan gives every NaN the same bits.
    image = _DOUBLE.pack(value + 0.0 if value == value else math.nan)  # noqa: PLR0124
    bits: int = _LONG.unpack(image)[0]
    return bits if bits >= 0 else bits ^ MAX


def string_key(text: str) -> int:
    """Order of the first eight bytes of UTF-8."""
    return int.from_bytes(_utf8(text)[:8].ljust(8, b"\0"), "big") + MIN


def storable(text: str) -> bool:
    """Whether every database can hold the text: no NUL, no half of a surrogate pair."""
    return "\0" not in text and (text.isascii() or not _SURROGATE.search(text))


def prefix_range(prefix: str) -> tuple[int, int]:
    """The keys of all strings that start with `prefix`."""
    head = _utf8(prefix)[:8]
    return string_key(prefix), int.from_bytes(head.ljust(8, b"\xff"), "big") + MIN


def prefix_end(prefix: str) -> str | None:
    """The smallest text above every text that starts with `prefix`, if there is one."""
    head = prefix.rstrip("\U0010ffff")
    if not head:
        return None
    point = ord(head[-1]) + 1
    return head[:-1] + chr(0xE000 if 0xD800 <= point <= 0xDFFF else point)


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def key_range(op: Op, value: object, family: str) -> tuple[int, int] | None:
    """The keys of all values v of a column with ``v op value``, or None if there are none.

    The value may be any number, also one the column cannot hold: no integer is = 1.5, and those
    > 1.5 begin at 2.
    """
    low, high, exact = _point(value, family)
    step = 1 if exact else 0
    lo, hi = MIN, MAX
    if op in ("=", ">="):
        lo = high
    if op in ("=", "<="):
        hi = low
    if op == ">":
        lo = low + step
    if op == "<":
        hi = high - step
    lo, hi = max(lo, MIN), min(hi, MAX)
    return (lo, hi) if lo <= hi else None


def _point(value: object, family: str) -> tuple[int, int, bool]:
    """Keys next below and above, and whether values of neighbouring keys differ from `value`."""
    if family == "string":
        place = string_key(str(value))
        return place, place, False
    if family == "float":
        place = float_key(float(as_number(value)))
        return place, place, True
    low, high = around(as_number(value), family)
    if family != "int" and not MIN < low <= high < MAX:  # among the clamped: only >= is known
        place = min(max(low, MIN), MAX)
        return place, place, False
    return low, high, True


def span(lo: int, hi: int) -> int:
    """Width class of an interval: it is less than 2**span wide. -1 when it is empty."""
    return (hi - lo).bit_length() if lo <= hi else -1


def probe_ranges(a: int, b: int) -> list[tuple[int, int, int]]:
    """Where intervals that overlap [a, b] can begin, as (span, lo_from, lo_to) per width class.

    Together with ``hi >= a`` this is exact, and each class is one short range of an index on
    (span, lo): narrow intervals, which are most, are looked for only around [a, b].
    """
    if a > b:
        return []
    return [(width, max(MIN, a - 2**width + 1), b) for width in range(65)]
