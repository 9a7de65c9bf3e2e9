"""Fixtures of the whole suite: a catalog on every engine, and tables we did not write."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import settings

from deltalakedb.uri import DeltaSqlUri
from support import conformance as conformance_tables
from support import postgres as postgres_server

ENGINES = ("sqlite", "duckdb", "postgres")

settings.register_profile("deltalakedb", deadline=None, print_blob=True)
settings.load_profile("deltalakedb")


@pytest.fixture(scope="session")
def postgres() -> Iterator[postgres_server.Postgres]:
    """A running server, one for each process of the suite."""
    with postgres_server.running() as server:
        yield server


@pytest.fixture
def new_catalog_uri(
    tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[Callable[[str], str]]:
    """Makes URIs of catalogs that do not exist yet, on the engine asked for.

    For a test that needs several of them, or one for each example of a property.
    """
    numbers = itertools.count()

    with ExitStack() as stack:

        def on_server() -> str:
            server: postgres_server.Postgres = request.getfixturevalue("postgres")
            return stack.enter_context(server.new_schema()).render()

        def on_file(engine: str) -> str:
            path = tmp_path / f"catalog{next(numbers)}.{engine}"
            return DeltaSqlUri(engine=engine, path=str(path)).render()

        yield lambda engine: on_server() if engine == "postgres" else on_file(engine)


@pytest.fixture(params=ENGINES)
def catalog_uri(request: pytest.FixtureRequest, new_catalog_uri: Callable[[str], str]) -> str:
    """The URI of a fresh catalog; the test runs once on every engine."""
    return new_catalog_uri(request.param)


@pytest.fixture(scope="session")
def conformance() -> Path:
    """The folder with the conformance tables. Tests that use it need no marker."""
    return conformance_tables.ROOT


def _needs_conformance(item: pytest.Item) -> bool:
    return item.get_closest_marker("conformance") is not None or "conformance" in getattr(
        item, "fixturenames", ()
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not conformance_tables.found():
        config.hook.pytest_deselected(items=[item for item in items if _needs_conformance(item)])
        items[:] = [item for item in items if not _needs_conformance(item)]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if not conformance_tables.found():
        terminalreporter.write_line(
            f"conformance tests deselected: no tables at {conformance_tables.ROOT}"
            f" (set {conformance_tables.VARIABLE})"
        )
