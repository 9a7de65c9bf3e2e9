"""Postgres's own ways: connections that die, commits in parallel, its errors."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import psycopg
import pytest

from deltalakedb.config import Config
from deltalakedb.errors import (
    CatalogError,
    CatalogFull,
    CatalogLocked,
    CatalogReadOnly,
    CatalogUnavailable,
    ConnectionLost,
    InvalidArgument,
    MigrationError,
)
from deltalakedb.sql import Database, connect, faults
from deltalakedb.sql import tables as t
from deltalakedb.sql.postgres import translate
from deltalakedb.uri import DeltaSqlUri, Options
from support import postgres as servers
from support.databases import count, file_row, fill, wait_for


@pytest.fixture
def uri(postgres: servers.Postgres) -> Iterator[DeltaSqlUri]:
    with postgres.new_schema() as uri:
        yield uri


@pytest.fixture
def database(uri: DeltaSqlUri) -> Iterator[Database]:
    database = connect(uri)
    yield database
    database.close()


def with_options(uri: DeltaSqlUri, **options: Any) -> DeltaSqlUri:
    given = {**uri.options.given(), **options}
    return msgspec.structs.replace(uri, options=Options(**given))


def test_a_schema_may_have_any_name(postgres: servers.Postgres) -> None:
    name = "a \"b\" 'c' \\d %s ;-- ü"
    quoted = '"' + name.replace('"', '""') + '"'
    try:
        database = connect(postgres.uri(name))
        with database.read() as session:
            assert session.row("SELECT current_schema()") == (name,)
        assert count(database) == 0
        database.close()
    finally:
        postgres.execute(f"DROP SCHEMA IF EXISTS {quoted} CASCADE")


def test_no_schema_is_made_where_that_is_an_error(postgres: servers.Postgres) -> None:
    with pytest.raises(MigrationError):
        connect(postgres.uri("never_made"), Config(schema="error"))
    with psycopg.connect(postgres.url) as connection:
        sql = "SELECT count(*) FROM pg_namespace WHERE nspname = 'never_made'"
        assert connection.execute(sql).fetchone() == (0,)


# --- parallel commits -----------------------------------------------------------------------------


def test_commits_to_different_tables_do_not_wait(database: Database) -> None:
    with database.write() as session:
        session.insert(t.TABLE_HEADS, [(1, 0, 0), (2, 0, 0)])
    both = threading.Barrier(2, timeout=20)

    def commit(table_id: int) -> int:
        with database.write() as session:
            sql = "SELECT version FROM dl_table_heads WHERE table_id = ? FOR UPDATE"
            session.rows(sql, (table_id,))
            seq = database.next_seq(session)
            session.run("UPDATE dl_table_heads SET version = 1 WHERE table_id = ?", (table_id,))
            both.wait()  # each holds its locks while the other gets here
            return seq

    with ThreadPoolExecutor(2) as threads:
        places = set(threads.map(commit, (1, 2)))
    assert len(places) == 2


def test_settling_waits_for_places_that_are_not_decided(database: Database) -> None:
    with ThreadPoolExecutor(1) as other:
        with database.write() as session:
            database.next_seq(session)
            settled = other.submit(database.settle)
            with pytest.raises(TimeoutError):
                settled.result(timeout=0.2)
        settled.result(timeout=20)


# --- connections ----------------------------------------------------------------------------------


def backend(database: Database) -> int:
    with database.read() as session:
        (pid,) = session.row("SELECT pg_backend_pid()") or (0,)
    return pid


def test_a_connection_that_dies_while_idle_is_replaced(
    database: Database, postgres: servers.Postgres
) -> None:
    pid = backend(database)
    assert backend(database) == pid
    postgres.execute(f"SELECT pg_terminate_backend({pid}, 5000)")
    assert backend(database) != pid


def test_a_connection_that_dies_under_a_statement(
    database: Database, postgres: servers.Postgres
) -> None:
    def die() -> None:
        with database.write() as session:
            session.insert(t.TABLE_HEADS, [(1, 0, 0)])
            (pid,) = session.row("SELECT pg_backend_pid()") or (0,)
            postgres.execute(f"SELECT pg_terminate_backend({pid}, 5000)")
            session.row("SELECT 1")

    with pytest.raises(ConnectionLost):
        die()
    assert count(database, "dl_table_heads") == 0


@pytest.mark.parametrize(("point", "there"), [("before_commit", 0), ("inside_commit", 1)])
def test_the_socket_breaks_at_commit(database: Database, point: str, there: int) -> None:
    with faults.armed(f"{point}:lose_connection"), pytest.raises(ConnectionLost):
        fill(database, [file_row(0)])
    wait_for(lambda: count(database) == there)  # the server may still be at its COMMIT
    assert count(database) == there


def test_a_failure_that_was_ignored_does_not_pass_for_a_commit(database: Database) -> None:
    def write() -> None:
        with database.write() as session:
            session.insert(t.TABLE_HEADS, [(1, 0, 0)])
            with pytest.raises(CatalogError):
                session.row("SELECT nothing")

    with pytest.raises(CatalogError):
        write()
    assert count(database, "dl_table_heads") == 0


def test_the_pool_has_the_size_it_was_given(uri: DeltaSqlUri) -> None:
    database = connect(with_options(uri, pool_size=1, pool_timeout=1))
    with database.read(), pytest.raises(CatalogUnavailable, match="all 1 connections"):
        count(database)
    assert count(database) == 0
    database.close()


# --- errors ---------------------------------------------------------------------------------------


def test_a_server_that_is_down(tmp_path: Path) -> None:
    nowhere = DeltaSqlUri(
        engine="postgres",
        host=str(tmp_path),
        user="somebody",
        password="hunter2",
        database="d",
        schema="s",
    )
    with pytest.raises(CatalogUnavailable, match="postgres") as caught:
        connect(nowhere)
    assert "hunter2" not in f"{caught.value}{caught.value.catalog}{caught.value.__cause__}"


def test_a_user_or_a_database_that_is_not_there(uri: DeltaSqlUri) -> None:
    for change in ({"user": "nobody_at_all"}, {"database": "no_such_database"}):
        with pytest.raises(CatalogUnavailable, match=r"does not exist|authentication failed"):
            connect(msgspec.structs.replace(uri, **change))


def test_a_wrong_password_is_refused_and_not_repeated() -> None:
    with servers.private() as server:
        with psycopg.connect(server.url, autocommit=True) as connection:
            connection.execute("CREATE ROLE guarded LOGIN PASSWORD 'right'")
            (rules,) = connection.execute("SHOW hba_file").fetchone()
            text = Path(rules).read_text()
            Path(rules).write_text(f"local all guarded scram-sha-256\n{text}")
            connection.execute("SELECT pg_reload_conf()")
        wrong = msgspec.structs.replace(server.uri("s"), user="guarded", password="hunter2")
        with pytest.raises(CatalogUnavailable, match="authentication failed") as caught:
            connect(wrong)
        assert "hunter2" not in f"{caught.value}{caught.value.facts}{caught.value.__cause__}"


def test_a_statement_that_takes_too_long(uri: DeltaSqlUri) -> None:
    database = connect(with_options(uri, statement_timeout=100))
    with pytest.raises(CatalogUnavailable, match="statement_timeout"), database.read() as session:
        session.row("SELECT pg_sleep(5)")
    database.close()


def test_rows_that_another_transaction_holds(database: Database) -> None:
    with database.write() as session:
        session.insert(t.TABLE_HEADS, [(1, 0, 0)])
    lock = "SELECT version FROM dl_table_heads WHERE table_id = 1 FOR UPDATE"

    def wait() -> None:
        with database.write() as session:
            session.send("SET LOCAL lock_timeout = '50ms'")
            session.rows(lock)

    with database.write() as session:
        session.rows(lock)
        with pytest.raises(CatalogLocked):
            wait()


def test_a_deadlock_is_a_lock_to_try_again(database: Database) -> None:
    with database.write() as session:
        session.insert(t.TABLE_HEADS, [(1, 0, 0), (2, 0, 0)])
    both = threading.Barrier(2, timeout=20)

    def lock(first: int, second: int) -> str:
        sql = "SELECT version FROM dl_table_heads WHERE table_id = ? FOR UPDATE"
        try:
            with database.write() as session:
                session.rows(sql, (first,))
                both.wait()
                session.rows(sql, (second,))
        except CatalogLocked:
            return "locked"
        return "fine"

    with ThreadPoolExecutor(2) as threads:
        assert sorted(threads.map(lock, (1, 2), (2, 1))) == ["fine", "locked"]


def test_a_read_only_transaction(database: Database) -> None:
    def write() -> None:
        with database.write() as session:
            session.send("SET TRANSACTION READ ONLY")
            session.insert(t.TABLE_HEADS, [(1, 0, 0)])

    with pytest.raises(CatalogReadOnly):
        write()


def test_text_with_a_nul(database: Database) -> None:
    with pytest.raises(InvalidArgument, match="NUL"):
        fill(database, [file_row(0, path="a\0b")])


def test_a_full_server() -> None:
    error = translate(psycopg.errors.DiskFull("could not extend file"), "catalog")
    assert isinstance(error, CatalogFull)
