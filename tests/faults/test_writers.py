"""Many processes write to one table: every commit lands, once, in a version of its own."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from deltalakedb.errors import CatalogLocked
from support import jobs, processes
from support.processes import CONTEXT, Running

WRITERS, APPENDS = 8, 200


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["postgres", "sqlite"])
def test_nothing_is_lost_and_nothing_comes_twice(engine, new_catalog_uri):
    uri = new_catalog_uri(engine)
    with jobs.open_catalog(uri, "file:///nowhere") as catalog:
        catalog.create_table("t", jobs.SCHEMA, partition_by="p")
        start = CONTEXT.Barrier(WRITERS)
        made = processes.together(
            jobs.append_many, *((uri, "t", writer, APPENDS, start) for writer in range(WRITERS))
        )
        total = WRITERS * APPENDS
        for versions in made:
            assert versions == sorted(versions)
        assert sorted(v for versions in made for v in versions) == list(range(1, total + 1))

        table = catalog.table("t")
        assert table.version() == total
        expected = {f"w{w}-{n}" for w in range(WRITERS) for n in range(APPENDS)}
        assert sorted(table.files()) == sorted(expected)
        assert (table.snapshot.num_files, table.count()) == (total, total)
        history = table.history()
        assert [record.version for record in history] == list(range(total, -1, -1))
        times = [record.timestamp for record in history]
        assert times == sorted(set(times), reverse=True)
        assert len({record.transaction_id for record in history}) == total + 1

        # The file that a version added is the one its writer was told of.
        reader = catalog.reader("t")
        for writer, versions in enumerate(made):
            for number in (0, APPENDS // 2, APPENDS - 1):
                assert reader.actions(versions[number])[1].path == f"w{writer}-{number}"


@pytest.mark.parametrize("engine", ["sqlite", "duckdb", "postgres"])
def test_threads_of_one_process(engine, new_catalog_uri):
    """On one catalog: each thread appends to a table of its own and to one that all share."""
    threads, appends = 4, 15
    with jobs.open_catalog(new_catalog_uri(engine), "file:///nowhere") as catalog:
        for name in ("shared", *map(str, range(threads))):
            catalog.create_table(name, jobs.SCHEMA, partition_by="p")

        def work(thread):
            for number in range(appends):
                names = ("shared", str(thread))
                with catalog.begin() as tx:
                    for name in names if number % 2 else reversed(names):
                        tx.stage_table(name, [jobs.file(f"{thread}-{number}", number)])
                seen = catalog.table(str(thread))
                assert seen.version() == number + 1
                assert len(seen.files("id >= 0")) == number + 1

        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(work, range(threads)))
        assert catalog.table("shared").version() == threads * appends
        assert len(set(catalog.table("shared").files())) == threads * appends
        ids = {c.transaction_id for c in catalog.transactions()}
        assert len(ids) == threads * (appends + 1) + 1


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_one_id_from_many_processes_is_one_commit(engine, new_catalog_uri):
    uri, many = new_catalog_uri(engine), 6
    processes.run(jobs.prepare, uri)
    results = processes.together(jobs.change_everything, *[(uri, "the one")] * many)
    assert [r == results[0] for r in results] == [True] * many
    assert sorted(r.repeated for r in results) == [False] + [True] * (many - 1)
    with jobs.open_catalog(uri) as catalog:
        assert catalog.registry.heads() == {"appears": 0, "changes": 2, "grows": 2}
        assert catalog.table("grows").snapshot.num_files == 1 + jobs.BULK


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_one_of_many_creates_a_table(engine, new_catalog_uri):
    uri, many = new_catalog_uri(engine), 6
    processes.run(jobs.open_only, uri)
    created = processes.together(jobs.create_table, *[(uri, "t", n) for n in range(many)])
    assert sorted(created) == ["created"] + ["exists"] * (many - 1)
    with jobs.open_catalog(uri) as catalog:
        assert catalog.registry.heads() == {"t": 0}


def test_duckdb_tells_a_second_process_what_to_do(new_catalog_uri):
    uri = new_catalog_uri("duckdb")
    inside, release = CONTEXT.Event(), CONTEXT.Event()
    with jobs.open_catalog(uri, "file:///nowhere") as catalog:
        catalog.create_table("t", jobs.SCHEMA, partition_by="p")
        for job in ((jobs.open_only, uri), (jobs.hold, uri, ["t"], inside, release)):
            with pytest.raises(CatalogLocked, match=r"one process.*Postgres or SQLite"):
                processes.run(*job)
    release.set()
    assert processes.run(jobs.hold, uri, ["t"], inside, release).versions == {"t": 1}


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_many_processes_make_the_schema_at_once(engine, new_catalog_uri):
    uri = new_catalog_uri(engine)
    assert processes.together(jobs.open_only, *[(uri,)] * 6) == [[]] * 6
    assert Running(jobs.open_only, uri).result() == []
