"""Faults at named points of a write, for tests of what survives them.

::

    DELTALAKEDB_FAULT=before_commit:kill            kill -9 this process there
    DELTALAKEDB_FAULT=inside_commit:lose_connection@3    at the third time only

Points of every write: ``begin`` (it has begun), ``before_commit`` (everything is sent),
``inside_commit`` (COMMIT is under way), ``after_commit``. Others are wherever `point` is called.
Nothing is armed unless the variable is set or a test enters `armed`.
"""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from deltalakedb.errors import CatalogError, ConfigError

VARIABLE: Final = "DELTALAKEDB_FAULT"
ACTIONS: Final = ("kill", "lose_connection", "raise")


@dataclass
class _Fault:
    point: str
    action: str
    after: int
    """Times the point is still to be passed before it strikes; it strikes once."""


_armed: list[_Fault] = []


def _parse(text: str) -> _Fault:
    point, _, rest = text.partition(":")
    action, _, count = rest.partition("@")
    if not point or action not in ACTIONS or not (count or "1").isdecimal():
        raise ConfigError(
            f"{VARIABLE} is POINT:ACTION or POINT:ACTION@COUNT, not {text!r}; actions: "
            + ", ".join(ACTIONS),
            setting=VARIABLE,
            value=text,
            allowed=ACTIONS,
        )
    return _Fault(point, action, int(count or 1) - 1)


@contextmanager
def armed(*faults: str) -> Iterator[None]:
    """Arm faults, written as in the variable, for this process and the length of the block."""
    before = list(_armed)
    _armed[:] = [*before, *map(_parse, faults)]
    try:
        yield
    finally:
        _armed[:] = before


def strikes(name: str) -> str | None:
    """The action due at this passing of a point, if there is one."""
    for fault in _armed:
        if fault.point == name:
            fault.after -= 1
            if fault.after == -1:
                return fault.action
    return None


def point(name: str, lose_connection: Callable[[], None] | None = None) -> None:
    """A place where a fault may strike."""
    if _armed and (action := strikes(name)) is not None:
        act(name, action, lose_connection)


def act(name: str, action: str, lose_connection: Callable[[], None] | None = None) -> None:
    """Do what a fault is there for."""
    if action == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif action == "lose_connection" and lose_connection is not None:
        lose_connection()
    else:
        raise CatalogError(f"a fault was injected at {name}", point=name)


@contextmanager
def inside(name: str, lose_connection: Callable[[], None]) -> Iterator[None]:
    """A call that is one step to us and many to the engine: ``kill`` strikes in the midst of it.

    A timer's default action ends the process without its help, as kill -9 does.
    """
    action = strikes(name) if _armed else None
    if action == "kill":
        signal.setitimer(signal.ITIMER_REAL, random.uniform(1e-6, 5e-4))  # noqa: S311
    yield
    if action is not None:
        act(name, action, lose_connection)


if text := os.environ.get(VARIABLE):
    _armed[:] = map(_parse, text.split(","))
