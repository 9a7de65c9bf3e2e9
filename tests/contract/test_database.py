"""The database seam: one behaviour on every engine."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa
import pytest

from deltalakedb.config import Config
from deltalakedb.errors import CatalogError, InvalidArgument
from deltalakedb.sql import Database, connect
from deltalakedb.sql import tables as t
from deltalakedb.uri import parse
from support.databases import BIG, COLUMNS, SCHEMA, count, file_row, fill, nasty_rows

FILES = "SELECT * FROM dl_add_files ORDER BY file_id"


@pytest.fixture
def database(catalog_uri: str) -> Iterator[Database]:
    database = connect(parse(catalog_uri), Config(sqlite_synchronous="normal"))
    yield database
    database.close()


# --- statements -----------------------------------------------------------------------------------


def test_statements_answer_alike(database: Database) -> None:
    with database.write() as session:
        session.insert(t.TABLE_HEADS, [(1, 0, 0), (2, 5, 9)])
        session.insert(t.TABLE_HEADS, [])
        assert session.rows("SELECT * FROM dl_table_heads ORDER BY table_id") == [
            (1, 0, 0),
            (2, 5, 9),
        ]
        assert session.row("SELECT version FROM dl_table_heads WHERE table_id = ?", (2,)) == (5,)
        assert session.row("SELECT version FROM dl_table_heads WHERE table_id = ?", (3,)) is None
        assert session.run("UPDATE dl_table_heads SET version = version + 1") == 2
        assert session.run("UPDATE dl_table_heads SET version = ? WHERE table_id = ?", (0, 3)) == 0
        session.send("DELETE FROM dl_table_heads WHERE table_id = ?", (1,))
    with database.read() as session:
        assert session.rows("SELECT * FROM dl_table_heads") == [(2, 6, 9)]


def test_rows_can_be_locked_and_marked_in_one_statement(database: Database) -> None:
    fill(database, [file_row(n) for n in range(5)])
    keys = [("part-000001.parquet", ""), ("part-000003.parquet", ""), ("other", "")]
    marks = ", ".join(["(?, ?)"] * len(keys))
    with database.write() as session:
        lock = database.dialect.lock_rows
        session.rows(f"SELECT version FROM dl_table_heads WHERE table_id = ?{lock}", (1,))
        gone = session.rows(
            f"WITH k (path, dv_id) AS (VALUES {marks}) UPDATE dl_add_files SET removed_version = ?"
            " WHERE table_id = ? AND removed_version IS NULL"
            " AND (path, dv_id) IN (SELECT path, dv_id FROM k) RETURNING file_id",
            [*(value for key in keys for value in key), 7, 1],
        )
    assert sorted(gone) == [(1,), (3,)]


@pytest.mark.parametrize("n", [1, 7, 49, 50, 3_000])
def test_insert_keeps_every_value(database: Database, n: int) -> None:
    rows = nasty_rows(n)
    fill(database, rows)
    with database.read() as session:
        assert session.rows(FILES) == rows


def test_a_clustered_table_takes_rows_in_any_order(database: Database) -> None:
    rows = [(1, 1, n % 65, (n * 7919) % 1000 - 500, BIG, n, 1, None, "x") for n in range(500)]
    with database.write() as session:
        session.insert(t.COLUMN_STATS, rows)
    with database.read() as session:
        found = session.rows("SELECT * FROM dl_column_stats ORDER BY file_id")
    assert found == rows


@pytest.mark.parametrize("value", [2**63, "lone \ud800 surrogate"])
@pytest.mark.parametrize("n", [1, 100])
def test_what_cannot_be_stored_is_refused(database: Database, value: Any, n: int) -> None:
    column = "size" if isinstance(value, int) else "path"
    with pytest.raises(InvalidArgument, match="cannot be stored"):
        fill(database, [file_row(i, **{column: value}) for i in range(n)])
    assert count(database) == 0


def test_text_compares_by_its_bytes(database: Database) -> None:
    names = ["a", "B", "_", "ä", "Z", "z", "aa", "A"]
    fill(database, [file_row(n, path=name) for n, name in enumerate(names)])
    binary = database.dialect.binary_text
    with database.read() as session:
        found = session.rows(f"SELECT path FROM dl_add_files ORDER BY path{binary}")
        least = session.rows(f"SELECT path FROM dl_add_files WHERE path{binary} < ?", ("_",))
    assert [path for (path,) in found] == sorted(names, key=str.encode)
    assert sorted(least) == [("A",), ("B",), ("Z",)]


# --- Arrow ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["file_id", None])
@pytest.mark.parametrize("n", [0, 1, 300, 20_000])
def test_arrow_equals_rows(database: Database, key: str | None, n: int) -> None:
    fill(database, nasty_rows(n))
    columns = COLUMNS if key is None else f"{key}, {COLUMNS}"
    where = "FROM dl_add_files WHERE table_id = ? AND size >= ?"
    order = "" if key else " ORDER BY file_id"
    reader = database.stream(f"SELECT {columns} {where}{order}", (1, 1), SCHEMA, key=key)
    assert reader.schema == SCHEMA
    found = reader.read_all()
    with database.read() as session:
        expected = session.rows(f"SELECT {COLUMNS} {where} ORDER BY file_id", (1, 1))
    assert found.schema == SCHEMA
    assert [tuple(row.values()) for row in found.to_pylist()] == expected


@pytest.mark.parametrize("key", ["file_id", None])
def test_arrow_sees_its_own_transaction(database: Database, key: str | None) -> None:
    schema = pa.schema([("size", pa.int64())])
    select = "size" if key is None else "file_id, size"
    with database.write() as session:
        session.insert(t.ADD_FILES, [file_row(n) for n in range(5)])
        found = session.arrow(f"SELECT {select} FROM dl_add_files", (), schema, key=key).read_all()
        assert session.row("SELECT count(*) FROM dl_add_files") == (5,)
    assert sorted(found["size"].to_pylist()) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("key", ["file_id", None])
def test_one_connection_streams_answers_of_any_shape(database: Database, key: str | None) -> None:
    fill(database, [file_row(n) for n in range(3)])
    for n in range(20):
        field = SCHEMA.field(n % len(SCHEMA))
        columns = field.name if key is None else f"{key}, {field.name}"
        sql = f"SELECT {columns} FROM dl_add_files WHERE size >= ?"
        found = database.stream(sql, (n % 3,), pa.schema([field]), key=key).read_all()
        assert found.num_rows == 3 - n % 3


def test_keys_may_be_far_apart(database: Database) -> None:
    ids = [0, 1, 5_000, 10**9, 10**12, 10**12 + 1]
    fill(database, [file_row(n, version=0) for n in ids])
    schema = pa.schema([("file_id", pa.int64()), ("path", pa.string())])
    sql = "SELECT file_id, path FROM dl_add_files WHERE table_id = ?"
    found = database.stream(sql, (1,), schema, key="file_id").read_all()
    assert sorted(found["file_id"].to_pylist()) == ids


@pytest.mark.parametrize("key", ["file_id", None])
def test_a_stream_left_half_read_leaves_nothing_behind(database: Database, key: str | None) -> None:
    fill(database, [file_row(n) for n in range(20_000)])
    for _ in range(30):  # more than there are connections
        sql = (
            f"SELECT file_id, {COLUMNS} FROM dl_add_files"
            if key
            else f"SELECT {COLUMNS} FROM dl_add_files"
        )
        reader = database.stream(sql, (), SCHEMA, key=key)
        assert reader.read_next_batch().num_rows > 0
        del reader
        gc.collect()
    fill(database, [file_row(20_000)])
    assert count(database) == 20_001


def test_an_error_in_a_stream_is_ours(database: Database) -> None:
    schema = pa.schema([("nothing", pa.int64())])
    with pytest.raises(CatalogError):
        database.stream("SELECT nothing FROM dl_add_files", (), schema).read_all()
    assert count(database) == 0


# --- transactions ---------------------------------------------------------------------------------


def test_a_read_sees_one_moment(database: Database) -> None:
    fill(database, [file_row(0)])
    with ThreadPoolExecutor(1) as other, database.read() as session:
        assert session.row("SELECT count(*) FROM dl_add_files") == (1,)
        other.submit(fill, database, [file_row(1)]).result()
        assert session.row("SELECT count(*) FROM dl_add_files") == (1,)
        schema = pa.schema([("file_id", pa.int64())])
        sql = "SELECT file_id FROM dl_add_files"
        assert session.arrow(sql, (), schema, key="file_id").read_all().num_rows == 1
    assert count(database) == 2


def test_an_exception_rolls_everything_back(database: Database) -> None:
    fill(database, [file_row(0)])

    def write() -> None:
        with database.write() as session:
            session.insert(t.ADD_FILES, [file_row(n) for n in range(1, 100)])
            session.run("UPDATE dl_add_files SET size = 77")
            session.insert(t.TABLE_HEADS, [(1, 0, 0)])
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write()
    assert count(database, "dl_table_heads") == 0
    with database.read() as session:
        assert session.rows(FILES) == [file_row(0)]


def test_a_statement_that_fails_fails_the_transaction(database: Database) -> None:
    def write() -> None:
        with database.write() as session:
            session.insert(t.TABLE_HEADS, [(1, 0, 0)])
            session.insert(t.TABLE_HEADS, [(2, -2, 0)])

    with pytest.raises(CatalogError):
        write()
    assert count(database, "dl_table_heads") == 0
    with database.write() as session:
        session.insert(t.TABLE_HEADS, [(1, 0, 0)])
    assert count(database, "dl_table_heads") == 1


def test_writers_queue_for_a_row(database: Database) -> None:
    with database.write() as session:
        session.insert(t.TABLE_HEADS, [(1, 0, 0)])

    def add_one(_: int) -> int:
        with database.write() as session:
            sql = "SELECT version FROM dl_table_heads WHERE table_id = ?"
            (version,) = session.rows(sql + database.dialect.lock_rows, (1,))[0]
            session.send("UPDATE dl_table_heads SET version = ?", (version + 1,))
            return database.next_seq(session)

    with ThreadPoolExecutor(6) as threads:
        places = list(threads.map(add_one, range(60)))
    with database.read() as session:
        assert session.row("SELECT version FROM dl_table_heads") == (60,)
    assert len(places) == 60


def test_counters_are_part_of_the_transaction(database: Database) -> None:
    def take(*, fail: bool) -> int:
        with database.write() as session:
            value = database.next_value(session, "table_id")
            if fail:
                raise ZeroDivisionError
            return value

    assert take(fail=False) == 1
    with pytest.raises(ZeroDivisionError):
        take(fail=True)
    assert take(fail=False) == 2


def test_places_in_the_order_only_grow(database: Database) -> None:
    places = []
    for n in range(5):
        with database.write() as session:
            places.append(database.next_seq(session))
            session.insert(t.TRANSACTIONS, [(places[-1], f"id {n}", 0, None, None, None, "{}")])
    database.settle()
    assert places == sorted(set(places))
    assert places[0] >= 1
