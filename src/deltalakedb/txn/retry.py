"""Bounded retry with jitter, for what passes by itself."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from deltalakedb.errors import CatalogLocked

T = TypeVar("T")


@dataclass(frozen=True)
class Backoff:
    """Waits between attempts: exponential, capped, and each drawn between zero and its cap.

    Full jitter spreads writers that collided once, so that they do not collide again.
    """

    attempts: int
    first_secs: float
    cap_secs: float

    def wait(self, attempt: int, draw: Callable[[], float]) -> float:
        """Seconds to wait after the given attempt (from 0)."""
        return draw() * min(self.cap_secs, self.first_secs * 2.0**attempt)


def retrying(
    act: Callable[[], T],
    backoff: Backoff,
    *,
    sleep: Callable[[float], None] = time.sleep,
    draw: Callable[[], float] = random.random,
) -> T:
    """The result of `act`, tried again while another writer holds the database."""
    for attempt in range(backoff.attempts - 1):
        try:
            return act()
        except CatalogLocked:
            sleep(backoff.wait(attempt, draw))
    return act()
