"""A log on every engine, shared by all examples of a module: each example makes its own tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack

import pytest

from deltalakedb.uri import DeltaSqlUri
from support.logs import Log
from support.postgres import Postgres


@pytest.fixture(scope="module")
def logs(
    tmp_path_factory: pytest.TempPathFactory, postgres: Postgres
) -> Iterator[Mapping[str, Log]]:
    """By the engine's name. All have the same clock."""
    folder = tmp_path_factory.mktemp("logs")
    with ExitStack() as stack:
        uris = {
            engine: DeltaSqlUri(engine=engine, path=str(folder / f"c.{engine}"))
            for engine in ("sqlite", "duckdb")
        }
        uris["postgres"] = stack.enter_context(postgres.new_schema())
        made: dict[str, Log] = {}
        for engine, uri in uris.items():
            clock = made["sqlite"].clock if made else None
            made[engine] = stack.enter_context(Log(uri.render(), clock))
        yield made
