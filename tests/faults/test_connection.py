"""Postgres goes away around COMMIT: the outcome is looked up, and nothing is lost or doubled."""

from __future__ import annotations

import pytest

import deltalakedb as dl
from deltalakedb.errors import (
    CatalogUnavailable,
    CommitOutcomeUnknown,
    ConcurrentDeleteDelete,
    TransactionClosed,
)
from deltalakedb.log.sql_writer import SqlTxnLogWriter
from deltalakedb.sql import faults
from deltalakedb.times import system_clock
from support import jobs
from support.processes import CONTEXT, Running
from support.servers import stoppable

POINTS = ("begin", "before_commit", "inside_commit", "after_commit")


def files(folder):
    return sorted(folder.rglob("*.parquet"))


@pytest.fixture
def catalog(new_catalog_uri, tmp_path):
    with jobs.open_catalog(new_catalog_uri("postgres"), str(tmp_path / "tables")) as catalog:
        with catalog.begin() as tx:
            tx.write("left", jobs.accounts(1))
            tx.write("right", jobs.accounts(2))
        yield catalog


@pytest.mark.parametrize("point", POINTS)
def test_a_cut_connection_is_one_commit(catalog, point, tmp_path):
    with faults.armed(f"{point}:lose_connection"), catalog.begin(transaction_id="x") as tx:
        tx.write("left", jobs.accounts(10), mode="overwrite")
        tx.write("right", jobs.accounts(20), mode="overwrite")
        tx.write("new", jobs.accounts(30))
    assert tx.result.versions == {"left": 1, "right": 1, "new": 0}
    assert not tx.result.repeated
    assert [c.transaction_id for c in catalog.transactions()].count("x") == 3
    for name, value in {"left": 10, "right": 20, "new": 30}.items():
        assert jobs.amount(catalog.table(name)) == value
    assert len(files(tmp_path)) == 5


@pytest.mark.parametrize("point", ["before_commit", "inside_commit"])
def test_a_connection_that_is_cut_again_and_again(catalog, point):
    with faults.armed(*[f"{point}:lose_connection"] * 3), catalog.begin() as tx:
        tx.write("left", jobs.accounts(10), mode="overwrite")
    assert tx.result.versions == {"left": 1}
    assert catalog.table("left").version() == 1


def test_the_server_ends_the_session_of_a_commit_under_way(catalog):
    inside, release = CONTEXT.Event(), CONTEXT.Event()
    catalog.create_table("t", jobs.SCHEMA, partition_by="p")
    running = Running(jobs.hold, catalog.uri.render(), ["t"], inside, release)
    assert inside.wait(30)
    with catalog.database.read() as session:
        ended = session.rows(
            "SELECT DISTINCT pg_terminate_backend(l.pid) FROM pg_locks l"
            " JOIN pg_class c ON c.oid = l.relation"
            " WHERE c.relname = 'dl_table_heads' AND l.mode = 'RowShareLock'"
            " AND c.relnamespace = current_schema()::regnamespace"
        )
    assert ended == [(True,)]
    release.set()
    assert running.result().versions == {"t": 1}
    assert catalog.table("t").files() == ["held"]


def test_what_was_found_after_a_doubt_is_our_own(catalog, tmp_path):
    """The commit went through and the answer was lost: its files are part of the table now."""
    with faults.armed("inside_commit:lose_connection"), catalog.begin() as tx:
        tx.write("left", jobs.accounts(10), mode="overwrite")
    assert len(files(tmp_path)) == 3
    assert jobs.amount(catalog.table("left")) == 10


def test_files_of_transactions_that_end_without_a_commit_are_removed(catalog, tmp_path):
    before = files(tmp_path)

    def fail():
        with catalog.begin() as tx:
            tx.write("left", jobs.accounts(10))
            assert len(files(tmp_path)) == len(before) + 1
            raise LookupError

    with pytest.raises(LookupError):
        fail()
    assert files(tmp_path) == before

    tx = catalog.begin()
    tx.write("left", jobs.accounts(10), mode="overwrite")
    tx.write("new", jobs.accounts(10))
    with catalog.begin() as other:
        other.write("left", jobs.accounts(11), mode="overwrite")
    before = files(tmp_path)
    with pytest.raises(ConcurrentDeleteDelete):
        tx.commit()
    assert len(files(tmp_path)) == len(before) - 2
    assert catalog.list_tables() == ["left", "right"]


# --- a server that stops --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def server():
    with stoppable() as server:
        yield server


@pytest.fixture
def mortal(server, tmp_path):
    """A catalog on a server that can be stopped, and the server."""
    server.start()
    with (
        server.new_schema() as uri,
        jobs.open_catalog(uri.render(), str(tmp_path / "tables")) as catalog,
    ):
        with catalog.begin() as tx:
            tx.write("left", jobs.accounts(1))
        yield catalog, server
        server.start()


def stop_before_the_second_attempt(catalog, server):
    def sleep(secs):
        if secs:
            server.stop()

    catalog._writer = SqlTxnLogWriter(catalog.database, system_clock, sleep=sleep)


@pytest.mark.parametrize(("point", "happened"), [("before_commit", False), ("inside_commit", True)])
def test_nobody_is_left_to_ask(mortal, point, happened, tmp_path):
    catalog, server = mortal
    stop_before_the_second_attempt(catalog, server)
    tx = catalog.begin(transaction_id="x")
    tx.write("left", jobs.accounts(10), mode="overwrite")
    written = files(tmp_path)
    with (
        faults.armed(f"{point}:lose_connection"),
        pytest.raises(CommitOutcomeUnknown, match="commit the same transaction id") as raised,
    ):
        tx.commit()
    assert raised.value.transaction_id == "x"
    assert isinstance(raised.value.__cause__, CatalogUnavailable)
    assert files(tmp_path) == written, "a file was removed that may be part of the table"
    with pytest.raises(TransactionClosed, match="unknown"):
        tx.commit()
    tx.rollback()
    assert files(tmp_path) == written

    server.start()
    assert jobs.amount(catalog.table("left")) == (10 if happened else 1)
    with catalog.begin(transaction_id="x") as again:
        again.write("left", jobs.accounts(10), mode="overwrite")
    assert again.result.versions == {"left": 1}
    assert again.result.repeated is happened
    assert jobs.amount(catalog.table("left")) == 10
    assert len(files(tmp_path)) == (2 if happened else 3)


def test_a_server_that_was_down_all_the_time_leaves_no_doubt(mortal, tmp_path):
    catalog, server = mortal
    tx = catalog.begin()
    tx.write("left", jobs.accounts(10), mode="overwrite")
    server.stop()
    with pytest.raises(CatalogUnavailable):
        tx.commit()
    assert len(files(tmp_path)) == 1
    server.start()
    assert catalog.table("left").version() == 0


def test_a_restart_between_two_commits_goes_unnoticed(mortal):
    catalog, server = mortal
    server.stop()
    server.start()
    with catalog.begin() as tx:
        tx.write("left", jobs.accounts(10))
    assert tx.result.versions == {"left": 1}


def test_the_catalog_is_the_one_that_was_opened(mortal):
    """The error of an unreachable server shows where it should be, and no password."""
    catalog, server = mortal
    server.stop()
    with pytest.raises(CatalogUnavailable) as raised:
        dl.Catalog(catalog.uri.render())
    assert raised.value.catalog == str(catalog.uri)
