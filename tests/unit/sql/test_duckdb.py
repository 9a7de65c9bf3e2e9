"""DuckDB's own ways: one process, its errors, memory."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from deltalakedb.errors import CatalogLocked, CatalogUnavailable
from deltalakedb.sql import Database, connect
from deltalakedb.uri import DeltaSqlUri
from support.databases import AS_NOBODY, count, file_row, fill, python, read_only_catalog


def uri_of(path: Path | str) -> DeltaSqlUri:
    return DeltaSqlUri(engine="duckdb", path=str(path))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "catalog.duckdb"


@pytest.fixture
def database(path: Path) -> Iterator[Database]:
    database = connect(uri_of(path))
    yield database
    database.close()


def test_a_second_process_is_told_what_to_do(path: Path) -> None:
    code = (
        "import sys; from deltalakedb.sql import connect; from deltalakedb.uri import parse;"
        " database = connect(parse(sys.argv[1])); print(); sys.stdin.readline()"
    )
    command = [sys.executable, "-c", code, uri_of(path).render()]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([*command], **pipes, bufsize=0) as other:
        other.stdin.write("")
        while not path.exists():
            assert other.poll() is None
        with pytest.raises(CatalogLocked, match=r"one process.*Postgres or SQLite"):
            connect(uri_of(path))
        other.communicate("\n")
    connect(uri_of(path)).close()


def test_databases_of_one_process_share_the_file(database: Database, path: Path) -> None:
    other = connect(uri_of(path))
    work = [(db, n * 1000 + i) for n, db in enumerate((database, other)) for i in range(40)]
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda job: fill(job[0], [file_row(job[1])]), work))
    assert count(database) == count(other) == 80
    other.close()
    assert count(database) == 80


def test_a_read_only_file() -> None:
    with read_only_catalog("duckdb", keep_open=False) as uri:
        done = python(AS_NOBODY, uri.render())
    assert done.stdout.split() == ["read", "CatalogReadOnly"], done.stderr


def test_a_full_disk(path: Path) -> None:
    connect(uri_of(path)).close()
    code = """
import resource, sys
from deltalakedb.errors import CatalogFull
from deltalakedb.sql import connect
from deltalakedb.uri import parse
from support.databases import count, file_row, fill
database = connect(parse(sys.argv[1]))
resource.setrlimit(resource.RLIMIT_FSIZE, (2**20, 2**20))
try:
    fill(database, [file_row(n, stats=str(n) * 500) for n in range(20_000)])
except CatalogFull as e:
    print("no space" in str(e))
"""
    done = python(code, uri_of(path).render(), PYTHONPATH=str(Path(__file__).parents[2]))
    assert done.stdout.split() == ["True"], done.stderr
    database = connect(uri_of(path))
    assert count(database) == 0
    database.close()


def test_a_file_that_is_something_else(path: Path) -> None:
    path.write_text("this is not a database, it only looks long enough to be one" * 100)
    with pytest.raises(CatalogUnavailable, match="not a DuckDB database"):
        connect(uri_of(path))


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(CatalogUnavailable):
        connect(uri_of(tmp_path / "no" / "catalog.duckdb"))


def test_memory_lives_as_long_as_its_database() -> None:
    one, other = connect(uri_of(":memory:")), connect(uri_of(":memory:"))
    fill(one, [file_row(n) for n in range(100)])
    with one.read() as session:
        assert session.row("SELECT count(*) FROM dl_add_files") == (100,)
        assert (count(one), count(other)) == (100, 0)
    one.close()
    other.close()
