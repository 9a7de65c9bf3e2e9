"""A catalog's database when things go wrong around it: faults, kills, forks, other processes."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from deltalakedb.config import Config
from deltalakedb.errors import CatalogError
from deltalakedb.sql import Database, connect, faults
from deltalakedb.sql import tables as t
from deltalakedb.sql.schema import SUPPORTED
from deltalakedb.uri import parse
from support.databases import count, file_row, fill, python, wait_for
from support.gaps import SEVERAL_PROCESSES


@pytest.fixture
def database(catalog_uri: str) -> Iterator[Database]:
    database = connect(parse(catalog_uri), Config(sqlite_synchronous="normal"))
    yield database
    database.close()


# --- faults ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("point", "there"),
    [("begin", 0), ("before_commit", 0), ("inside_commit", 1), ("after_commit", 1)],
)
@pytest.mark.parametrize("action", ["raise", "lose_connection"])
def test_a_fault_leaves_all_or_nothing(
    database: Database, point: str, there: int, action: str
) -> None:
    with faults.armed(f"{point}:{action}"):
        try:
            with database.write() as session:
                session.insert(t.TABLE_HEADS, [(1, 0, 0)])
                session.insert(t.ADD_FILES, [file_row(0)])
        except CatalogError:
            pass
        else:  # the transaction was over when its connection broke
            assert point == "after_commit"
            assert action == "lose_connection"
    wait_for(lambda: count(database) == there)  # a server may still be at its COMMIT
    assert count(database) == count(database, "dl_table_heads") == there
    fill(database, [file_row(9)])


KILLED = """
import sys
from deltalakedb.sql import connect, tables as t
from deltalakedb.uri import parse
database = connect(parse(sys.argv[1]))
for n in range(3):
    with database.write() as session:
        session.insert(t.TABLE_HEADS, [(n, 0, 0)])
        session.insert(t.COUNTERS, [(str(n), 0)])
"""


@pytest.mark.parametrize("point", ["begin", "before_commit", "inside_commit", "after_commit"])
def test_a_killed_process_leaves_all_or_nothing(catalog_uri: str, point: str) -> None:
    second = SUPPORTED + 2  # every migration is a write of its own
    done = python(KILLED, catalog_uri, DELTALAKEDB_FAULT=f"{point}:kill@{second}")
    assert done.returncode < 0, done.stderr
    database = connect(parse(catalog_uri))
    heads = count(database, "dl_table_heads")
    assert heads == count(database, "dl_counters") - 1
    assert heads in {"begin": {1}, "before_commit": {1}, "after_commit": {2}}.get(point, {1, 2})
    database.close()


# --- threads, processes, lifetime -----------------------------------------------------------------


def test_many_threads_at_once(database: Database) -> None:
    barrier = threading.Barrier(12)

    def work(n: int) -> int:
        barrier.wait()
        fill(database, [file_row(n * 100 + i) for i in range(60)])
        return count(database)

    with ThreadPoolExecutor(12) as threads:
        assert max(threads.map(work, range(12))) == 720


@pytest.mark.needs(SEVERAL_PROCESSES)
def test_processes_share_a_catalog(catalog_uri: str) -> None:
    code = """
import sys
from deltalakedb.sql import connect
from deltalakedb.uri import parse
database = connect(parse(sys.argv[1]))
print("open", flush=True)
sys.stdin.readline()
for n in range(50):
    with database.write() as session:
        database.next_value(session, "table_id")
"""
    connect(parse(catalog_uri)).close()
    command = [sys.executable, "-W", "ignore", "-c", code, catalog_uri]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes) as one:
        assert one.stdout.readline() == "open\n"
        try:
            database = connect(parse(catalog_uri))
            with subprocess.Popen(command, **pipes) as two:
                assert two.stdout.readline() == "open\n"
                one.communicate("go\n")
                two.communicate("go\n")
        finally:
            one.kill()
    assert (one.returncode, two.returncode) == (0, 0)
    with database.read() as session:
        assert session.row("SELECT value FROM dl_counters WHERE name = ?", ("table_id",)) == (100,)
    database.close()


FORK = """
import os, sys
from deltalakedb.errors import CatalogError
from deltalakedb.sql import connect, tables as t
from deltalakedb.uri import parse
database = connect(parse(sys.argv[1]))
with database.write() as session:
    session.insert(t.TABLE_HEADS, [(1, 0, 0)])
    child = os.fork()
    if not child:
        try:
            session.rows("SELECT 1")
        except CatalogError as e:
            assert "parent" in str(e), e
            raise SystemExit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    session.insert(t.TABLE_HEADS, [(2, 0, 0)])
child = os.fork()
if not child:
    try:
        with database.read() as session:
            found = session.row("SELECT count(*) FROM dl_table_heads")
        with database.write() as session:
            session.insert(t.TABLE_HEADS, [(3, 0, 0)])
        os._exit(0 if found == (2,) else 1)
    except CatalogError as e:
        os._exit(5 if not database.alive and "fork" in str(e) else 6)
left = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
with database.read() as session:
    print(left, session.rows("SELECT count(*) FROM dl_table_heads")[0][0])
"""


def test_a_forked_child_leaves_the_parents_connection_alone(
    catalog_uri: str, database: Database
) -> None:
    database.close()
    done = python(FORK, catalog_uri)
    expected = "5 2" if database.dialect.name == "duckdb" else "0 3"
    assert done.stdout.strip() == expected, done.stderr


def test_a_closed_database_says_so(database: Database) -> None:
    assert database.alive
    database.close()
    database.close()
    assert not database.alive
    with pytest.raises(CatalogError, match="closed"), database.read():
        pass


def test_a_forgotten_database_closes_itself(catalog_uri: str) -> None:
    connect(parse(catalog_uri))
    gc.collect()
    again = connect(parse(catalog_uri))
    assert count(again) == 0
    again.close()
