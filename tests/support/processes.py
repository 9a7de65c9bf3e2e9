"""Jobs in processes of their own, which may die.

Processes are forked from a server that has imported what is heavy and holds no connection, so that
one costs little. A job is a function of `support.jobs`.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from deltalakedb.errors import TxnLogError
from deltalakedb.sql import faults

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(
    [
        "deltalakedb.table.open",
        "deltalakedb.table.read",
        "deltalakedb.table.write",
        "deltalakedb.sql.sqlite",
        "duckdb",
        "deltalakedb.sql.duckdb",
        "psycopg",
        "deltalakedb.sql.postgres",
        "sqlglot",
    ]
)
_PATIENCE_SECS = 120


class Killed(Exception):
    """The process ended without an answer."""


class Running:
    """A job under way."""

    def __init__(self, job: Callable[..., Any], *args: Any, fault: str | None = None) -> None:
        self._answer, theirs = CONTEXT.Pipe(duplex=False)
        self._process = CONTEXT.Process(target=_run, args=(theirs, fault, job, args), daemon=True)
        self._process.start()
        theirs.close()

    def result(self) -> Any:
        """What the job returned, or raised.

        Raises:
            Killed: it could do neither.
        """
        if not self._answer.poll(_PATIENCE_SECS):
            self._process.kill()
            raise AssertionError(f"no answer in {_PATIENCE_SECS} s")
        try:
            kind, value = self._answer.recv()
        except EOFError:
            self._process.join()
            raise Killed(f"exit code {self._process.exitcode}") from None
        self._process.join()
        if kind == "error":
            raise value
        return value


def _run(answer: Connection, fault: str | None, job: Callable[..., Any], args: Any) -> None:
    with faults.armed(*([fault] if fault else [])):
        try:
            made = "value", job(*args)
        except TxnLogError as error:
            made = "error", error
        except BaseException as error:
            made = "error", AssertionError(f"{type(error).__name__}: {error}")
            answer.send(made)
            raise
    answer.send(made)


def run(job: Callable[..., Any], *args: Any, fault: str | None = None) -> Any:
    """The result of a job in a process of its own."""
    return Running(job, *args, fault=fault).result()


def together(job: Callable[..., Any], *several: tuple[Any, ...]) -> list[Any]:
    """The results of a job with several arguments, all at the same time."""
    started = [Running(job, *args) for args in several]
    return [each.result() for each in started]
