"""Intervals of keys from statistics and partition values: what pruning is done with.

This runs for every file of every commit, so the work that depends on the columns alone is done
once, in `interval_reader`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from functools import lru_cache
from operator import attrgetter
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from deltalakedb.model.expr import Path
from deltalakedb.model.expr_values import single
from deltalakedb.model.keys import (
    EMPTY,
    MAX,
    MIN,
    NO_NULLS,
    SOME_NULLS,
    UNKNOWN,
    Interval,
    float_key,
    key,
    key_family,
    storable,
    string_key,
)
from deltalakedb.model.schema import INTEGRAL, PrimitiveType
from deltalakedb.model.stats import StatsColumn, lower_text, upper_text

IntervalReader: TypeAlias = Callable[[str | None, Mapping[str, str | None]], list[Interval]]

_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001 - the epoch of timestamps without a zone
_EPOCH_UTC: Final = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_DAY: Final = date(1970, 1, 1).toordinal()
_UNREADABLE: Final = (ValueError, TypeError, ArithmeticError)
_DIGITS: Final = Context(prec=120)
_HALF_ULP: Final = Decimal("1.2e-16")  # a little more than 2**-53
_MISSING: Final = object()


def intervals(
    stats: str | None, partition_values: Mapping[str, str | None], columns: tuple[StatsColumn, ...]
) -> list[Interval]:
    """What is known of each column in one file. See `interval_reader` for many files."""
    return _cached_reader(columns)(stats, partition_values)


def interval_reader(columns: Sequence[StatsColumn]) -> IntervalReader:
    """A function from the `stats` text and partition values of a file to its intervals.

    The intervals are in the order of the columns. Never fails: what cannot be read is unknown.
    A maximum of a timestamp is widened by the 999 microseconds that Delta cuts off.
    """
    data = [(place, column) for place, column in enumerate(columns) if not column.partition]
    partitions = [
        (place, column.physical[0], _partition_key(column), str(column.type) == "string")
        for place, column in enumerate(columns)
        if column.partition
    ]
    plans = [(place, _plan(column)) for place, column in data]
    decoder, take = _decoder([column.physical for _, column in data], _has_decimals(columns))

    def read(stats: str | None, partition_values: Mapping[str, str | None]) -> list[Interval]:
        found = [UNKNOWN] * len(columns)
        for place, name, convert, is_text in partitions:
            found[place] = _partition(partition_values.get(name, _MISSING), convert, is_text)
        if not stats or not plans:
            return found
        try:
            file = decoder.decode(stats)
        except msgspec.DecodeError:
            return found
        bounds = zip(plans, take(file.min), take(file.max), take(file.nulls), strict=False)
        for (place, plan), low, high, nulls in bounds:
            found[place] = _interval(plan, low, high, nulls, file.rows)
        return found

    return read


_cached_reader = lru_cache(maxsize=64)(interval_reader)


class _Plan(NamedTuple):
    """How the bounds of one column become keys; the functions may raise what is unreadable."""

    low: Callable[[Any], int]
    high: Callable[[Any], int]
    is_text: bool = False


def _interval(plan: _Plan, low: Any, high: Any, count: Any, rows: int | None) -> Interval:
    nulls = SOME_NULLS
    if type(count) is int:
        if count == 0:
            nulls = NO_NULLS
        elif count == rows:
            return EMPTY  # whatever the bounds say, they say it of no row
    lo, hi = MIN, MAX
    try:
        if low is not None:
            lo = plan.low(low)
        if high is not None:
            hi = plan.high(high)
    except _UNREADABLE:
        return Interval(MIN, MAX, nulls)
    if lo > hi:
        return Interval(MIN, MAX, nulls)
    if plan.is_text:
        return Interval(lo, hi, nulls, _low_text(low), _high_text(high))
    return Interval(lo, hi, nulls)


def _low_text(text: str | None) -> str | None:
    return None if text is None else lower_text(text.partition("\0")[0])


def _high_text(text: str | None) -> str | None:
    return None if text is None or not storable(text) else upper_text(text)


def _partition(text: Any, convert: Callable[[str], int], is_text: bool) -> Interval:
    if text is _MISSING:
        return UNKNOWN
    if not text:  # null, which an empty text stands for too
        return EMPTY
    try:
        place = convert(text)
    except _UNREADABLE:
        return UNKNOWN
    if is_text:
        return Interval(place, place, NO_NULLS, _low_text(text), _high_text(text))
    return Interval(place, place, NO_NULLS)


# -- decoding only what is tracked -------------------------------------------------------------


def _decoder(paths: Sequence[Path], exact: bool) -> tuple[Any, Callable[[Any], Sequence[Any]]]:
    """A decoder that skips over untracked columns, and what takes the values of the tracked."""
    try:
        shape, places = _shape(paths)
    except ValueError:  # names with quotes or control characters, which a struct cannot have
        return _plain_decoder(paths, exact)
    section = (shape | None, None)
    fields = [("min", *section), ("max", *section), ("nulls", *section), ("rows", int | None, None)]
    names = {"min": "minValues", "max": "maxValues", "nulls": "nullCount", "rows": "numRecords"}
    stats = msgspec.defstruct("Stats", fields, rename=names)
    decoder = msgspec.json.Decoder(stats, float_hook=Decimal if exact else None)
    getter = attrgetter(*places, *places[:2]) if places else tuple  # of two names at least
    nothing = (None,) * len(places)

    def take(section: Any) -> Sequence[Any]:
        try:
            values: Sequence[Any] = getter(section)
            return values
        except AttributeError:  # no such section, or a null where a struct belongs
            return nothing

    return decoder, take


class _Plain(msgspec.Struct, rename={"nulls": "nullCount", "rows": "numRecords"}):
    """Statistics with whatever columns they have."""

    min: Any = msgspec.field(default=None, name="minValues")
    max: Any = msgspec.field(default=None, name="maxValues")
    nulls: Any = None
    rows: int | None = None


def _plain_decoder(
    paths: Sequence[Path], exact: bool
) -> tuple[Any, Callable[[Any], Sequence[Any]]]:
    """The same for columns of any name."""

    def find(section: Any, path: Path) -> Any:
        for name in path:
            section = section.get(name) if isinstance(section, dict) else None
        return section

    decoder = msgspec.json.Decoder(_Plain, float_hook=Decimal if exact else None)
    return decoder, lambda section: [find(section, path) for path in paths]


def _shape(paths: Sequence[Path]) -> tuple[Any, list[str]]:
    """A struct type with a field for each path, and the dotted attribute that leads to it."""
    names = list(dict.fromkeys(path[0] for path in paths))
    fields: list[tuple[str, Any, Any]] = []
    inner: dict[str, list[str]] = {}
    for position, name in enumerate(names):
        attribute = f"c{position}"
        deeper = [path[1:] for path in paths if path[0] == name and len(path) > 1]
        if deeper:
            kind, attributes = _shape(deeper)
            fields.append((attribute, kind | None, msgspec.field(default_factory=kind)))
            inner[name] = [f"{attribute}.{rest}" for rest in attributes]
        else:
            fields.append((attribute, Any, None))
            inner[name] = [attribute]
    rename = {f"c{position}": name for position, name in enumerate(names)}
    return msgspec.defstruct("Shape", fields, rename=rename), [inner[p[0]].pop(0) for p in paths]


def _has_decimals(columns: Sequence[StatsColumn]) -> bool:
    return any(str(column.type).startswith("decimal") for column in columns)


# -- keys of JSON values -----------------------------------------------------------------------


def _plan(column: StatsColumn) -> _Plan:
    kind = column.type
    assert isinstance(kind, PrimitiveType), f"{column.path} has no order"
    match kind.name:
        case "string":
            return _Plan(string_key, string_key, is_text=True)
        case "float":
            return _Plan(_single_key, _single_key)
        case "double" if column.was_float:
            return _Plan(
                lambda value: min(_double_key(value), _single_key(value)),
                lambda value: max(_double_key(value), _single_key(value)),
            )
        case "double":
            return _Plan(_double_key, _double_key)
        case "date":
            return _Plan(_day, _day)
        case "timestamp" | "timestamp_ntz":
            return _Plan(_microsecond, lambda text: _microsecond(text) + 999)
        case "boolean":
            return _Plan(_boolean, _boolean)
    if kind.decimal:
        return _decimal_plan(*kind.decimal)
    return _Plan(_integer, _integer)


def _partition_key(column: StatsColumn) -> Callable[[str], int]:
    """The key of a partition value, which is always text and always exact."""
    name, family = str(column.type), key_family(column.type)
    if name in INTEGRAL:
        return int
    if name == "boolean":
        return lambda text: _boolean({"true": True, "false": False}.get(text.lower()))
    if family and family.startswith("decimal"):
        return lambda text: key(Decimal(text), family)
    return _double_key if name == "double" else _plan(column).low


def _integer(value: Any) -> int:
    if type(value) is not int or not MIN <= value <= MAX:
        raise ValueError
    return value


def _boolean(value: Any) -> int:
    if type(value) is not bool:
        raise ValueError
    return int(value)


def _double_key(value: Any) -> int:
    number = float(value)
    if number != number:  # noqa: PLR0124 - NaN: a bound of nothing
        raise ValueError
    return float_key(number)


def _single_key(value: Any) -> int:
    return _double_key(single(float(value)))


def _day(text: Any) -> int:
    return date.fromisoformat(text).toordinal() - _EPOCH_DAY


def _microsecond(text: Any) -> int:
    at = datetime.fromisoformat(text)
    since = at - (_EPOCH if at.tzinfo is None else _EPOCH_UTC)
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def _decimal_plan(precision: int, scale: int) -> _Plan:
    """Keys of a decimal that a writer may have passed through a double, as delta-rs does.

    A double keeps 15 digits of a decimal. With more, a number of up to 17 digits may be off by a
    rounding error, so bounds are taken that much further out, to the next decimal of the scale.
    """

    def outward(value: Any, rounding: str, sign: int) -> int:
        exact = Decimal(value)
        if not exact.is_finite():
            raise ValueError
        if precision > 15 and len(exact.as_tuple().digits) <= 17:
            error = _DIGITS.multiply(abs(exact), _HALF_ULP)
            exact = _DIGITS.add(exact, error if sign > 0 else -error)
        scaled = int(_DIGITS.scaleb(exact, scale).to_integral_value(rounding))
        return min(max(scaled, MIN), MAX)

    return _Plan(
        lambda value: outward(value, ROUND_CEILING, -1),
        lambda value: outward(value, ROUND_FLOOR, 1),
    )
