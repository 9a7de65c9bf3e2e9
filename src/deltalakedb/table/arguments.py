"""What a caller may hand in, checked where it comes in: a wrong type is an error of the tree."""

from __future__ import annotations

import operator
import os
import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from deltalakedb.errors import InvalidArgument
from deltalakedb.times import to_ms

_UNSTORABLE = re.compile("[\0\ud800-\udfff]")
"""What some database or file format cannot hold in a text."""


def _refuse(argument: str, value: object, allowed: str) -> InvalidArgument:
    return InvalidArgument(
        f"{argument} takes {allowed}, not {value!r}", argument=argument, allowed=allowed
    )


def text(argument: str, value: Any) -> str:
    """A text that every database can hold."""
    if not isinstance(value, str) or _UNSTORABLE.search(value):
        raise _refuse(argument, value, "a text without NUL and lone surrogates")
    return value


def optional_text(argument: str, value: Any) -> str | None:
    """A text, or None."""
    return None if value is None else text(argument, value)


def name(argument: str, value: Any) -> str:
    """A text to call something by."""
    if not text(argument, value).strip() or len(value) > 255:
        raise _refuse(argument, value, "a name of 1 to 255 characters")
    return str(value)


def names(argument: str, value: Any) -> tuple[str, ...]:
    """One name or several; None is none."""
    if value is None:
        return ()
    if isinstance(value, str):
        return (text(argument, value),)
    if not isinstance(value, Iterable):
        raise _refuse(argument, value, "a name or several")
    return tuple(text(argument, item) for item in value)


def path(argument: str, value: Any) -> str:
    """A location: a text or a `Path`."""
    return text(argument, os.fspath(value) if isinstance(value, os.PathLike) else value)


def mapping(argument: str, value: Any) -> Mapping[Any, Any]:
    """A mapping, empty for None."""
    if value is not None and not isinstance(value, Mapping):
        raise _refuse(argument, value, "a mapping of names to values")
    return value or {}


def number(argument: str, value: Any, *, least: int | None = None) -> int:
    """A whole number, numpy's too."""
    try:
        found = operator.index(value)
    except TypeError:
        raise _refuse(argument, value, "a whole number") from None
    if least is not None and found < least:
        raise _refuse(argument, value, f"a whole number from {least}")
    return found


def limit(value: Any) -> int | None:
    """How many at most; None for all."""
    return None if value is None else number("limit", value, least=0)


def moment(argument: str, value: Any) -> int:
    """A point in time, in milliseconds since the epoch."""
    if not isinstance(value, datetime | str | int):
        raise _refuse(argument, value, "a datetime, an ISO 8601 text or milliseconds")
    return to_ms(value)
