"""Nonsense of every kind: a clear error of the tree, and nothing has changed."""

from __future__ import annotations

import msgspec
import pyarrow as pa
import pytest

import deltalakedb as dl
from deltalakedb.errors import (
    CatalogUnavailable,
    ConfigError,
    InvalidArgument,
    MigrationError,
    SchemaMismatch,
    StorageError,
    TableNotFound,
    TxnLogError,
    UriError,
)
from deltalakedb.uri import parse
from support.catalogs import nothing_changes, put

DATA = pa.table({"id": [1, 2], "name": ["a", "b"]})


@pytest.fixture
def t(catalog):
    return put(catalog, "t", DATA)


# --- URIs -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "uri",
    [
        "",
        "lake.db",
        "deltasql:",
        "deltasql:sqlite/x.db",
        "deltasql://",
        "deltasql:///x.db",
        "deltasql://mysql/db/schema",
        "deltasql://sqlite",
        "deltasql://sqlite/",
        "deltasql://postgres/db",
        "deltasql://postgres/user:hunter2@host:port/db/schema",
        "deltasql://postgres/user:hunter2@host:99999/db/schema",
        "deltasql://postgres/user:hunter2@/",
        "deltasql://sqlite/x.db?bogus=1",
        "deltasql://sqlite/x.db?table=",
        "deltasql://sqlite/x.db?pool_size=3",
        "deltasql://postgres/db/schema?pool_size=none",
        "deltasql://sqlite/${NO_SUCH_VARIABLE}/x.db",
        "deltasql://sqlite/a%ZZ.db",
        "deltasql://sqlite/nul%00.db",
        "sqlite:///x.db",
        "postgresql://user:hunter2@host/db",
        "http://example.com/table",
    ],
)
def test_a_uri_that_makes_no_sense_is_refused(uri, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    uses = [
        lambda: dl.Catalog(uri),
        lambda: dl.begin(uri),
        lambda: dl.write_deltalake(uri, DATA),
    ]
    if uri != "lake.db":  # which may well be the folder of a table
        uses.append(lambda: dl.DeltaTable(uri))
    for use in uses:
        with pytest.raises((UriError, InvalidArgument)) as caught:
            use()
        assert isinstance(caught.value, TxnLogError)
        assert "hunter2" not in str(caught.value) + repr(caught.value.facts)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("uri", [None, 7, b"deltasql://sqlite/x.db", ["x"]])
def test_a_uri_is_a_text(uri, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(TxnLogError):
        dl.DeltaTable(uri)
    with pytest.raises(TxnLogError):
        dl.write_deltalake(uri, DATA)
    if uri is not None:  # the default catalog
        with pytest.raises(TxnLogError):
            dl.Catalog(uri)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_without_a_table_is_said_to_be_that(tmp_path):
    with pytest.raises(TableNotFound, match="nothing%20here"):
        dl.DeltaTable(str(tmp_path / "nothing here"))
    with pytest.raises(InvalidArgument, match="only read"):
        dl.write_deltalake(str(tmp_path / "files"), DATA)


# --- wrong types ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data",
    [
        None,
        7,
        "text",
        b"bytes",
        object(),
        {"id": [1]},
        [1, 2],
        [],
        ["a"],
        [{"id": 1}, 7],
        [{"id": 1}, {"id": "one"}],
        [DATA.to_batches()[0], "x"],
        [DATA.to_batches()[0], pa.record_batch({"other": [1]})],
        DATA.schema,
        pa.array([1]),
        iter([]),
    ],
)
def test_data_that_is_none(catalog, t, unchanged, data):
    with unchanged():
        for table in ("t", "new"):
            with pytest.raises((InvalidArgument, SchemaMismatch)) as caught:
                put(catalog, table, data)
            assert str(caught.value)


@pytest.mark.parametrize("schema", [None, 7, "text", [], [1], ["id"], {"id": "x"}, object()])
def test_a_schema_that_is_none(catalog, unchanged, schema):
    with unchanged(), pytest.raises(TxnLogError):
        catalog.create_table("new", schema)


@pytest.mark.parametrize(
    "name", ["", " ", "\n", "\0", "a\0b", "n" * 256, "\ud800", 7, None, b"t", ["t"]]
)
def test_a_name_that_is_none(catalog, t, unchanged, name):
    with unchanged():
        for use in (
            lambda: catalog.create_table(name, DATA.schema),
            lambda: put(catalog, name, DATA),
            lambda: catalog.rename_table("t", name),
            lambda: catalog.table(name),
            lambda: catalog.entry(name),
            lambda: catalog.drop_table(name),
            lambda: catalog.begin().table(name),
            lambda: catalog.begin().delete(name),
        ):
            with pytest.raises(TxnLogError):
                use()


def test_arguments_of_the_wrong_type(catalog, t, unchanged):
    with unchanged():
        for use in (
            lambda: put(catalog, "t", DATA, mode=7),
            lambda: put(catalog, "t", DATA, partition_by=7),
            lambda: put(catalog, "new", DATA, partition_by=7),
            lambda: put(catalog, "new", DATA, configuration=["x"]),
            lambda: put(catalog, "new", DATA, location=7),
            lambda: put(catalog, "t", DATA, mode="overwrite", predicate=7),
            lambda: t.delete(7),
            lambda: t.delete([7]),
            lambda: t.delete([("id", "=")]),
            lambda: t.delete([("id", "in", 7)]),
            lambda: t.to_arrow(columns=7),
            lambda: t.to_arrow(columns=[7]),
            lambda: t.to_arrow(filter=7),
            lambda: t.files(7),
            lambda: t.count("id = 'text that is no number'"),
            lambda: catalog.table("t", version="one"),
            lambda: catalog.table("t", version=1.5),
            lambda: catalog.table("t", timestamp=object()),
            lambda: catalog.table("t", timestamp=1.5),
            lambda: t.load_as_version(None),
            lambda: t.history("all"),
            lambda: t.history(-1),
            lambda: catalog.transactions(-1),
            lambda: catalog.at(timestamp="soon"),
            lambda: catalog.at(transaction_id=7),
            lambda: catalog.begin(message=7),
            lambda: t.alter.add_constraint("id > 0"),
            lambda: t.alter.add_constraint({"c": 7}),
            lambda: t.alter.add_constraint({"": "id > 0"}),
            lambda: t.alter.set_table_properties("x"),
            lambda: t.alter.set_table_name(7),
            lambda: t.alter.drop_not_null(7),
            lambda: t.alter.set_column_comment("id", 7),
            lambda: catalog.begin().set_txn("t", 7, 1),
            lambda: catalog.begin().set_txn("t", "app", "one"),
            lambda: catalog.begin().stage_table("t", [7]),
            lambda: catalog.create_table("new", DATA.schema, mode="replace"),
            lambda: catalog.create_table("new", DATA.schema, description=7),
            lambda: catalog.create_table("new", DATA.schema, location=7),
        ):
            with pytest.raises(TxnLogError) as caught:
                use()
            assert str(caught.value)


def test_a_filter_value_of_no_type_delta_has(t, unchanged):
    with unchanged(), pytest.raises(TxnLogError):
        t.delete([("id", "=", object())])


def test_a_filter_value_that_is_no_text(t):
    with pytest.raises(TxnLogError):
        t.to_arrow(filter=[("name", "=", "lone \ud800")])


def test_text_that_no_database_can_hold(catalog, t, unchanged):
    with unchanged():
        for use in (
            lambda: catalog.create_table("new", DATA.schema, description="nul \0"),
            lambda: catalog.create_table("new", DATA.schema, properties={"x": "nul \0"}),
            lambda: t.alter.set_table_description("lone \ud800"),
            lambda: t.alter.set_table_properties({"lone \ud800": "x"}),
        ):
            with pytest.raises(TxnLogError):
                use()


# --- storage --------------------------------------------------------------------------------------


def test_a_place_that_cannot_be_written(catalog, unchanged, tmp_path):
    (tmp_path / "file").write_text("in the way")
    with unchanged():
        for location in (str(tmp_path / "file"), str(tmp_path / "file" / "below")):
            with pytest.raises(StorageError, match="file") as caught:
                put(catalog, "new", DATA, location=location)
            assert caught.value.path
        for location in ("memory://x", "ftp://host/x", "deltasql://sqlite/x.db"):
            with pytest.raises(TxnLogError):
                put(catalog, "new", DATA, location=location)
    assert (tmp_path / "file").read_text() == "in the way"
    assert catalog.list_tables() == []


# --- the database ---------------------------------------------------------------------------------


def test_a_database_that_is_not_there(catalog_uri, config):
    uri = parse(catalog_uri)
    if uri.path:
        nowhere = msgspec.structs.replace(uri, path=f"{uri.path}/no/such/folder/x.db")
    else:
        nowhere = msgspec.structs.replace(uri, host="127.0.0.1", port=1, password="hunter2")
    with pytest.raises(CatalogUnavailable) as caught:
        dl.Catalog(nowhere, config=config)
    assert caught.value.catalog == str(nowhere)
    assert "hunter2" not in str(caught.value)


def test_a_database_of_a_newer_build(catalog_uri, config):
    with dl.Catalog(catalog_uri, config=config) as catalog:
        put(catalog, "t", DATA)
        with catalog.database.write() as session:
            row = (999, "from_tomorrow", 0)
            session.run("INSERT INTO dl_schema_migrations VALUES (?, ?, ?)", row)
        with (
            nothing_changes(catalog),
            pytest.raises(MigrationError, match="upgrade deltalakedb") as caught,
        ):
            dl.Catalog(catalog_uri, config=config)
    assert caught.value.found == 999
    assert caught.value.supported < 999


def test_a_setting_out_of_range():
    with pytest.raises(ConfigError, match="retry_attempts") as caught:
        dl.Config(retry_attempts=0)
    assert caught.value.setting == "retry_attempts"
