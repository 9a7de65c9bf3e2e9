"""The functions and casts of expressions in Arrow's kernels, with Spark's semantics."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from deltalakedb.model.arrow import arrow_type
from deltalakedb.model.expr import Expr, Literal, sql_type
from deltalakedb.model.expr_bind import type_of
from deltalakedb.model.expr_functions import strftime_pattern, substring_bounds, truncation
from deltalakedb.model.expr_values import bad, family
from deltalakedb.model.schema import INTEGRAL, DataType, PrimitiveType

ArrowExpr: TypeAlias = Any
"""A `pyarrow.compute.Expression`; pyarrow is not typed."""

FLOATS: Final = ("float", "double")
NAIVE: Final = pa.timestamp("us")
UTC: Final = pa.timestamp("us", tz="UTC")
_NULL: Final = pa.scalar(None)
_DAYS: Final = pa.int32()
_DIGITS: Final = dict(zip(INTEGRAL, (3, 5, 10, 19), strict=True))
_HALF_UP: Final = "half_towards_infinity"


def call(name: str, args: Sequence[ArrowExpr], exprs: Sequence[Expr]) -> ArrowExpr:
    """A function of compiled arguments; `exprs` are the same arguments before compilation."""
    if name in _SIMPLE:
        return _SIMPLE[name](*args)
    if name in _ARITHMETIC:
        return _ARITHMETIC[name](*as_numbers(args, exprs))
    if name in _SPECIAL:
        return _SPECIAL[name](args, exprs)
    raise bad(f"Arrow cannot compute {name}")


def kind_of(expr: Expr) -> str:
    """The name of an expression's type; empty if it is not known."""
    kind = type_of(expr)
    return "" if kind is None else str(kind)


def as_numbers(args: Sequence[ArrowExpr], exprs: Sequence[Expr]) -> list[ArrowExpr]:
    """Numbers of one kind: beside a float integers become doubles, beside a decimal decimals.

    Arrow would do so too, but refuses integers that a double rounds, and has a decimal of 19
    digits for every integer, which soon leads to more digits than there are.
    """
    kinds = [kind_of(expr) for expr in exprs]
    convert: Callable[[ArrowExpr, Expr], ArrowExpr]
    if any(kind in FLOATS for kind in kinds):
        convert = _as_double
    elif any(kind.startswith("decimal") for kind in kinds):
        convert = _as_decimal
    else:
        return list(args)
    return [
        convert(arg, expr) if kind in INTEGRAL else arg
        for arg, expr, kind in zip(args, exprs, kinds, strict=True)
    ]


def _as_double(value: ArrowExpr, _: Expr) -> ArrowExpr:
    return value.cast(pa.float64(), safe=False)


def _as_decimal(value: ArrowExpr, expr: Expr) -> ArrowExpr:
    if isinstance(expr, Literal) and isinstance(expr.value, int):
        return pc.scalar(Decimal(expr.value))
    return value.cast(pa.decimal128(_DIGITS[kind_of(expr)], 0))


def _constant(expr: Expr, place: str) -> Any:
    if not isinstance(expr, Literal) or expr.value is None:
        raise bad(f"Arrow computes {place} only with a constant, not with {expr}")
    return expr.value


# -- numbers -----------------------------------------------------------------------------------


def _divisor(value: ArrowExpr) -> ArrowExpr:
    """Zero as NULL, and so the division too."""
    return pc.if_else(value == 0, _NULL, value)


def _divide(args: Sequence[ArrowExpr], exprs: Sequence[Expr]) -> ArrowExpr:
    left, right = args
    if not any(kind_of(expr).startswith("decimal") for expr in exprs):
        left, right = (arg.cast(pa.float64(), safe=False) for arg in args)
    return pc.divide(left, _divisor(right))


def _whole_divide(args: Sequence[ArrowExpr], exprs: Sequence[Expr]) -> ArrowExpr:
    left, right = as_numbers(args, exprs)
    ratio = pc.divide(left, _divisor(right))
    whole = all(kind_of(expr) in INTEGRAL for expr in exprs)
    return ratio if whole else pc.trunc(ratio).cast(pa.int64())


def _remainder(left: ArrowExpr, right: ArrowExpr) -> ArrowExpr:
    if not hasattr(pc, "remainder"):
        raise bad("% needs a newer version of pyarrow")
    return pc.remainder(left, _divisor(right))


def _positive_remainder(left: ArrowExpr, right: ArrowExpr) -> ArrowExpr:
    rest = _remainder(left, right)
    return pc.if_else(rest < 0, _remainder(rest + right, right), rest)


def _round(args: Sequence[ArrowExpr], exprs: Sequence[Expr]) -> ArrowExpr:
    digits = int(_constant(exprs[1], "round")) if len(exprs) > 1 else 0
    if digits >= 0 and kind_of(exprs[0]) in INTEGRAL:
        return args[0]
    return pc.round(args[0], ndigits=digits, round_mode=_HALF_UP)


def _to_whole(kernel: Callable[[ArrowExpr], ArrowExpr]) -> Any:
    def apply(args: Sequence[ArrowExpr], exprs: Sequence[Expr]) -> ArrowExpr:
        whole = kind_of(exprs[0]) in INTEGRAL
        return args[0] if whole else kernel(args[0]).cast(pa.int64())

    return apply


def _isnan(args: Sequence[ArrowExpr], exprs: Sequence[Expr]) -> ArrowExpr:
    if kind_of(exprs[0]) not in FLOATS:
        return pc.scalar(False)
    return pc.coalesce(pc.is_nan(args[0]), pc.scalar(False))


def _greatest(args: Sequence[ArrowExpr], exprs: Sequence[Expr]) -> ArrowExpr:
    """Arrow passes over NaN, which is the greatest."""
    values = as_numbers(args, exprs)
    found = pc.max_element_wise(*values)
    for value, expr in zip(values, exprs, strict=True):
        if kind_of(expr) in FLOATS:
            found = pc.if_else(_isnan([value], [expr]), pc.scalar(math.nan), found)
    return found


# -- text --------------------------------------------------------------------------------------


def _substring(args: Sequence[ArrowExpr], exprs: Sequence[Expr]) -> ArrowExpr:
    length = int(_constant(exprs[2], "substring")) if len(exprs) > 2 else None
    start, stop = substring_bounds(int(_constant(exprs[1], "substring")), length)
    return pc.utf8_slice_codeunits(args[0], start=start, stop=stop)


def _replace(args: Sequence[ArrowExpr], exprs: Sequence[Expr]) -> ArrowExpr:
    search, replacement = (_constant(expr, "replace") for expr in exprs[1:])
    if not search:
        return args[0]
    return pc.replace_substring(args[0], pattern=search, replacement=replacement)


def _matches(name: str, kernel: Callable[..., ArrowExpr]) -> Any:
    def apply(args: Sequence[ArrowExpr], exprs: Sequence[Expr]) -> ArrowExpr:
        return kernel(args[0], pattern=_constant(exprs[1], name))

    return apply


def _rlike(args: Sequence[ArrowExpr], exprs: Sequence[Expr]) -> ArrowExpr:
    pattern = _constant(exprs[1], "rlike")
    try:
        pc.match_substring_regex(pa.scalar(""), pattern)
    except pa.ArrowInvalid as error:
        raise bad(f"Arrow cannot match the regular expression {pattern!r}: {error}") from error
    return pc.match_substring_regex(args[0], pattern=pattern)


# -- time --------------------------------------------------------------------------------------


def _days(value: ArrowExpr) -> ArrowExpr:
    return value.cast(pa.date32()).cast(_DAYS)


def _moment(value: ArrowExpr, expr: Expr) -> ArrowExpr:
    """A date as the timestamp of its midnight."""
    return value.cast(UTC) if kind_of(expr) == "date" else value


def _of_day(kernel: Callable[[ArrowExpr], ArrowExpr]) -> Any:
    return lambda args, exprs: kernel(_moment(args[0], exprs[0]))


def _date_format(args: Sequence[ArrowExpr], exprs: Sequence[Expr]) -> ArrowExpr:
    pattern = strftime_pattern(_constant(exprs[1], "date_format"))
    seconds = pc.floor_temporal(_moment(args[0], exprs[0]), unit="second").cast(pa.timestamp("s"))
    return pc.strftime(seconds, format=pattern)


def _date_trunc(args: Sequence[ArrowExpr], exprs: Sequence[Expr]) -> ArrowExpr:
    unit = truncation(_constant(exprs[0], "date_trunc"))
    return pc.floor_temporal(_moment(args[1], exprs[1]), unit=unit, week_starts_monday=True)


def _trunc(args: Sequence[ArrowExpr], exprs: Sequence[Expr]) -> ArrowExpr:
    unit = truncation(_constant(exprs[1], "trunc"))
    found = pc.floor_temporal(args[0].cast(pa.date32()), unit=unit, week_starts_monday=True)
    return found.cast(pa.date32())


_SIMPLE: Final[Mapping[str, Callable[..., ArrowExpr]]] = {
    "lower": pc.utf8_lower,
    "upper": pc.utf8_upper,
    "length": pc.utf8_length,
    "concat": lambda *args: pc.binary_join_element_wise(*args, pc.scalar("")),
    "trim": lambda text: pc.utf8_trim(text, characters=" "),
    "ltrim": lambda text: pc.utf8_ltrim(text, characters=" "),
    "rtrim": lambda text: pc.utf8_rtrim(text, characters=" "),
    "year": pc.year,
    "quarter": pc.quarter,
    "month": pc.month,
    "day": pc.day,
    "dayofweek": lambda at: pc.day_of_week(at, count_from_zero=False, week_start=7),
    "dayofyear": pc.day_of_year,
    "weekofyear": pc.iso_week,
    "date_add": lambda at, days: (_days(at) + days.cast(_DAYS)).cast(pa.date32()),
    "date_sub": lambda at, days: (_days(at) - days.cast(_DAYS)).cast(pa.date32()),
    "datediff": lambda end, start: _days(end) - _days(start),
}
_ARITHMETIC: Final[Mapping[str, Callable[..., ArrowExpr]]] = {
    "+": pc.add_checked,
    "-": pc.subtract_checked,
    "*": pc.multiply_checked,
    "%": _remainder,
    "pmod": _positive_remainder,
    "negative": pc.negate_checked,
    "abs": pc.abs_checked,
    "least": pc.min_element_wise,
    "coalesce": pc.coalesce,
}
_SPECIAL: Final[Mapping[str, Callable[[Sequence[ArrowExpr], Sequence[Expr]], ArrowExpr]]] = {
    "/": _divide,
    "div": _whole_divide,
    "ceil": _to_whole(pc.ceil),
    "floor": _to_whole(pc.floor),
    "round": _round,
    "isnan": _isnan,
    "greatest": _greatest,
    "substring": _substring,
    "replace": _replace,
    "startswith": _matches("startswith", pc.starts_with),
    "endswith": _matches("endswith", pc.ends_with),
    "contains": _matches("contains", pc.match_substring),
    "rlike": _rlike,
    "hour": _of_day(pc.hour),
    "minute": _of_day(pc.minute),
    "second": _of_day(pc.second),
    "date_format": _date_format,
    "date_trunc": _date_trunc,
    "trunc": _trunc,
}


# -- casts -------------------------------------------------------------------------------------


def cast(value: ArrowExpr, source: DataType | None, target: PrimitiveType) -> ArrowExpr:
    """``CAST(value AS target)``; values that cannot be converted fail when they are met."""
    have, want = str(source), target.name
    if have == want:
        return value
    wanted = arrow_type(target)
    if have == "string":
        return _from_text(pc.utf8_trim(value, characters=" "), value, target)
    if want == "string" and have in ("timestamp", "timestamp_ntz"):
        text = value.cast(NAIVE).cast(pa.string())
        return pc.replace_substring_regex(text, pattern=r"\.?0+$", replacement="")
    if want == "string" and have not in FLOATS:
        return value.cast(wanted)
    if (have, want) == ("timestamp_ntz", "timestamp"):
        return pc.assume_timezone(value, "UTC")
    if family(source) == family(target) == "time":
        return value.cast(wanted)
    if family(source) in ("number", "boolean") and family(target) in ("number", "boolean"):
        return _from_number(value, source, target)
    raise bad(f"Arrow cannot cast {source or 'this'} to {sql_type(target)}")


def _from_number(value: ArrowExpr, source: DataType | None, target: PrimitiveType) -> ArrowExpr:
    wanted, fractional = arrow_type(target), str(source) not in (*INTEGRAL, "boolean")
    if target.name in FLOATS:
        return value.cast(wanted, safe=False)
    if target.name in INTEGRAL and fractional:
        return pc.trunc(value).cast(wanted)
    if target.decimal and not fractional:  # Arrow wants room for the largest integer there is
        return value.cast(pa.decimal256(76, target.decimal[1])).cast(wanted)
    if target.decimal:
        rounded = pc.round(value, ndigits=target.decimal[1], round_mode=_HALF_UP)
        return rounded.cast(wanted)
    return value.cast(wanted)


def _from_text(text: ArrowExpr, original: ArrowExpr, target: PrimitiveType) -> ArrowExpr:
    wanted = arrow_type(target)
    match target.name:
        case "binary":
            return original.cast(wanted)
        case "date":
            return pc.utf8_slice_codeunits(text, start=0, stop=10).cast(wanted)
        case "timestamp":  # Arrow wants a zone with every text
            is_date = pc.utf8_length(text) == 10
            timed = pc.if_else(is_date, _joined(text, "T00:00:00"), text)
            has_zone = pc.match_substring_regex(timed, pattern=r"(Z|[+-]\d\d:?\d\d)$")
            return pc.if_else(has_zone, timed, _joined(timed, "Z")).cast(wanted)
    return text.cast(wanted)


def _joined(text: ArrowExpr, suffix: str) -> ArrowExpr:
    return pc.binary_join_element_wise(text, pc.scalar(suffix), pc.scalar(""))
