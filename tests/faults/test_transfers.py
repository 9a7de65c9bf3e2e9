"""Money moves between two tables, and no reader ever sees it on the way."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from support import jobs
from support.processes import CONTEXT, Running

WRITERS, TRANSFERS, TOTAL = 4, 15, 1_000


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["postgres", "sqlite"])
def test_the_sum_is_the_same_in_every_snapshot(engine, new_catalog_uri, tmp_path):
    check(new_catalog_uri(engine), tmp_path, CONTEXT, Running)


@pytest.mark.slow
def test_the_sum_is_the_same_for_every_thread(new_catalog_uri, tmp_path):
    """DuckDB has one process, whose threads are writers and readers like others' processes."""
    with ThreadPoolExecutor() as pool:
        check(new_catalog_uri("duckdb"), tmp_path, threading, pool.submit)


def check(uri, tmp_path, kind, run):
    with jobs.open_catalog(uri, str(tmp_path / "tables")) as catalog:
        with catalog.begin() as tx:
            tx.write("left", jobs.accounts(TOTAL))
            tx.write("right", jobs.accounts(0))
        stop, start = kind.Event(), kind.Barrier(WRITERS)
        reader = run(jobs.watch_sums, uri, stop)
        writers = [run(jobs.transfer_many, uri, TRANSFERS, n, start) for n in range(WRITERS)]
        conflicts = [writer.result() for writer in writers]
        stop.set()
        seen = reader.result()

        assert sum(conflicts) > 0, "the writers never met"
        for way, sums in seen.items():
            assert {total for _, _, total in sums} == {TOTAL}, way
            assert all(left == right for left, right, _ in sums), "both move in one transaction"
            assert len(sums) > 1, f"the reader saw one moment only by {way}"

        done = WRITERS * TRANSFERS
        left, right = catalog.table("left"), catalog.table("right")
        assert (left.version(), right.version()) == (done, done)
        for version in range(done + 1):
            left.load_as_version(version)
            right.load_as_version(version)
            assert jobs.amount(left) + jobs.amount(right) == TOTAL
        written = {str(p.relative_to(tmp_path / "tables")) for p in tmp_path.rglob("*.parquet")}
        assert len(written) == 2 * (done + 1), "files of transactions that failed are still there"
