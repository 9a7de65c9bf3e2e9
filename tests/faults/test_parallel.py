"""Postgres: transactions wait only for those that touch the same tables.

One process stands still in the midst of its commit; what others can do meanwhile is the evidence,
no clock is needed.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from deltalakedb.errors import TableNotFound
from support import jobs, processes
from support.processes import CONTEXT, Running


@pytest.fixture
def uri(new_catalog_uri):
    return new_catalog_uri("postgres")


@pytest.fixture
def catalog(uri):
    with jobs.open_catalog(uri, "file:///nowhere") as catalog:
        for name in ("a", "b", "c"):
            catalog.create_table(name, jobs.SCHEMA, partition_by="p")
        yield catalog


@contextmanager
def held(uri, *tables):
    """Inside the block a commit to these tables has its locks and its place, and waits."""
    inside, release = CONTEXT.Event(), CONTEXT.Event()
    running = Running(jobs.hold, uri, list(tables), inside, release)
    assert inside.wait(30)
    try:
        yield running
    finally:
        release.set()


def append(catalog, *tables):
    with catalog.begin() as tx:
        for table in tables:
            tx.stage_table(table, [jobs.file(f"f{time.monotonic_ns()}", 1)])
    return tx.result


def wait_until_blocked(catalog):
    """Until a session of this catalog waits for a lock."""
    sql = (
        "SELECT count(*) FROM pg_locks l JOIN pg_stat_activity s ON s.pid = l.pid"
        " WHERE NOT l.granted AND s.datname = current_database()"
    )
    for _ in range(1_000):
        with catalog.database.read() as session:
            if session.rows(sql)[0][0]:
                return
        time.sleep(0.01)
    raise AssertionError("nobody waits")


def test_other_tables_are_not_held_up(catalog, uri):
    with held(uri, "a", "b") as first:
        assert append(catalog, "c").versions == {"c": 1}
        assert processes.run(jobs.change_one, uri, "c").versions == {"c": 2}
        assert catalog.table("a").version() == 0
    assert first.result().versions == {"a": 1, "b": 1}


def test_two_commits_are_in_flight_at_once(catalog, uri):
    with held(uri, "a") as first:
        with held(uri, "b", "c") as second:
            assert catalog.registry.heads() == {"a": 0, "b": 0, "c": 0}
        assert second.result().versions == {"b": 1, "c": 1}
        assert catalog.registry.heads() == {"a": 0, "b": 1, "c": 1}
    assert first.result().versions == {"a": 1}


def test_the_same_table_waits_and_then_follows(catalog, uri):
    with ThreadPoolExecutor(1) as pool:
        with held(uri, "a", "b") as first:
            second = pool.submit(append, catalog, "c", "b")
            wait_until_blocked(catalog)
            assert catalog.registry.heads() == {"a": 0, "b": 0, "c": 0}
        assert first.result().versions == {"a": 1, "b": 1}
        assert second.result().versions == {"b": 2, "c": 1}


def test_a_dropped_table_takes_no_commit_that_waited_for_the_drop(catalog, uri):
    """The commit waits for the table's lock; by then the table is gone."""
    with ThreadPoolExecutor(1) as pool:
        with catalog.database.write() as session:
            catalog.registry._lock(session, "a")
            late = pool.submit(append, catalog, "a", "b")
            wait_until_blocked(catalog)
            session.run(
                "UPDATE dl_tables SET dropped = table_id, status = 'dropped' WHERE name = ?", ("a",)
            )
        with pytest.raises(TableNotFound, match="dropped"):
            late.result()
    assert catalog.registry.heads() == {"b": 0, "c": 0}


def test_the_past_waits_until_it_is_decided(catalog, uri):
    """A later transaction is committed before an earlier one: its moment is not yet complete."""
    with ThreadPoolExecutor(1) as pool:
        with held(uri, "a") as first:
            later = append(catalog, "c")
            asked = pool.submit(lambda: catalog.at(transaction_id=later.transaction_id).versions())
            wait_until_blocked(catalog)
        first.result()
        assert asked.result() == {"a": 1, "b": 0, "c": 1}
    assert catalog.at(transaction_id=later.transaction_id).versions() == asked.result()
