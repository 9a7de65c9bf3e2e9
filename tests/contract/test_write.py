"""Append: what counts as data, how files are cut, what a commit says about itself."""

from __future__ import annotations

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deltalakedb as dl
from deltalakedb.errors import InvalidArgument, SchemaMismatch, TableAlreadyExists, TableNotFound
from support.catalogs import put, rows

DATA = pa.table({"id": [1, 2, 3], "name": ["a", None, "c"]})
ROWS = DATA.to_pylist()


class Exporter:
    """Nothing but Arrow's C stream, as other libraries have."""

    def __arrow_c_stream__(self, requested_schema=None):
        return DATA.__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(lambda: DATA, id="table"),
        pytest.param(lambda: DATA.to_batches()[0], id="batch"),
        pytest.param(lambda: DATA.to_batches(max_chunksize=1), id="batches"),
        pytest.param(lambda: iter(DATA.to_batches(max_chunksize=1)), id="iterator"),
        pytest.param(lambda: DATA.to_reader(max_chunksize=2), id="reader"),
        pytest.param(DATA.to_pandas, id="pandas"),
        pytest.param(lambda: DATA.to_pandas().set_index("id", drop=False), id="pandas index"),
        pytest.param(lambda: pl.from_arrow(DATA), id="polars"),
        pytest.param(lambda: pl.from_arrow(DATA).lazy(), id="polars lazy"),
        pytest.param(lambda: ROWS, id="dicts"),
        pytest.param(Exporter, id="arrow stream"),
    ],
)
def test_data_may_come_as(catalog, data):
    table = put(catalog, "t", data())
    assert rows(table) == ROWS
    assert rows(put(catalog, "t", data())) == sorted(ROWS * 2, key=repr)


def test_pandas_types_find_their_way(catalog):
    frame = pd.DataFrame(
        {
            "when": pd.to_datetime(["2026-01-01T00:00:00Z", None]),
            "whole": pd.array([1, None], dtype="Int64"),
            "kind": pd.Categorical(["x", "y"]),
            "flag": pd.array([True, None], dtype="boolean"),
        }
    )
    table = put(catalog, "t", frame)
    assert {f.name: str(f.type) for f in table.schema().fields} == {
        "when": "timestamp",
        "whole": "long",
        "kind": "string",
        "flag": "boolean",
    }
    assert sorted(map(str, table.to_arrow()["whole"].to_pylist())) == ["1", "None"]
    assert table.to_pandas()["kind"].tolist() == ["x", "y"]


def test_polars_types_find_their_way(catalog):
    frame = pl.DataFrame(
        {
            "kind": pl.Series(["x", None], dtype=pl.Categorical),
            "level": pl.Series(["low", "high"], dtype=pl.Enum(["low", "high"])),
            "small": pl.Series([1, 2], dtype=pl.UInt8),
            "pair": pl.Series([[1, 2], [3, 4]], dtype=pl.Array(pl.Int16, 2)),
        }
    )
    table = put(catalog, "t", frame)
    assert table.to_polars().sort("small").to_dicts() == frame.to_dicts()
    assert all(field.metadata == {} for field in table.schema().fields), "notes of Polars' own"


def test_rows_as_dicts_may_differ_in_their_keys(catalog):
    table = put(catalog, "t", [{"a": 1}, {"b": "x"}, {"a": None, "b": None}])
    assert rows(table) == sorted(
        [{"a": 1, "b": None}, {"a": None, "b": "x"}, {"a": None, "b": None}], key=repr
    )


def test_frames_that_make_no_table_are_refused(catalog, unchanged):
    with unchanged():
        for frame in (
            pd.DataFrame([[1, 2]], columns=["a", "a"]),
            pd.DataFrame({"a": [1, "x"]}),
            pd.DataFrame({"a": [object()]}),
            pl.DataFrame({"a": [object()]}, schema={"a": pl.Object}),
            pl.DataFrame({"a": pl.Series([2**100], dtype=pl.Int128)}),
        ):
            with pytest.raises(InvalidArgument, match=r"DataFrame|objects"):
                put(catalog, "t", frame)


def test_writing_creates_a_table_that_is_missing(catalog):
    table = put(
        catalog,
        "t",
        DATA,
        partition_by=["name"],
        configuration={"delta.appendOnly": "true"},
        description="made by a write",
    )
    assert table.version() == 0
    assert table.metadata().partition_columns == ("name",)
    assert table.metadata().configuration == {"delta.appendOnly": "true"}
    assert table.metadata().description == "made by a write"
    assert rows(table) == ROWS


def test_each_append_is_a_version_and_keeps_what_was_there(catalog):
    for number in range(4):
        table = put(catalog, "t", pa.table({"id": [number]}))
        assert table.version() == number
    assert rows(table) == [{"id": n} for n in range(4)]
    assert table.count() == 4


def test_write_deltalake_takes_a_uri_or_a_table(catalog, monkeypatch, warehouse):
    monkeypatch.setenv("DELTALAKEDB_WAREHOUSE", str(warehouse))
    uri = catalog.uri.with_table("t").render()

    result = dl.write_deltalake(uri, DATA, message="first")
    assert dict(result.versions) == {"t": 0}
    table = dl.DeltaTable(uri)
    result = dl.write_deltalake(table, DATA)
    assert table.version() == 1, "a table that was written through moves along"
    assert rows(catalog.table("t")) == sorted(ROWS * 2, key=repr)
    assert catalog.table("t", version=0).history()[-1].message == "first"


def test_modes_error_and_ignore_leave_a_table_alone(catalog, unchanged):
    table = put(catalog, "t", DATA)
    with unchanged():
        with pytest.raises(TableAlreadyExists, match="'t'"):
            dl.write_deltalake(table, DATA, mode="error")
        assert dl.write_deltalake(table, DATA, mode="ignore") is None


@pytest.mark.parametrize("mode", ["error", "ignore"])
def test_modes_hold_inside_a_transaction_too(catalog, mode):
    put(catalog, "t", DATA)
    with catalog.begin() as tx:
        tx.write("new", DATA, mode=mode)
        if mode == "error":
            with pytest.raises(TableAlreadyExists):
                tx.write("t", DATA, mode=mode)
        else:
            tx.write("t", DATA, mode=mode)
    assert rows(catalog.table("new")) == ROWS
    assert rows(catalog.table("t")) == ROWS
    assert catalog.table("t").version() == 0


def test_columns_are_matched_by_name_whatever_their_order_and_case(catalog):
    put(catalog, "t", DATA)
    table = put(catalog, "t", pa.table({"NAME": ["z"], "Id": [9]}))
    assert table.to_arrow().column_names == ["id", "name"]
    assert {"id": 9, "name": "z"} in rows(table)


def test_a_missing_column_is_null(catalog):
    put(catalog, "t", DATA)
    assert {"id": 4, "name": None} in rows(put(catalog, "t", pa.table({"id": [4]})))


def test_values_are_cast_where_they_fit_and_refused_where_not(catalog, unchanged):
    put(
        catalog, "t", pa.table({"n": pa.array([1], pa.int16()), "f": pa.array([1.0], pa.float32())})
    )
    table = put(catalog, "t", pa.table({"n": [2], "f": [2.5]}))
    assert rows(table) == [{"n": 1, "f": 1.0}, {"n": 2, "f": 2.5}]
    with unchanged():
        with pytest.raises(SchemaMismatch, match="'n'") as caught:
            put(catalog, "t", pa.table({"n": [2**15], "f": [0.0]}))
        assert caught.value.columns == ("n",)
        with pytest.raises(SchemaMismatch, match="'n'"):
            put(catalog, "t", pa.table({"n": [1.5], "f": [0.0]}))


@pytest.mark.parametrize("partition_by", [(), ("name",)])
def test_data_without_rows_makes_no_file(catalog, partition_by):
    table = put(catalog, "t", DATA.slice(0, 0), partition_by=partition_by)
    assert table.version() == 0
    assert table.files() == []
    put(catalog, "t", DATA)
    table = put(catalog, "t", DATA.slice(0, 0))
    assert rows(table) == ROWS
    table = put(catalog, "t", DATA.slice(0, 0), mode="overwrite")
    assert table.count() == 0


def test_files_are_cut_at_the_target_size(catalog):
    data = pa.table(
        {"n": pa.array(range(50_000)), "text": [f"row number {n}" for n in range(50_000)]}
    )
    table = put(catalog, "t", data, target_file_size=50_000)

    sizes = table.get_add_actions()["size_bytes"].to_pylist()
    assert len(sizes) > 3
    assert max(sizes) < 150_000
    assert table.to_arrow().sort_by("n") == data.cast(table.to_arrow().schema)


def test_the_files_of_a_write_lie_together_and_are_real_parquet(catalog, warehouse):
    data = pa.table({"p": ["x", "y"], "n": [1, 2]})
    with catalog.begin() as tx:
        tx.write("t", data, partition_by="p")
    table = catalog.table("t")

    assert all(path.startswith(f"tx-{tx.transaction_id}/p=") for path in table.files())
    on_disk = {file.as_uri(): file for file in warehouse.rglob("*.parquet")}
    assert sorted(on_disk) == sorted(uri.replace("=", "%3D") for uri in table.file_uris())
    for file in on_disk.values():
        assert pq.read_schema(file).names == ["n"], "partition columns are not in the files"


def test_more_partitions_than_files_are_kept_open(catalog):
    values = [n % 300 for n in range(600)]
    data = pa.table({"p": pa.array(values, pa.int32()), "n": range(600)})
    table = put(catalog, "t", data.to_batches(max_chunksize=100), partition_by="p")
    assert len(table.partitions()) == 300
    assert len(table.files("p = 299")) >= 1
    assert table.to_arrow().sort_by("n") == data.cast(table.to_arrow().schema)


def test_the_compression_of_a_table_is_used(catalog, warehouse):
    properties = {"delta.parquet.compression.codec": "ZSTD"}
    put(catalog, "t", DATA, configuration=properties)
    (file,) = warehouse.rglob("*.parquet")
    assert pq.read_metadata(file).row_group(0).column(0).compression == "ZSTD"


def test_the_history_tells_what_a_write_did(catalog, clock):
    put(catalog, "t", DATA)
    clock.advance(5_000)
    with catalog.begin(message="nightly load", run_id="run-7") as tx:
        tx.write("t", pa.table({"id": [7]}))
    last = catalog.table("t").history(1)[0]

    assert last.operation == "WRITE"
    assert last.parameters["mode"] == "Append"
    assert (last.version, last.read_version, last.timestamp) == (1, 0, clock.ms)
    assert last.is_blind_append is True
    assert last.isolation_level == "WriteSerializable"
    assert (last.committer, last.message) == ("tester", "nightly load")
    assert last.transaction_id == tx.transaction_id
    metrics = last.commit_info["operationMetrics"]
    assert (metrics["numFiles"], metrics["numOutputRows"]) == ("1", "1")
    assert int(metrics["numOutputBytes"]) == catalog.table("t").snapshot.size_bytes - (
        catalog.table("t", version=0).snapshot.size_bytes
    )
    assert last.commit_info["userMetadata"] == "nightly load"


def test_overwriting_part_of_a_missing_table_is_refused(catalog, unchanged):
    with unchanged(), pytest.raises(TableNotFound, match="'t'"):
        put(catalog, "t", DATA, mode="overwrite", predicate="id = 1")


@pytest.mark.parametrize(
    ("options", "argument"),
    [
        ({"mode": "upsert"}, "mode"),
        ({"schema_mode": "evolve"}, "schema_mode"),
        ({"predicate": "id = 1"}, "predicate"),
        ({"schema_mode": "overwrite"}, "schema_mode"),
        ({"mode": "overwrite", "schema_mode": "overwrite", "predicate": "id = 1"}, "schema_mode"),
        ({"target_file_size": 0}, "target_file_size"),
        ({"target_file_size": -1}, "target_file_size"),
        ({"target_file_size": "big"}, "target_file_size"),
    ],
)
def test_options_that_make_no_sense_are_refused(catalog, unchanged, options, argument):
    put(catalog, "t", DATA)
    with unchanged(), pytest.raises(InvalidArgument) as caught:
        put(catalog, "t", DATA, **options)
    assert caught.value.argument == argument
