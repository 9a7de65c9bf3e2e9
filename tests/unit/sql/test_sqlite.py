"""SQLite's own ways: its errors, its plans, memory."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from deltalakedb.config import Config
from deltalakedb.errors import (
    CatalogError,
    CatalogFull,
    CatalogLocked,
    CatalogReadOnly,
    CatalogUnavailable,
)
from deltalakedb.sql import Database, connect
from deltalakedb.sql import tables as t
from deltalakedb.uri import DeltaSqlUri
from support.databases import AS_NOBODY, count, file_row, fill, python, read_only_catalog


def uri_of(path: Path | str) -> DeltaSqlUri:
    return DeltaSqlUri(engine="sqlite", path=str(path))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "catalog.db"


@pytest.fixture
def database(path: Path) -> Iterator[Database]:
    database = connect(uri_of(path), Config(sqlite_busy_timeout_ms=100))
    yield database
    database.close()


def test_commits_survive_a_power_cut_unless_told_otherwise(path: Path) -> None:
    for setting, level in (("full", 2), ("normal", 1)):
        database = connect(uri_of(path), Config(sqlite_synchronous=setting))
        with database.read() as session:
            assert session.row("PRAGMA synchronous") == (level,)
            assert session.row("PRAGMA journal_mode") == ("wal",)
        database.close()


def test_a_path_may_have_any_name(tmp_path: Path) -> None:
    path = tmp_path / "a 'b' \"c\" ?d #e %20 ;-- ü.db"
    connect(uri_of(path)).close()
    assert path.exists()


def test_a_relative_path_stays_where_it_was_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    database = connect(uri_of("here.db"))
    with database.read() as held:
        monkeypatch.chdir("/")
        held.row("SELECT 1")
        assert count(database) == 0  # on a second connection
    database.close()


# --- errors ---------------------------------------------------------------------------------------


def test_a_locked_database(database: Database, path: Path) -> None:
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(CatalogLocked, match="another writer"):
        fill(database, [file_row(0)])
    other.execute("ROLLBACK")
    fill(database, [file_row(0)])
    other.close()
    assert count(database) == 1


def test_a_thread_that_never_ends_its_write(database: Database) -> None:
    with database.write(), pytest.raises(CatalogLocked, match="another thread"):
        fill(database, [file_row(0)])


def test_a_full_disk(database: Database) -> None:
    def fill_up() -> None:
        with database.write() as session:
            (pages,) = session.row("PRAGMA page_count") or (0,)
            session.row(f"PRAGMA max_page_count = {pages + 4}")
            session.insert(t.ADD_FILES, [file_row(n) for n in range(5_000)])

    with pytest.raises(CatalogFull, match="no space") as caught:
        fill_up()
    assert isinstance(caught.value.__cause__, sqlite3.OperationalError)
    assert count(database) == 0


def test_a_read_only_file() -> None:
    with read_only_catalog("sqlite", keep_open=True) as uri:
        done = python(AS_NOBODY, uri.render())
    assert done.stdout.split() == ["read", "CatalogReadOnly"], done.stderr


def test_a_query_only_connection(database: Database) -> None:
    def write() -> None:
        with database.write() as session:
            session.row("PRAGMA query_only = 1")
            session.insert(t.ADD_FILES, [file_row(0)])

    with pytest.raises(CatalogReadOnly):
        write()


def test_a_file_that_is_something_else(path: Path) -> None:
    path.write_text("this is not a database, it only looks long enough to be one" * 20)
    with pytest.raises(CatalogUnavailable, match="not a SQLite database"):
        connect(uri_of(path))


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(CatalogUnavailable, match="folder must exist"):
        connect(uri_of(tmp_path / "no" / "catalog.db"))


# --- in memory ------------------------------------------------------------------------------------


def test_memory_lives_as_long_as_its_database() -> None:
    one, other = connect(uri_of(":memory:")), connect(uri_of(":memory:"))
    fill(one, [file_row(n) for n in range(100)])
    assert (count(one), count(other)) == (100, 0)
    schema = pa.schema([("path", pa.string())])
    reader = one.stream("SELECT file_id, path FROM dl_add_files", (), schema, key="file_id")
    assert count(one) == 100  # the stream does not hold the only connection
    assert reader.read_all().num_rows == 100
    one.close()
    other.close()


def test_memory_takes_sessions_in_turn() -> None:
    database = connect(uri_of(":memory:"), Config(sqlite_busy_timeout_ms=50))
    with database.read(), pytest.raises(CatalogError, match="in use"):
        count(database)
    database.close()


# --- plans ----------------------------------------------------------------------------------------

_LIVE_BY_PATH = """
WITH k (path, dv_id) AS (VALUES (?, ?), (?, ?)) UPDATE dl_add_files SET removed_version = ?
 WHERE table_id = ? AND removed_version IS NULL AND (path, dv_id) IN (SELECT path, dv_id FROM k)"""
_ADDED = "SELECT * FROM dl_add_files WHERE table_id = ? AND version = ? ORDER BY file_id"
_REMOVED_SINCE = "SELECT * FROM dl_add_files WHERE table_id = ? AND removed_version > ?"
_REMOVES = "SELECT * FROM dl_remove_files WHERE table_id = ? AND version = ? ORDER BY ordinal"
_LATEST_TXN = """
SELECT app_version FROM dl_txn_actions WHERE table_id = ? AND app_id = ? AND version <= ?
 ORDER BY version DESC LIMIT 1"""
_TXNS = "SELECT * FROM dl_txn_actions WHERE table_id = ? AND version = ? ORDER BY app_id"
_AT_TIME = """
SELECT version FROM dl_table_versions WHERE table_id = ? AND committed_at <= ?
 ORDER BY committed_at DESC LIMIT 1"""
_AT_SEQ = """
SELECT version FROM dl_table_versions WHERE table_id = ? AND seq <= ? ORDER BY seq DESC LIMIT 1"""
_UNMIRRORED = "SELECT * FROM dl_mirror_status WHERE target = ? AND status <> 'SUCCEEDED'"
_PROBE = """
SELECT file_id FROM dl_column_stats
 WHERE table_id = ? AND column_id = ? AND span = ? AND lo >= ? AND lo <= ?"""


@pytest.mark.parametrize(
    ("sql", "plan"),
    [
        (_LIVE_BY_PATH, "dl_add_files_live (table_id=? AND path=? AND dv_id=?)"),
        (_ADDED, "dl_add_files_version (table_id=? AND version=?)"),
        (_REMOVED_SINCE, "dl_add_files_removed (table_id=? AND removed_version>?)"),
        (_REMOVES, "(table_id=? AND version=?)"),
        (_LATEST_TXN, "(table_id=? AND app_id=? AND version<?)"),
        (_TXNS, "dl_txn_actions_version (table_id=? AND version=?)"),
        (_AT_TIME, "dl_table_versions_time (table_id=? AND committed_at<?)"),
        (_AT_SEQ, "dl_table_versions_seq (table_id=? AND seq<?)"),
        (_UNMIRRORED, "dl_mirror_status_open (target=?)"),
        (_PROBE, "PRIMARY KEY (table_id=? AND column_id=? AND span=? AND lo>? AND lo<?)"),
    ],
)
def test_look_ups_are_seeks(database: Database, sql: str, plan: str) -> None:
    with database.read() as session:
        steps = session.rows(f"EXPLAIN QUERY PLAN {sql}", [None] * sql.count("?"))
    found = [step[3] for step in steps]
    assert any(plan in step for step in found), found
    assert not any("TEMP B-TREE" in step for step in found), found
