"""One behaviour, every engine: a catalog to test against, and the declared gaps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from pathlib import Path

import pytest

import deltalakedb as dl
from deltalakedb.uri import DeltaSqlUri
from support.catalogs import Clock, nothing_changes, wipe
from support.gaps import GAPS


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "needs(capability): fails on engines that support.gaps says lack it"
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        given = getattr(item, "callspec", None) and item.callspec.params
        engine = given and (given.get("shared_catalog", given.get("catalog_uri")))
        for marker in item.iter_markers("needs"):
            (capability,) = marker.args
            if error := GAPS[engine].get(capability):
                reason = f"{engine} lacks: {capability}"
                item.add_marker(pytest.mark.xfail(reason=reason, raises=error, strict=True))


def _config(warehouse: Path) -> dl.Config:
    return dl.Config(
        warehouse=str(warehouse),
        committer="tester",
        sqlite_synchronous="normal",
        retry_backoff_ms=1,
    )


@pytest.fixture(scope="session", params=GAPS)
def shared_catalog(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dl.Catalog]:
    """An open catalog, one for all tests on an engine."""
    folder, engine = tmp_path_factory.mktemp(request.param), request.param
    with ExitStack() as stack:
        if engine == "postgres":
            uri = stack.enter_context(request.getfixturevalue("postgres").new_schema())
        else:
            uri = DeltaSqlUri(engine=engine, path=str(folder / "catalog.db"))
        config = _config(folder / "warehouse")
        yield stack.enter_context(dl.Catalog(uri, config=config, clock=Clock()))


@pytest.fixture
def catalog(shared_catalog: dl.Catalog) -> dl.Catalog:
    """A catalog without a table, whose clock stands still; the test runs once on every engine.

    The database is opened once and wiped for each test. A test that closes or breaks its catalog
    makes one of its own at `catalog_uri`.
    """
    wipe(shared_catalog)
    return shared_catalog


@pytest.fixture
def clock(catalog: dl.Catalog) -> Clock:
    """The catalog's clock."""
    assert isinstance(catalog.clock, Clock)
    return catalog.clock


@pytest.fixture
def warehouse(catalog: dl.Catalog) -> Path:
    """The folder that tables without a location go to."""
    return Path(str(catalog.config.warehouse))


@pytest.fixture
def config(tmp_path: Path) -> dl.Config:
    """For a catalog of the test's own."""
    return _config(tmp_path / "warehouse")


@pytest.fixture
def unchanged(catalog: dl.Catalog, warehouse: Path) -> Callable[[], AbstractContextManager[None]]:
    """A block after which every row and every file is as before."""
    return partial(nothing_changes, catalog, warehouse)
