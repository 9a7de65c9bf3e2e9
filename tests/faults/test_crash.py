"""kill -9 at every step of a commit: the next open shows all of it or nothing.

The commit is one transaction over three tables: one gets more files than fit in a statement, in
one a file is replaced, one is created.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import deltalakedb as dl
from deltalakedb.sql import faults
from support import jobs, processes
from support.catalogs import database_rows
from support.processes import Killed

ENGINES = ("sqlite", "duckdb", "postgres")
NOTHING = [
    "begin:kill",
    "locked:kill",
    "version_written:kill",
    "version_written:kill@2",
    "version_written:kill@3",
    "before_commit:kill",
]
ANYTHING = ["inside_commit:kill"] * 4
EVERYTHING = ["after_commit:kill"]

BEFORE = {"grows": (1, 1), "changes": (1, 1)}
AFTER = {"grows": (2, 1 + jobs.BULK), "changes": (2, 1), "appears": (0, 1)}
"""Version and number of files, by table."""


def state(catalog):
    """What every table is, told in several ways that must agree."""
    found = {}
    for name in catalog.list_tables():
        table = catalog.table(name)
        files = table.files()
        assert len(set(files)) == len(files) == table.snapshot.num_files
        assert table.count() == len(files)
        assert [c.version for c in table.history()] == list(range(table.version(), -1, -1))
        found[name] = (table.version(), len(files))
    return found


def check_rows(catalog):
    """No row belongs to a version, a table or a transaction that does not exist."""
    rows = database_rows(catalog)
    heads = {row[0]: row[1] for row in rows["dl_table_heads"]}
    versions = {(t, v) for t, head in heads.items() for v in range(head + 1)}
    assert heads.keys() == {row[0] for row in rows["dl_tables"]}
    assert {row[:2] for row in rows["dl_table_versions"]} == versions
    assert {row[:2] for row in rows["dl_mirror_status"]} == versions
    orders = {row[0] for row in rows["dl_transactions"]}
    assert {row[2] for row in rows["dl_table_versions"]} == orders
    files = {(row[0], row[1]) for row in rows["dl_add_files"]}
    assert {(row[0], row[2]) for row in rows["dl_add_files"]} <= versions
    assert {(row[0], row[5]) for row in rows["dl_column_stats"]} == files
    assert {(row[0], row[3]) for row in rows["dl_remove_files"]} == {
        (row[0], row[1]) for row in rows["dl_add_files"] if row[3] is not None
    }


@pytest.fixture(params=ENGINES)
def uri(request, new_catalog_uri):
    uri = new_catalog_uri(request.param)
    processes.run(jobs.prepare, uri)
    return uri


def check_survivors(uri, allowed):
    """After the crash, and after the same transaction was committed again, twice."""
    with jobs.open_catalog(uri) as catalog:
        found = state(catalog)
        assert found in allowed
        check_rows(catalog)
        transactions = catalog.transactions()
    results = [processes.run(jobs.change_everything, uri, "the one") for _ in range(2)]
    assert results[0] == results[1]
    assert results[0].versions == {name: version for name, (version, _) in AFTER.items()}
    assert [r.repeated for r in results] == [found == AFTER, True]
    with jobs.open_catalog(uri) as catalog:
        assert state(catalog) == AFTER
        assert catalog.table("changes").files() == ["second"]
        check_rows(catalog)
        if found == AFTER:
            assert catalog.transactions() == transactions


@pytest.mark.parametrize(
    ("fault", "allowed"),
    [
        *((fault, [BEFORE]) for fault in NOTHING),
        *((fault, [BEFORE, AFTER]) for fault in ANYTHING),
        *((fault, [AFTER]) for fault in EVERYTHING),
    ],
)
def test_all_or_nothing(uri, fault, allowed):
    with pytest.raises(Killed, match=r"exit code -(9|14)"):
        processes.run(jobs.change_everything, uri, "the one", fault=fault)
    check_survivors(uri, allowed)


def test_others_carry_on_at_once(uri):
    """Locks die with their owner: the next writer needs no repair and no waiting time."""
    with pytest.raises(Killed):
        processes.run(jobs.change_everything, uri, "the one", fault="before_commit:kill")
    assert processes.run(jobs.change_one, uri, "grows").versions == {"grows": 2}
    result = processes.run(jobs.change_everything, uri, "the one")
    assert result.versions == {"grows": 3, "changes": 2, "appears": 0}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "fault", [f"{point}:kill@{n}" for n in (1, 2, 3) for point in ("begin", "before_commit")]
)
def test_a_schema_is_made_in_steps_that_are_whole(engine, fault, new_catalog_uri):
    uri = new_catalog_uri(engine)
    with pytest.raises(Killed):
        processes.run(jobs.open_only, uri, fault=fault)
    processes.run(jobs.prepare, uri)
    with jobs.open_catalog(uri) as catalog:
        assert state(catalog) == BEFORE


@pytest.mark.parametrize("engine", ENGINES)
def test_files_of_a_killed_process_stay_and_are_not_part_of_the_table(
    engine, new_catalog_uri, tmp_path
):
    uri, tables = new_catalog_uri(engine), str(tmp_path / "tables")
    with pytest.raises(Killed):
        processes.run(jobs.write_rows, uri, tables, "t", "x", fault="version_written:kill")
    assert len(list(tmp_path.rglob("*.parquet"))) == 1
    assert processes.run(jobs.write_rows, uri, tables, "t", "x").versions == {"t": 0}
    assert processes.run(jobs.write_rows, uri, tables, "t", "x").versions == {"t": 0}
    with jobs.open_catalog(uri) as catalog:
        assert catalog.table("t").to_arrow().num_rows == 1
    assert len(list(tmp_path.rglob("*.parquet"))) == 2, "one orphan, one file of the table"


def test_the_variable_arms_any_process(tmp_path):
    """What the other tests do from within works from outside too."""
    uri = f"deltasql://sqlite/{tmp_path}/c.db"
    code = (
        "import deltalakedb as dl, pyarrow as pa; "
        f"dl.write_deltalake({uri!r} + '?table=t', pa.table({{'x': [1]}}))"
    )
    env = os.environ | {faults.VARIABLE: "version_written:kill"}
    killed = subprocess.run([sys.executable, "-c", code], env=env, check=False)
    assert killed.returncode == -9
    with dl.Catalog(uri) as catalog:
        assert catalog.list_tables() == []
    assert list(Path(tmp_path).rglob("*.parquet"))
