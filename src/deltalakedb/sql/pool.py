"""Connections that are kept for the next transaction."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Final, Generic, TypeVar

from deltalakedb.errors import CatalogError, CatalogUnavailable

C = TypeVar("C")

PATIENCE_SECS: Final = 30.0
"""How long to wait for a connection or for another writer, unless told otherwise."""


def leave_alone(inherited: object) -> None:
    """For a forked child: keep what is the parent's until the process ends, without a finaliser.

    Even closing such a connection would speak to the parent's server or meddle with its locks.
    """
    import ctypes

    ctypes.pythonapi.Py_IncRef(ctypes.py_object(inherited))


class Pool(Generic[C]):
    """Connections of one process; the one used last is used next. A forked child has its own."""

    def __init__(
        self,
        catalog: str,
        make: Callable[[], C],
        close: Callable[[C], None],
        *,
        usable: Callable[[C], bool] = lambda _: True,
        size: int | None = None,
        timeout_secs: float = PATIENCE_SECS,
    ) -> None:
        self.catalog = catalog
        self.closed = False
        self.timeout_secs = timeout_secs
        self._make = make
        self._close = close
        self._usable = usable
        self._size = size
        self._start()

    def _start(self) -> None:
        self.pid = os.getpid()
        self.writing = threading.Lock()
        self._idle: list[C] = []
        self._in_use = 0
        self._changed = threading.Condition()

    def _start_in_child(self) -> None:
        leave_alone(self._idle)
        self._start()

    def take(self) -> C:
        """A connection for the caller alone, until it gives it back."""
        if os.getpid() != self.pid:
            self._start_in_child()
        with self._changed:
            if self.closed:
                raise CatalogError(f"{self.catalog} is closed", catalog=self.catalog)
            if not self._changed.wait_for(self._has_room, self.timeout_secs):
                raise CatalogUnavailable(
                    f"{self.catalog}: all {self._size} connections are in use, for more than"
                    f" {self.timeout_secs:g} s",
                    catalog=self.catalog,
                )
            self._in_use += 1
        try:
            while (found := self._pop()) is not None:
                if self._usable(found):
                    return found
                self._close(found)
            return self._make()
        except BaseException:
            with self._changed:
                self._in_use -= 1
                self._changed.notify()
            raise

    def _pop(self) -> C | None:
        with self._changed:
            return self._idle.pop() if self._idle else None

    def _has_room(self) -> bool:
        return self._size is None or self._in_use < self._size

    def give(self, connection: C, *, broken: bool = False) -> None:
        """Give a connection back. If it broke, the idle ones may have as well: all are closed."""
        with self._changed:
            self._in_use -= 1
            self._idle.append(connection)
            unwanted = self._idle if broken or self.closed else []
            if unwanted:
                self._idle = []
            self._changed.notify()
        for found in unwanted:
            self._close(found)

    def close(self) -> None:
        """Close what idles, and what is in use when it comes back."""
        self.closed = True
        if os.getpid() != self.pid:
            self._start_in_child()
        with self._changed:
            idle, self._idle = self._idle, []
        for found in idle:
            self._close(found)
