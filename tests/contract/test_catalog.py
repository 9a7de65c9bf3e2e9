"""The catalog itself: its tables, how it is opened, who may have it open."""

from __future__ import annotations

import os
import subprocess
import sys

import pyarrow as pa
import pytest

import deltalakedb as dl
from deltalakedb.errors import (
    InvalidArgument,
    MigrationError,
    TableAlreadyExists,
    TableNotFound,
    TxnLogError,
    UriError,
)
from support.catalogs import files_below, put, rows
from support.gaps import SEVERAL_PROCESSES

ONE = pa.table({"n": [1]})


def test_tables_are_listed_by_name(catalog):
    assert catalog.list_tables() == []
    for name in ("b", "a", "c"):
        put(catalog, name, ONE)
    assert catalog.list_tables() == ["a", "b", "c"]


def test_an_entry_tells_about_a_table_without_opening_it(catalog, clock, warehouse):
    put(catalog, "t", ONE)
    put(catalog, "t", ONE)
    entry = catalog.entry("t")
    assert (entry.name, entry.version, entry.status) == ("t", 1, "active")
    assert entry.location == (warehouse / "t").as_uri()
    assert entry.created_at == clock.ms


def test_a_missing_table_names_those_there_are(catalog):
    put(catalog, "sales", ONE)
    for find in (
        lambda: catalog.table("sale"),
        lambda: catalog.entry("sale"),
        lambda: catalog.drop_table("sale"),
        lambda: catalog.rename_table("sale", "x"),
        lambda: catalog.reader("sale").history(),
        lambda: catalog.begin().table("sale"),
        lambda: catalog.begin().delete("sale", "n = 1"),
    ):
        with pytest.raises(TableNotFound, match=r"'sale'.*sales") as caught:
            find()
        assert caught.value.table == "sale"
        assert caught.value.available == ["sales"]


def test_a_dropped_table_is_gone_and_its_files_stay(catalog, warehouse):
    put(catalog, "t", ONE)
    before = files_below(warehouse)
    catalog.drop_table("t")

    assert catalog.list_tables() == []
    assert files_below(warehouse) == before
    with pytest.raises(TableNotFound):
        catalog.table("t")
    with pytest.raises(TableNotFound):
        catalog.drop_table("t")


def test_the_name_and_place_of_a_dropped_table_are_free_again(catalog):
    put(catalog, "t", ONE)
    catalog.drop_table("t")
    table = put(catalog, "t", pa.table({"other": ["x"]}))
    assert table.version() == 0
    assert rows(table) == [{"other": "x"}]
    assert [r.operation for r in table.history()] == ["CREATE TABLE"]
    catalog.drop_table("t")
    put(catalog, "t", ONE)
    assert rows(catalog.table("t")) == [{"n": 1}]


def test_a_renamed_table_keeps_everything_but_its_name(catalog):
    old = put(catalog, "t", ONE)
    catalog.rename_table("t", "new name; --")
    table = catalog.table("new name; --")

    assert table.table_uri == old.table_uri
    assert rows(put(catalog, "new name; --", ONE)) == [{"n": 1}] * 2
    assert [r.version for r in table.history()] == [1, 0]
    assert catalog.list_tables() == ["new name; --"]
    with pytest.raises(TableNotFound):
        catalog.table("t")


def test_the_old_name_of_a_renamed_table_can_be_used_again(catalog):
    put(catalog, "t", ONE)
    catalog.rename_table("t", "archive")
    put(catalog, "t", pa.table({"n": [2]}))
    assert rows(catalog.table("t")) == [{"n": 2}]
    assert rows(catalog.table("archive")) == [{"n": 1}]


def test_a_table_cannot_take_a_name_that_is_taken(catalog, unchanged):
    put(catalog, "a", ONE)
    put(catalog, "b", ONE)
    with unchanged():
        with pytest.raises(TableAlreadyExists, match="'b'") as caught:
            catalog.rename_table("a", "b")
        assert caught.value.table == "b"
        for name in ("", "  ", "\0", "n" * 256):
            with pytest.raises(InvalidArgument, match="name"):
                catalog.rename_table("a", name)


def test_a_catalog_that_is_opened_again_has_everything(catalog_uri, config):
    with dl.Catalog(catalog_uri, config=config) as catalog:
        put(catalog, "t", ONE)
    with dl.Catalog(catalog_uri, config=config) as again:
        assert rows(again.table("t")) == [{"n": 1}]
        put(again, "t", ONE)
        assert again.table("t").version() == 1


def test_two_catalogs_of_one_process_see_each_other(catalog):
    put(catalog, "t", ONE)
    with dl.Catalog(catalog.uri, config=catalog.config) as other:
        put(other, "t", ONE)
        assert catalog.table("t").count() == 2
        put(catalog, "t", ONE)
        assert other.table("t").count() == 3


def test_a_closed_catalog_says_so(catalog_uri, config):
    with dl.Catalog(catalog_uri, config=config) as catalog:
        put(catalog, "t", ONE)
    with pytest.raises(TxnLogError, match="closed"):
        catalog.list_tables()


def test_the_schema_is_not_made_where_the_configuration_forbids_it(catalog_uri, config):
    import msgspec

    strict = msgspec.structs.replace(config, schema="error")
    with pytest.raises(MigrationError, match="create_if_missing") as caught:
        dl.Catalog(catalog_uri, config=strict)
    assert caught.value.found == 0
    with dl.Catalog(catalog_uri, config=config) as made:
        put(made, "t", ONE)
    with dl.Catalog(catalog_uri, config=strict) as opened:
        assert opened.list_tables() == ["t"]


def test_the_default_catalog_comes_from_the_environment(catalog_uri, tmp_path, monkeypatch):
    monkeypatch.setenv("DELTALAKEDB_CATALOG", catalog_uri)
    monkeypatch.setenv("DELTALAKEDB_WAREHOUSE", str(tmp_path / "warehouse"))
    with dl.begin() as tx:
        tx.write("t", ONE)
    assert dict(tx.result.versions) == {"t": 0}
    with dl.Catalog() as catalog:
        assert rows(catalog.table("t")) == [{"n": 1}]


def test_a_uri_without_a_table_is_refused_where_one_is_needed(catalog):
    with pytest.raises(UriError, match="table"):
        dl.DeltaTable(catalog.uri.render())
    with pytest.raises(UriError, match="table"):
        dl.write_deltalake(catalog.uri.render(), ONE)


def test_nothing_shown_holds_a_password(catalog):
    secret = catalog.uri.password
    shown = [repr(catalog), str(catalog.uri), repr(catalog.uri)]
    put(catalog, "t", ONE)
    shown.append(repr(catalog.table("t")))
    with pytest.raises(TableNotFound) as caught:
        catalog.table("x")
    shown.append(str(caught.value))
    assert not any("password" in text for text in shown)
    if secret:
        assert not any(secret in text for text in shown)


OTHER_PROCESS = """
import sys, deltalakedb as dl, pyarrow as pa
try:
    with dl.Catalog(sys.argv[1]) as catalog, catalog.begin() as tx:
        tx.write("t", pa.table({"n": [2]}))
except dl.errors.CatalogLocked as e:
    sys.exit(f"locked: {e}")
"""


@pytest.mark.needs(SEVERAL_PROCESSES)
def test_another_process_can_write_at_the_same_time(catalog):
    put(catalog, "t", ONE)
    with catalog.begin() as tx:
        assert tx.table("t").count() == 1
        done = subprocess.run(
            [sys.executable, "-c", OTHER_PROCESS, catalog.uri.render()],
            capture_output=True,
            text=True,
            env=os.environ | {"DELTALAKEDB_SQLITE_BUSY_TIMEOUT_MS": "1000"},
            check=False,
        )
        if "locked: " in done.stderr:
            raise dl.errors.CatalogLocked(done.stderr)
        assert done.returncode == 0, done.stderr
        tx.write("t", ONE)
    assert catalog.table("t").version() == 2
    assert rows(catalog.table("t")) == [{"n": 1}, {"n": 1}, {"n": 2}]
