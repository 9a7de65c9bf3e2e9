"""Moments: milliseconds since the epoch inside, ISO 8601 UTC for people."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime

from deltalakedb.errors import InvalidArgument

Clock = Callable[[], int]
"""Milliseconds since the epoch."""


def system_clock() -> int:
    """The machine's clock."""
    return time.time_ns() // 1_000_000


def iso(ms: int | None) -> str:
    """ISO 8601 with milliseconds and Z."""
    if ms is None:
        return "never"
    moment = datetime.fromtimestamp(ms / 1000, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def to_ms(moment: datetime | str | int) -> int:
    """Milliseconds of a datetime, an ISO 8601 text or a number that already is one.

    Text and datetimes without a zone are UTC.
    """
    if isinstance(moment, int):
        return moment
    if isinstance(moment, str):
        try:
            moment = datetime.fromisoformat(moment)
        except ValueError as e:
            raise InvalidArgument(
                f"{moment!r} is not a moment; write it like 2026-01-31T12:00:00Z",
                argument="timestamp",
            ) from e
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return round(moment.timestamp() * 1000)
