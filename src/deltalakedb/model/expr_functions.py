"""The functions of expressions: what they take, what they give, and their exact value.

Arguments and results carry a kind: number, string, time (a date or a timestamp), boolean or any.
A result may also be a type, ``same`` (the common type of the arguments), ``math`` and ``ratio``
(what Spark's arithmetic gives), or ``moment`` (a timestamp, without a zone if the argument is).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from functools import cmp_to_key, partial
from typing import Any, Final

from deltalakedb.model.expr_values import DECIMALS, bad, compare, moment, show

_LONG: Final = 2**63


@dataclass(frozen=True)
class Function:
    """A function; `most` is None when the last argument may repeat."""

    name: str
    apply: Callable[..., Any]
    takes: tuple[str, ...]
    gives: str
    least: int
    most: int | None
    null_in_null_out: bool = True

    def __call__(self, *args: Any) -> Any:
        """The value; NULL if any argument is, unless the function says what else."""
        if self.null_in_null_out and None in args:
            return None
        try:
            return self.apply(*args)
        except (ArithmeticError, ValueError) as error:
            shown = ", ".join(map(show, args))
            raise bad(f"{self.name}({shown}) has no value: {error}") from error

    def kind(self, position: int) -> str:
        """The kind of the argument at a position."""
        return self.takes[min(position, len(self.takes) - 1)]


# -- numbers -----------------------------------------------------------------------------------


def _numbers(*args: Any) -> tuple[Any, ...]:
    """Both as doubles if one is, as decimals if one is, else as integers."""
    if any(isinstance(arg, float) for arg in args):
        return tuple(float(arg) for arg in args)
    if any(isinstance(arg, Decimal) for arg in args):
        return tuple(Decimal(arg) for arg in args)
    return args


def _in_range(value: Any) -> Any:
    if isinstance(value, int) and not -_LONG <= value < _LONG:
        raise bad(f"integer overflow: {value}")
    return value


def _arithmetic(
    exact: Callable[[Any, Any], Any], decimal: Callable[[Decimal, Decimal], Decimal]
) -> Callable[[Any, Any], Any]:
    def apply(left: Any, right: Any) -> Any:
        a, b = _numbers(left, right)
        return decimal(a, b) if isinstance(a, Decimal) else _in_range(exact(a, b))

    return apply


def _divide(left: Any, right: Any) -> Any:
    a, b = _numbers(left, right)
    if b == 0:
        return None
    return DECIMALS.divide(a, b) if isinstance(a, Decimal) else a / b


def _whole_divide(left: Any, right: Any) -> Any:
    a, b = _numbers(left, right)
    if b == 0:
        return None
    if isinstance(a, int):
        return _in_range(abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1))
    return math.trunc(DECIMALS.divide(a, b) if isinstance(a, Decimal) else a / b)


def _remainder(left: Any, right: Any) -> Any:
    """With the sign of the dividend."""
    a, b = _numbers(left, right)
    if b == 0:
        return None
    if isinstance(a, Decimal):
        return DECIMALS.remainder(a, b)
    return math.fmod(a, b) if isinstance(a, float) else int(math.copysign(1, a)) * (abs(a) % abs(b))


def _positive_remainder(left: Any, right: Any) -> Any:
    rest = _remainder(left, right)
    return rest if rest is None or rest >= 0 else _remainder(rest + right, right)


def _round(value: Any, digits: int = 0) -> Any:
    exact = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    if not exact.is_finite():
        return value
    rounded = exact.quantize(Decimal(1).scaleb(-digits), rounding=ROUND_HALF_UP)
    return rounded if isinstance(value, Decimal) else type(value)(rounded)


def _coalesce(*args: Any) -> Any:
    return next((arg for arg in args if arg is not None), None)


def _isnan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _extreme(*args: Any, sign: int) -> Any:
    known = [arg for arg in args if arg is not None]
    order: Callable[[Any, Any], int] = compare
    return max(known, key=cmp_to_key(lambda a, b: sign * order(a, b)), default=None)


# -- text --------------------------------------------------------------------------------------


def substring_bounds(start: int, length: int | None) -> tuple[int, int | None]:
    """Spark's 1-based start (0 is 1, negative counts from the end) as a Python slice."""
    begin = start - 1 if start > 0 else start
    if length is None:
        return begin, None
    end = begin + max(length, 0)
    return begin, None if begin < 0 <= end else end


def _substring(text: str, start: int, length: int | None = None) -> str:
    return text[slice(*substring_bounds(start, length))]


def _replace(text: str, search: str, replacement: str) -> str:
    return text.replace(search, replacement) if search else text


def _like_regex(text: str, pattern: str) -> bool:
    try:
        return re.search(pattern, text) is not None
    except re.error as error:
        raise bad(f"not a regular expression: {pattern!r} ({error})") from error


# -- time --------------------------------------------------------------------------------------

_PATTERNS: Final = {"yyyy": "%Y", "MM": "%m", "dd": "%d", "HH": "%H", "mm": "%M", "ss": "%S"}
_PATTERN: Final = re.compile(r"([A-Za-z])\1*|'([^']*)'|[^A-Za-z']")

_FIRST: Final = {"month": 1, "day": 1, "hour": 0, "minute": 0, "second": 0, "microsecond": 0}
_PARTS: Final = tuple(_FIRST)
_SHORT: Final = {"hour": 3, "minute": 4, "second": 5}
_KEPT: Final = {"year": 0, "quarter": 1, "month": 1, "week": 2, "day": 2, **_SHORT}
"""How many of the parts a truncation keeps."""
_UNITS: Final = {"yyyy": "year", "yy": "year", "mon": "month", "mm": "month", "dd": "day"}


def strftime_pattern(pattern: str) -> str:
    """A Spark date pattern made of yyyy MM dd HH mm ss and punctuation, for strftime."""
    result = ""
    for found in _PATTERN.finditer(pattern):
        token = found[0]
        if token.isalpha() and token not in _PATTERNS:
            raise bad(f"date pattern {pattern!r}: {token!r} is not supported")
        text = _PATTERNS.get(token) or (token if found[2] is None else found[2] or "'")
        result += text if token in _PATTERNS else text.replace("%", "%%")
    return result


def _date_format(value: date, pattern: str) -> str:
    # strftime does not pad years below 1000
    return moment(value).strftime(strftime_pattern(pattern).replace("%Y", f"{value.year:04}"))


def truncation(unit: str) -> str:
    """The name of a unit that a time can be truncated to."""
    name = _UNITS.get(unit.lower(), unit.lower())
    if name not in _KEPT:
        raise bad(f"cannot truncate a time to {unit!r}, only to {', '.join(_KEPT)}")
    return name


def _date_trunc(unit: str, value: date) -> datetime:
    at = value if isinstance(value, datetime) else moment(value)
    name = truncation(unit)
    if name == "week":
        at -= timedelta(days=at.weekday())
    if name == "quarter":
        at = at.replace(month=(at.month - 1) // 3 * 3 + 1, day=1)
    cleared: dict[str, Any] = {part: _FIRST[part] for part in _PARTS[_KEPT[name] :]}
    return at.replace(**cleared)


def _day(value: date) -> date:
    return moment(value).date()


def _part(name: str) -> Callable[[date], int]:
    return lambda value: int(getattr(moment(value), name))


def _function(
    name: str, apply: Callable[..., Any], takes: str, gives: str, *, optional: int = 0
) -> Function:
    """`takes` lists the kinds of the arguments; a trailing ``...`` repeats the last one."""
    kinds = takes.removesuffix(" ...").split()
    repeats = takes.endswith("...")
    least = len(kinds) - optional
    return Function(name, apply, tuple(kinds), gives, least, None if repeats else len(kinds))


_NULL_AWARE: Final[Sequence[Function]] = (
    Function("coalesce", _coalesce, ("any",), "same", 1, None, null_in_null_out=False),
    Function(
        "greatest", partial(_extreme, sign=1), ("any",), "same", 2, None, null_in_null_out=False
    ),
    Function(
        "least", partial(_extreme, sign=-1), ("any",), "same", 2, None, null_in_null_out=False
    ),
    Function("isnan", _isnan, ("number",), "boolean", 1, 1, null_in_null_out=False),
)

_PLAIN: Final[Sequence[Function]] = (
    _function("+", _arithmetic(lambda a, b: a + b, DECIMALS.add), "number number", "math"),
    _function("-", _arithmetic(lambda a, b: a - b, DECIMALS.subtract), "number number", "math"),
    _function("*", _arithmetic(lambda a, b: a * b, DECIMALS.multiply), "number number", "math"),
    _function("/", _divide, "number number", "ratio"),
    _function("%", _remainder, "number number", "math"),
    _function("div", _whole_divide, "number number", "long"),
    _function("pmod", _positive_remainder, "number number", "math"),
    _function("negative", lambda a: _in_range(-a), "number", "same"),
    _function("abs", lambda a: _in_range(abs(a)), "number", "same"),
    _function("ceil", math.ceil, "number", "long"),
    _function("floor", math.floor, "number", "long"),
    _function("round", _round, "number number", "same", optional=1),
    _function("lower", str.lower, "string", "string"),
    _function("upper", str.upper, "string", "string"),
    _function("length", len, "string", "integer"),
    _function("substring", _substring, "string number number", "string", optional=1),
    _function("concat", lambda *args: "".join(args), "string ...", "string"),
    _function("trim", lambda text: text.strip(" "), "string", "string"),
    _function("ltrim", lambda text: text.lstrip(" "), "string", "string"),
    _function("rtrim", lambda text: text.rstrip(" "), "string", "string"),
    _function("replace", _replace, "string string string", "string"),
    _function("startswith", str.startswith, "string string", "boolean"),
    _function("endswith", str.endswith, "string string", "boolean"),
    _function("contains", lambda text, part: part in text, "string string", "boolean"),
    _function("rlike", _like_regex, "string string", "boolean"),
    _function("year", _part("year"), "time", "integer"),
    _function("quarter", lambda at: (moment(at).month + 2) // 3, "time", "integer"),
    _function("month", _part("month"), "time", "integer"),
    _function("day", _part("day"), "time", "integer"),
    _function("dayofweek", lambda at: moment(at).isoweekday() % 7 + 1, "time", "integer"),
    _function("dayofyear", lambda at: moment(at).timetuple().tm_yday, "time", "integer"),
    _function("weekofyear", lambda at: moment(at).isocalendar().week, "time", "integer"),
    _function("hour", _part("hour"), "time", "integer"),
    _function("minute", _part("minute"), "time", "integer"),
    _function("second", _part("second"), "time", "integer"),
    _function("date_format", _date_format, "time string", "string"),
    _function("date_trunc", _date_trunc, "string time", "moment"),
    _function("trunc", lambda at, unit: _date_trunc(unit, _day(at)).date(), "time string", "date"),
    _function("date_add", lambda at, n: _day(at) + timedelta(n), "time number", "date"),
    _function("date_sub", lambda at, n: _day(at) - timedelta(n), "time number", "date"),
    _function("datediff", lambda a, b: (_day(a) - _day(b)).days, "time time", "integer"),
)

FUNCTIONS: Final[Mapping[str, Function]] = {
    function.name: function for function in (*_PLAIN, *_NULL_AWARE)
}
"""Every function by its Spark name; `expr_sql` maps other spellings to these."""
