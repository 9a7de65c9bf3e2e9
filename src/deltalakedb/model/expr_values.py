"""Constants in expressions: their order, their casts, and how they meet a column's type."""

from __future__ import annotations

import math
import struct
from datetime import UTC, date, datetime, time
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from typing import Any, Final

from deltalakedb.errors import ExpressionError
from deltalakedb.model.expr import Value, quote_text, sql_type
from deltalakedb.model.schema import INTEGRAL, DataType, PrimitiveType

DECIMALS: Final = Context(prec=38, rounding=ROUND_HALF_UP)
_BITS: Final = dict(zip(INTEGRAL, (8, 16, 32, 64), strict=True))
_TRUE: Final = ("true", "1")
_FALSE: Final = ("false", "0")


def bad(reason: str, **facts: Any) -> ExpressionError:
    """An error about a piece of an expression; `expr.parse` adds the whole text."""
    return ExpressionError(reason, reason=reason, **facts)


def show(value: Value) -> str:
    """A constant for an error message."""
    return quote_text(value) if isinstance(value, str) else str(value)


def family(kind: DataType | None) -> str | None:
    """What a type compares with: number, string, time, boolean or binary; None if unknown."""
    if kind is None or kind == PrimitiveType("void"):
        return None
    if not isinstance(kind, PrimitiveType):
        return str(kind)
    if kind.numeric:
        return "number"
    return "time" if kind.name in ("date", "timestamp", "timestamp_ntz") else kind.name


def value_type(value: object) -> PrimitiveType | None:
    """The type of a constant; None for NULL."""
    match value:
        case None:
            return None
        case bool():
            name = "boolean"
        case int():
            name = "long"
        case float():
            name = "double"
        case Decimal():
            name = "decimal(38,18)"
        case str():
            _require_unicode(value)
            name = "string"
        case bytes():
            name = "binary"
        case datetime():
            name = "timestamp_ntz" if value.tzinfo is None else "timestamp"
        case date():
            name = "date"
        case _:
            kind = type(value).__name__
            raise ExpressionError(
                f"{value!r} cannot be compared with a column: Delta has no type for {kind}",
                expression=repr(value),
                reason=f"no type for {kind}",
            )
    return PrimitiveType(name)


def _require_unicode(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ExpressionError(
            f"{text!r} is no text: it holds half a surrogate pair",
            expression=repr(text),
            reason="half a surrogate pair",
        ) from error


def compare(left: Value, right: Value) -> int:
    """-1, 0 or 1 in Spark's order: NaN is equal to itself and above every number."""
    a, b = _rank(left), _rank(right)
    if a[0] != b[0]:
        raise bad(f"cannot compare {show(left)} with {show(right)}")
    return int(a > b) - int(a < b)


def _rank(value: Value) -> tuple[str, bool, Any]:
    if isinstance(value, date):
        return "time", False, moment(value)
    kind = family(value_type(value)) or "null"
    nan = isinstance(value, float) and math.isnan(value)
    return kind, nan, 0 if nan else value


def moment(value: date) -> datetime:
    """A date or datetime as a moment: midnight for a date, UTC where no zone is given."""
    if not isinstance(value, datetime):
        return datetime.combine(value, time(), tzinfo=UTC)
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


def fit(value: Value, kind: DataType) -> Value:
    """A constant as it is compared with a column of a type, without changing what it means.

    Text is read as the column's type ('2024-01-01' as a date), numbers become the column's kind
    where that is exact. A number the column cannot hold stays as it is: `i > 1.5` is fine.

    Raises:
        ExpressionError: the two cannot be compared, for instance an integer with text.
    """
    if value is None:
        return None
    have, want = family(value_type(value)), family(kind)
    assert isinstance(kind, PrimitiveType) or want is not None
    if want == "number" and have == "number":
        return _fit_number(value, str(kind))
    if want == "time" and have == "time":
        assert isinstance(value, date)
        if str(kind) == "date" and moment(value).time() != time():
            return value
        return cast(value, PrimitiveType(str(kind)))
    if have == want or (have == "string" and want in ("number", "time", "boolean", "binary")):
        return cast(value, PrimitiveType(str(kind))) if have != want else value
    raise bad(f"cannot compare {kind} with {show(value)}", value=value, type=str(kind))


def _fit_number(value: Any, kind: str) -> Value:
    if kind in ("float", "double"):
        return _double(value)
    if kind in INTEGRAL:
        whole = not isinstance(value, float) or math.isfinite(value)
        return int(value) if whole and value == int(value) else value
    if isinstance(value, float):
        return Decimal(repr(value)) if math.isfinite(value) else value
    return Decimal(value)


def _double(value: Any) -> float:
    try:
        return float(value) + 0.0  # and so 0.0 for -0.0, which is equal
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def cast(value: Value, kind: PrimitiveType) -> Value:
    """``CAST(value AS kind)``, with an error where the value cannot be converted."""
    if value is None or value_type(value) == kind:
        return value
    try:
        return _cast(value, kind)
    except (ValueError, ArithmeticError, TypeError) as error:
        reason = f"cannot cast {show(value)} to {sql_type(kind)}"
        raise bad(reason, value=value, type=str(kind)) from error


def _cast(value: Any, kind: PrimitiveType) -> Value:
    name = kind.name
    if isinstance(value, str):
        value = _read(value.strip(), kind) if name not in ("string", "binary") else value
    if name in INTEGRAL and isinstance(value, int | float | Decimal):
        whole, bits = int(value), _BITS[name]
        if not -(2 ** (bits - 1)) <= whole < 2 ** (bits - 1):
            raise ValueError
        return whole
    if name in ("float", "double") and isinstance(value, int | float | Decimal):
        return single(_double(value)) if name == "float" else _double(value)
    if kind.decimal and isinstance(value, int | float | Decimal):
        return _to_decimal(value, *kind.decimal)
    if name == "boolean" and isinstance(value, int | float | Decimal):
        return value != 0
    if name in ("date", "timestamp", "timestamp_ntz") and isinstance(value, date):
        at = moment(value)
        return at.date() if name == "date" else at if name == "timestamp" else naive(at)
    if name == "string":
        return _text(value)
    if name == "binary" and isinstance(value, str):
        return value.encode()
    raise ValueError


def naive(value: datetime) -> datetime:
    """A moment as a timestamp without a zone, in UTC."""
    return value.astimezone(UTC).replace(tzinfo=None)


def single(value: float) -> float:
    """The nearest 32-bit float."""
    try:
        return float(struct.unpack("f", struct.pack("f", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


def _to_decimal(value: Any, precision: int, scale: int) -> Decimal:
    exact = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    try:
        return exact.quantize(Decimal(1).scaleb(-scale), context=_context(precision))
    except InvalidOperation as error:
        raise ValueError from error


def _context(precision: int) -> Context:
    return Context(prec=precision, rounding=ROUND_HALF_UP)


def _read(text: str, kind: PrimitiveType) -> Value:
    """Text as a number, boolean, date or timestamp."""
    name = kind.name
    if name in INTEGRAL:
        return int(text)
    if name in ("float", "double"):
        return float(text)
    if name == "boolean":
        return {**dict.fromkeys(_TRUE, True), **dict.fromkeys(_FALSE, False)}.get(
            text.lower(), text
        )
    if kind.decimal:
        return Decimal(text)
    if name == "date" and text[10:11] in ("", " ", "T"):  # a time of day does not matter
        return date.fromisoformat(text[:10])
    return datetime.fromisoformat(text)


def _text(value: Any) -> str:
    match value:
        case bool():
            return str(value).lower()
        case int() | str():
            return str(value)
        case Decimal():
            return f"{value:f}"
        case datetime():
            text = naive(moment(value)).isoformat(" ")
            return text.rstrip("0") if value.microsecond else text
        case date():
            return value.isoformat()
        case bytes():
            return value.decode()
    raise ValueError  # floats: every engine writes them in its own way
