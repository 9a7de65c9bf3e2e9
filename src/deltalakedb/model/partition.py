"""Partition values: the text in the log, the value in Python, the name of the folder."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal, DecimalException
from typing import Final, TypeAlias

from deltalakedb.errors import CorruptLog, InvalidArgument, UnsupportedByBackend
from deltalakedb.model.schema import DataType, PrimitiveType

PartitionValue: TypeAlias = str | int | float | bool | Decimal | date | datetime | bytes | None

HIVE_NULL: Final = "__HIVE_DEFAULT_PARTITION__"

_BITS: Final = {"byte": 8, "short": 16, "integer": 32, "long": 64}
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_WIDE: Final = Context(prec=80)
_NUMBER: Final = re.compile(r"[+-]?(?:[0-9][0-9.]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_NOT_NUMBERS: Final = {"nan": math.nan, "infinity": math.inf, "inf": math.inf}
_MOMENT: Final = re.compile(
    r"([+-]?[0-9]{4,6})-([0-9]{1,2})-([0-9]{1,2})"
    r"(?:[ T]([01][0-9]|2[0-3]):([0-5][0-9])(?::([0-5][0-9])(?:\.([0-9]{1,9}))?)?)?"
    r"(?:(Z)|([+-])([0-9]{2}):?([0-9]{2}))?"
)
_ESCAPED_BYTES: Final = re.compile(r"(?:\\u00[0-9A-Fa-f]{2})+")


# -- text to value -----------------------------------------------------------------------------


def deserialize(text: str | None, kind: DataType) -> PartitionValue:
    """The value of a partition column. Null and the empty text are null.

    Timestamps come out in UTC; one written without a zone is taken as UTC, since the zone of its
    writer is not known.

    Raises:
        CorruptLog: the text is not a value of this type.
        UnsupportedByBackend: a year that Python does not have; `date_days` and
            `timestamp_micros` read those too.
    """
    if text is None or text == "":
        return None
    try:
        return _parse(text, kind)
    except OverflowError as error:
        raise UnsupportedByBackend(
            f"partition value {text!r} lies beyond the years Python knows",
            backend="python",
            operation=f"the {kind} {text!r}",
        ) from error
    except (ValueError, KeyError, DecimalException) as error:
        raise _corrupt(text, str(kind)) from error


def _corrupt(text: str, kind: str) -> CorruptLog:
    reason = f"partition value {text!r} is not a {kind}"
    return CorruptLog(reason, reason=reason)


def _parse(text: str, kind: DataType) -> PartitionValue:
    name = kind.name if isinstance(kind, PrimitiveType) else ""
    if (parser := _PARSERS.get(name)) is not None:
        return parser(text)
    if isinstance(kind, PrimitiveType) and kind.numeric:
        return _parse_number(text, kind)
    raise ValueError(kind)


def _parse_number(text: str, kind: PrimitiveType) -> int | float | Decimal:
    if kind.name in ("float", "double"):
        unsigned = text.lstrip("+-").lower()
        if unsigned in _NOT_NUMBERS:
            return -_NOT_NUMBERS[unsigned] if text.startswith("-") else _NOT_NUMBERS[unsigned]
    if not _NUMBER.fullmatch(text):
        raise ValueError(text)
    if kind.decimal:
        return Decimal(text)
    if kind.name not in _BITS:
        return float(text) if kind.name == "double" else _single(float(text))
    value, limit = int(text), 1 << (_BITS[kind.name] - 1)
    if not -limit <= value < limit:
        raise ValueError(text)
    return value


def _single(value: float) -> float:
    """The nearest 32-bit float, infinite if there is none."""
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


def _parse_bytes(text: str) -> bytes:
    if _ESCAPED_BYTES.fullmatch(text):
        return bytes(int(part, 16) for part in text.split("\\u")[1:])
    return text.encode()


def date_days(text: str) -> int:
    """Days since 1970-01-01 of a date, of any year."""
    found = _MOMENT.fullmatch(text)
    if found is None or found[4] or found[8] or found[9]:
        raise _corrupt(text, "date")
    return _days(found, "date")


def timestamp_micros(text: str) -> int:
    """Microseconds since 1970-01-01 UTC of a timestamp in either spelling, of any year."""
    found = _MOMENT.fullmatch(text)
    if found is None:
        raise _corrupt(text, "timestamp")
    hours, minutes, seconds = (int(part or 0) for part in found.group(4, 5, 6))
    if found[9]:
        offset = int(found[10]) * 60 + int(found[11])
        minutes -= offset if found[9] == "+" else -offset
    whole = ((_days(found, "timestamp") * 24 + hours) * 60 + minutes) * 60 + seconds
    return whole * 1_000_000 + int((found[7] or "").ljust(6, "0")[:6])


def _days(found: re.Match[str], kind: str) -> int:
    """Python's calendar, moved by whole cycles of 400 years."""
    cycles, year = divmod(int(found[1]) - 2000, 400)
    try:
        day = date(2000 + year, int(found[2]), int(found[3]))
    except ValueError as error:
        raise _corrupt(found[0], kind) from error
    return day.toordinal() - _EPOCH.toordinal() + cycles * 146_097


def _date(text: str) -> date:
    return (_EPOCH + timedelta(days=date_days(text))).date()


def _moment(text: str) -> datetime:
    return _EPOCH + timestamp_micros(text) * _MICROSECOND


_PARSERS: Final[Mapping[str, Callable[[str], PartitionValue]]] = {
    "string": str,
    "binary": _parse_bytes,
    "boolean": lambda text: {"true": True, "false": False}[text.lower()],
    "date": _date,
    "timestamp": _moment,
    "timestamp_ntz": lambda text: _moment(text).replace(tzinfo=None),
}


# -- value to text -----------------------------------------------------------------------------


def serialize(value: PartitionValue, kind: DataType) -> str | None:
    """The text of a partition value as it goes into the log; null and empty values are null.

    Raises:
        InvalidArgument: the value is not one of this type.
    """
    if value is None or value in ("", b""):
        return None
    try:
        text = _render(value, kind)
    except (ValueError, OverflowError, DecimalException) as error:
        raise _wrong(value, kind) from error
    if text is None:
        raise _wrong(value, kind)
    return text


def _wrong(value: PartitionValue, kind: DataType) -> InvalidArgument:
    return InvalidArgument(
        f"{value!r} cannot be a partition value of type {kind}", argument=value, allowed=str(kind)
    )


def _render(value: PartitionValue, kind: DataType) -> str | None:
    text = None
    match kind, value:
        case PrimitiveType(name="string"), str():
            text = value
        case PrimitiveType(name="binary"), bytes():
            text = _render_bytes(value)
        case PrimitiveType(name="boolean"), bool():
            text = "true" if value else "false"
        case PrimitiveType(name="timestamp"), datetime(tzinfo=zone) if zone is not None:
            moment = value.astimezone(UTC).replace(tzinfo=None)
            text = f"{moment.isoformat(timespec='microseconds')}Z"
        case PrimitiveType(name="timestamp_ntz"), datetime(tzinfo=None):
            text = value.isoformat(sep=" ")
        case PrimitiveType(name="date"), date() if not isinstance(value, datetime):
            text = value.isoformat()
        case PrimitiveType(), int() | float() | Decimal() if not isinstance(value, bool):
            text = _render_number(value, kind)
    return text


def _render_number(value: float | Decimal, kind: PrimitiveType) -> str | None:
    if kind.name in _BITS and isinstance(value, int):
        limit = 1 << (_BITS[kind.name] - 1)
        return str(value) if -limit <= value < limit else None
    if kind.name in ("float", "double") and not isinstance(value, Decimal):
        return _render_float(float(value), kind.name)
    if kind.decimal and not isinstance(value, float):
        precision, scale = kind.decimal
        exact = Decimal(value).quantize(Decimal(1).scaleb(-scale), context=_WIDE)
        fits = exact == value and len(exact.as_tuple().digits) <= max(precision, 1)
        return format(exact, "f") if fits else None
    return None


def _render_float(value: float, name: str) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if name == "double":
        return repr(value)
    single = struct.unpack("<f", struct.pack("<f", value))[0]
    forms = (float(f"{single:.{digits}g}") for digits in range(1, 10))
    return repr(next(form for form in forms if _single(form) == single))


def _render_bytes(value: bytes) -> str:
    """As UTF-8 text where they are that, as Delta Spark does, else escaped byte by byte."""
    try:
        text = value.decode()
    except UnicodeDecodeError:
        text = ""
    if text and not _ESCAPED_BYTES.fullmatch(text):
        return text
    return "".join(f"\\u00{byte:02X}" for byte in value)


# -- folders -----------------------------------------------------------------------------------

_HIVE_ESCAPED: Final = {
    code: f"%{code:02X}" for code in (*range(0x20), 0x7F, *map(ord, "\"#%'*/:=?\\{[]^"))
}


def hive_path(values: Iterable[tuple[str, str | None]]) -> str:
    """Folders for (column, text) pairs, `a=1/b=x`, escaped as Hive and Spark do.

    This is a name in storage: it still has to be encoded to go into the log.
    """
    return "/".join(
        f"{name.translate(_HIVE_ESCAPED)}={value.translate(_HIVE_ESCAPED) if value else HIVE_NULL}"
        for name, value in values
    )
