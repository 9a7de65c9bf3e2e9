"""The schema on every engine: made, upgraded with data in it, refused."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from deltalakedb.config import Config
from deltalakedb.errors import CatalogError, MigrationError
from deltalakedb.sql import Database, Row, Table, connect
from deltalakedb.sql import tables as t
from deltalakedb.sql.engines import unprepared
from deltalakedb.sql.migrations import MIGRATIONS
from deltalakedb.sql.schema import SUPPORTED, migrate, version
from deltalakedb.uri import DeltaSqlUri, parse
from support.databases import count, file_row

NOW = 1_767_225_600_000


@pytest.fixture
def uri(catalog_uri: str) -> DeltaSqlUri:
    return parse(catalog_uri)


@pytest.fixture
def raw(uri: DeltaSqlUri) -> Iterator[Database]:
    """A database without a schema."""
    database = unprepared(uri)
    yield database
    database.close()


def version_row(n: int) -> Row:
    given = {
        **{column.name: 0 for column in t.TABLE_VERSIONS.columns},
        "table_id": 1,
        "version": n,
        "seq": n + 1,
        "committed_at": NOW + n,
        "operation": "WRITE",
        "parameters": "{}",
        "commit_info": None,
        "isolation_level": "Serializable",
        "is_blind_append": True,
    }
    return tuple(given.values())


def columns_of(database: Database, table: Table) -> list[tuple[str, str]]:
    """Names and types as the engine has them."""
    sql = (
        "SELECT name, lower(type) FROM pragma_table_info(?) ORDER BY cid"
        if database.dialect.name == "sqlite"
        else "SELECT column_name, lower(data_type) FROM information_schema.columns"
        " WHERE table_name = ? AND table_schema = current_schema() ORDER BY ordinal_position"
    )
    with database.read() as session:
        found = session.rows(sql, (table.name,))
    return [(name, "text" if kind == "varchar" else kind) for name, kind in found]


def test_the_migrations_are_numbered_without_a_gap() -> None:
    assert [m.version for m in MIGRATIONS] == list(range(1, len(MIGRATIONS) + 1))
    assert len({m.name for m in MIGRATIONS}) == len(MIGRATIONS)


def test_the_schema_is_what_rows_are_inserted_by(uri: DeltaSqlUri) -> None:
    database = connect(uri)
    for table in t.ALL:
        expected = [(column.name, column.type) for column in table.columns]
        assert columns_of(database, table) == expected, table.name
    with database.read() as session:
        made = session.rows("SELECT version, name FROM dl_schema_migrations ORDER BY version")
    assert made == [(m.version, m.name) for m in MIGRATIONS]
    database.close()


def test_opening_again_changes_nothing(uri: DeltaSqlUri) -> None:
    connect(uri, clock=lambda: NOW).close()
    again = connect(uri, Config(schema="error"), clock=lambda: NOW + 1)
    with again.read() as session:
        found = session.rows("SELECT DISTINCT applied_at FROM dl_schema_migrations")
    again.close()
    assert found == [(NOW,)]


@pytest.mark.parametrize("start", range(1, SUPPORTED))
def test_every_earlier_version_is_upgraded_with_its_data(
    raw: Database, uri: DeltaSqlUri, start: int
) -> None:
    for migration in MIGRATIONS[:start]:
        migrate(raw, migration, lambda: NOW)
    metadata = (1, 0, "id", None, None, "parquet", "{}", "{}", "[]", "{}", None, None)
    rows = {
        t.TABLES: [(1, "sales", "/sales", NOW, "active", "{}", 0)],
        t.TABLE_HEADS: [(1, 2, 3)],
        t.TABLE_VERSIONS: [version_row(n) for n in range(3)],
        t.ADD_FILES: [file_row(n) for n in range(100)],
    }
    with raw.write() as session:
        for table, given in rows.items():
            session.insert(table, given)
        session.send(
            "INSERT INTO dl_metadata_updates (table_id, version, id, name, description,"
            " format_provider, format_options, schema_string, partition_columns, configuration,"
            " created_time, extra) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            metadata,
        )
    assert version(raw) == start

    upgraded = connect(uri, clock=lambda: NOW + 1)
    assert version(upgraded) == SUPPORTED
    with upgraded.read() as session:
        for table, given in rows.items():
            names = ", ".join(column.name for column in table.columns)
            assert session.rows(f"SELECT {names} FROM {table.name} ORDER BY 1, 2") == given
        assert session.rows("SELECT * FROM dl_metadata_updates") == [(*metadata, None)]
        ledger = session.rows("SELECT version, status FROM dl_mirror_status ORDER BY version")
    assert ledger == [(n, "PENDING") for n in range(3)]
    upgraded.close()


def test_a_missing_schema_is_an_error_where_it_shall_be_one(uri: DeltaSqlUri) -> None:
    with pytest.raises(MigrationError, match="create_if_missing") as caught:
        connect(uri, Config(schema="error"))
    assert (caught.value.found, caught.value.supported) == (0, SUPPORTED)
    if uri.path:
        assert not os.path.exists(uri.path)


def test_an_old_schema_is_an_error_where_it_shall_be_one(raw: Database, uri: DeltaSqlUri) -> None:
    migrate(raw, MIGRATIONS[0], lambda: NOW)
    with pytest.raises(MigrationError, match=f"version 1 .*needs {SUPPORTED}"):
        connect(uri, Config(schema="error"))
    assert version(raw) == 1


def test_a_newer_schema_is_refused(uri: DeltaSqlUri) -> None:
    database = connect(uri)
    with database.write() as session:
        session.insert(t.SCHEMA_MIGRATIONS, [(99, "of the future", NOW)])
    database.close()
    with pytest.raises(MigrationError, match=f"99.*{SUPPORTED}") as caught:
        connect(uri)
    assert (caught.value.found, caught.value.supported) == (99, SUPPORTED)


def test_a_migration_that_fails_leaves_nothing_behind(raw: Database, uri: DeltaSqlUri) -> None:
    for migration in MIGRATIONS[:2]:
        migrate(raw, migration, lambda: NOW)
    with raw.write() as session:
        session.send("CREATE TABLE dl_mirror_status (somebody BIGINT)")
    with pytest.raises(MigrationError, match="mirror_ledger") as caught:
        connect(uri)
    assert caught.value.migration == "mirror_ledger"
    assert isinstance(caught.value.__cause__, CatalogError)
    assert version(raw) == 2


def test_a_statement_without_the_schema_says_so(raw: Database) -> None:
    with pytest.raises(MigrationError, match="no schema"), raw.read() as session:
        session.row("SELECT name FROM dl_tables")


def test_threads_open_a_new_catalog_at_once(uri: DeltaSqlUri) -> None:
    with ThreadPoolExecutor(6) as threads:
        opened = list(threads.map(lambda _: connect(uri), range(6)))
    assert [version(database) for database in opened] == [SUPPORTED] * 6
    assert count(opened[0], "dl_schema_migrations") == SUPPORTED
    for database in opened:
        database.close()


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_processes_open_a_new_catalog_at_once(
    new_catalog_uri: Callable[[str], str], engine: str
) -> None:
    uri = parse(new_catalog_uri(engine))
    code = (
        "import sys; from deltalakedb.sql import connect; from deltalakedb.uri import parse;"
        " sys.stdin.readline(); database = connect(parse(sys.argv[1])); sys.stdin.readline()"
    )
    command = [sys.executable, "-W", "ignore", "-c", code, uri.render()]
    pipes = {"stdin": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    processes = [subprocess.Popen(command, **pipes) for _ in range(4)]
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    try:
        database = connect(uri)
    finally:
        errors = [process.communicate("stop\n")[1] for process in processes]
    assert errors == [""] * 4
    assert count(database, "dl_schema_migrations") == SUPPORTED
    database.close()


# --- what the tables refuse -----------------------------------------------------------------------


def ledger_row(status: str) -> Row:
    return (1, 0, "delta", status, 0, NOW, None, None, None, None, NOW)


@pytest.mark.parametrize(
    ("table", "row"),
    [
        (t.ADD_FILES, file_row(0, size=-1)),
        (t.ADD_FILES, file_row(0, path="")),
        (t.ADD_FILES, file_row(0, path=None)),
        (t.ADD_FILES, file_row(0, version=-1)),
        (t.ADD_FILES, file_row(0, num_records=-1)),
        (t.ADD_FILES, file_row(50, removed_version=5)),
        (t.TABLE_HEADS, (1, -2, 0)),
        (t.TABLES, (1, "t", "/t", NOW, "sleeping", "{}", 0)),
        (t.TABLES, (1, "", "/t", NOW, "active", "{}", 0)),
        (t.COLUMN_STATS, (1, 1, 65, 0, 0, 0, 0, None, None)),
        (t.COLUMN_STATS, (1, 1, 0, 0, 0, 0, 3, None, None)),
        (t.PROTOCOL_UPDATES, (1, 0, 0, 1, None, None, None)),
        (t.MIRROR_STATUS, ledger_row("DONE")),
    ],
)
def test_rows_that_make_no_sense_are_refused(uri: DeltaSqlUri, table: Table, row: Row) -> None:
    database = connect(uri)
    with pytest.raises(CatalogError), database.write() as session:
        session.insert(table, [row])
    assert count(database, table.name) == 0
    database.close()


@pytest.mark.parametrize(
    ("table", "one", "other"),
    [
        (t.TABLE_HEADS, (1, 0, 0), (1, 5, 5)),
        (t.TABLE_VERSIONS, version_row(3), version_row(3)),
        (t.TRANSACTIONS, (1, "id", NOW, *"abcd"), (2, "id", NOW, *"abcd")),
        (
            t.TABLES,
            (1, "t", "/t", NOW, "active", "{}", 0),
            (2, "t", "/u", NOW, "active", "{}", 0),
        ),
        (
            t.TABLES,
            (1, "t", "/t", NOW, "active", "{}", 0),
            (2, "u", "/t", NOW, "active", "{}", 0),
        ),
        (t.MIRROR_STATUS, ledger_row("PENDING"), ledger_row("FAILED")),
    ],
)
def test_what_must_be_unique_is(uri: DeltaSqlUri, table: Table, one: Row, other: Row) -> None:
    database = connect(uri)
    with database.write() as session:
        session.insert(table, [one])
    with pytest.raises(CatalogError), database.write() as session:
        session.insert(table, [other])
    assert count(database, table.name) == 1
    database.close()


def test_a_dropped_table_frees_its_name(uri: DeltaSqlUri) -> None:
    database = connect(uri)
    with database.write() as session:
        session.insert(t.TABLES, [(1, "t", "/t", NOW, "active", "{}", 0)])
    with database.write() as session:
        session.run("UPDATE dl_tables SET dropped = ?, status = ?", (1, "dropped"))
    with database.write() as session:
        session.insert(t.TABLES, [(2, "t", "/t", NOW, "active", "{}", 0)])
    assert count(database, "dl_tables") == 2
    database.close()


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
@pytest.mark.parametrize("again", [file_row(0, path="b"), file_row(1, path="a")])
def test_files_are_unique_where_keys_pay(
    new_catalog_uri: Callable[[str], str], engine: str, again: Row
) -> None:
    database = connect(parse(new_catalog_uri(engine)))
    with database.write() as session:
        session.insert(t.ADD_FILES, [file_row(0, path="a")])
    with pytest.raises(CatalogError), database.write() as session:
        session.insert(t.ADD_FILES, [again])
    with database.write() as session:
        session.run("UPDATE dl_add_files SET removed_version = 9")
        session.insert(t.ADD_FILES, [file_row(1, path="a")])
    assert count(database) == 2
    database.close()
