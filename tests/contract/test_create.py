"""Tables come into being: schema, partitioning, properties, protocol, location, name."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

import deltalakedb as dl
from deltalakedb.errors import InvalidArgument, TableAlreadyExists
from deltalakedb.model.schema import StructType
from support import values
from support.catalogs import put, rows

IDS = pa.schema([("id", pa.int64())])
WEIRD_NAMES = [
    "sales 2026",
    "Sales",
    "it's",
    'say "hi"',
    "a;b -- c",
    "x'); DROP TABLE dl_tables; --",
    "../../etc/passwd",
    "100% ${HOME} ?",
    "Größe/雪🎿",
    "back\\slash",
    ".hidden",
    "_under",
    "tab\tline\n",
    "a.b.c",
    "deltalake",
    "n" * 255,
]


def test_a_new_table_is_empty_and_at_version_zero(catalog):
    made = catalog.create_table("sales", values.FLAT, description="what we sold")

    assert made.version() == 0
    assert made.count() == 0
    assert made.files() == []
    assert made.to_arrow().num_rows == 0
    assert made.metadata().name == "sales"
    assert made.metadata().description == "what we sold"
    assert catalog.list_tables() == ["sales"]
    assert [record.operation for record in made.history()] == ["CREATE TABLE"]


def test_every_arrow_type_becomes_its_delta_type(catalog):
    made = catalog.create_table("t", values.FLAT)

    assert {f.name: str(f.type) for f in made.schema().fields} == values.DELTA_TYPES


def test_nested_types_keep_their_shape(catalog):
    made = catalog.create_table("t", values.NESTED)

    found = {f.name: str(f.type) for f in made.schema().fields}
    assert found["points"].startswith("array<struct")
    assert found["groups"] == "map<integer,array<string>>"
    assert found["matrix"] == "array<array<decimal(5,1)>>"


def test_a_schema_can_be_given_in_several_ways(catalog):
    delta = catalog.create_table("arrow", IDS).schema()
    assert isinstance(delta, StructType)
    text = catalog.table("arrow").metadata().schema_string

    for name, schema in {
        "pairs": [("id", pa.int64())],
        "delta": delta,
        "json": text,
        "fields": [pa.field("id", pa.int64())],
    }.items():
        assert catalog.create_table(name, schema).schema() == delta


def test_not_null_and_comments_are_part_of_the_schema(catalog):
    field = pa.field("id", pa.int64(), nullable=False, metadata={"comment": "the key"})
    made = catalog.create_table("t", pa.schema([field]))

    (stored,) = json.loads(made.metadata().schema_string)["fields"]
    assert stored["nullable"] is False
    assert stored["metadata"] == {"comment": "the key"}


def test_partition_columns_are_recorded_in_the_order_given(catalog):
    schema = pa.schema([("a", pa.int32()), ("b", pa.string()), ("c", pa.string())])
    made = catalog.create_table("t", schema, partition_by=["c", "a"])
    assert made.metadata().partition_columns == ("c", "a")
    assert catalog.create_table("u", schema, partition_by="b").metadata().partition_columns == (
        "b",
    )


def test_a_plain_table_asks_for_nothing_of_its_readers(catalog):
    protocol = catalog.create_table("t", IDS).protocol()
    assert (protocol.min_reader_version, protocol.min_writer_version) == (1, 2)
    assert protocol.reader_features is None
    assert protocol.writer_features is None


@pytest.mark.parametrize(
    ("properties", "reader", "writer", "features"),
    [
        ({"delta.appendOnly": True}, 1, 2, None),
        ({"delta.columnMapping.mode": "name"}, 2, 5, None),
        ({"delta.enableChangeDataFeed": "true"}, 1, 4, None),
        (
            {"delta.enableInCommitTimestamps": "true"},
            1,
            7,
            {"appendOnly", "invariants", "inCommitTimestamp"},
        ),
        (
            {"delta.enableRowTracking": "true"},
            1,
            7,
            {"appendOnly", "invariants", "rowTracking", "domainMetadata"},
        ),
        (
            {"delta.checkpointPolicy": "v2"},
            3,
            7,
            {"appendOnly", "invariants", "v2Checkpoint"},
        ),
        (
            {"delta.feature.vacuumProtocolCheck": "supported"},
            3,
            7,
            {"appendOnly", "invariants", "vacuumProtocolCheck"},
        ),
    ],
)
def test_properties_raise_the_protocol_to_what_they_need(
    catalog, properties, reader, writer, features
):
    made = catalog.create_table("t", IDS, properties=properties)

    protocol = made.protocol()
    assert (protocol.min_reader_version, protocol.min_writer_version) == (reader, writer)
    assert (set(protocol.writer_features) if protocol.writer_features else None) == features
    stored = made.metadata().configuration
    assert not any(key.startswith("delta.feature.") for key in stored)
    for key, value in properties.items():
        if not key.startswith("delta.feature."):
            assert stored[key] == (str(value).lower() if isinstance(value, bool) else value)


def test_types_raise_the_protocol_too(catalog):
    protocol = catalog.create_table("t", [("at", pa.timestamp("us"))]).protocol()
    assert protocol.reader_features == ("timestampNtz",)
    assert "timestampNtz" in protocol.writer_features


def test_properties_of_other_software_are_kept_as_they_are(catalog):
    made = catalog.create_table("t", IDS, properties={"team": "Müller", "owner.mail": "a@b"})
    assert made.metadata().configuration == {"team": "Müller", "owner.mail": "a@b"}


def test_a_table_goes_to_the_warehouse_unless_told_otherwise(catalog, warehouse, tmp_path):
    assert catalog.create_table("sales", IDS).table_uri == (warehouse / "sales").as_uri()
    elsewhere = tmp_path / "else where" / "ünï"
    made = catalog.create_table("other", IDS, location=str(elsewhere))
    assert made.table_uri == elsewhere.as_uri()
    put(catalog, "other", pa.table({"id": [1]}))
    assert list(elsewhere.rglob("*.parquet"))
    assert rows(catalog.table("other")) == [{"id": 1}]


def test_without_a_warehouse_tables_lie_beside_an_embedded_catalog(catalog_uri, tmp_path):
    with dl.Catalog(catalog_uri, config=dl.Config()) as catalog:
        if catalog.uri.path:
            location = catalog.create_table("sales", IDS).table_uri
            assert Path(location.removeprefix("file://")).is_relative_to(tmp_path)
        else:
            with pytest.raises(InvalidArgument, match="DELTALAKEDB_WAREHOUSE"):
                catalog.create_table("sales", IDS)


def test_any_text_can_be_a_table_name(catalog, warehouse):
    for number, name in enumerate(WEIRD_NAMES):
        put(catalog, name, pa.table({"id": [number]}))

    assert sorted(catalog.list_tables()) == sorted(WEIRD_NAMES)
    for number, name in enumerate(WEIRD_NAMES):
        table = catalog.table(name)
        assert rows(table) == [{"id": number}], name
        assert table.history()[0].table == name
    folders = {catalog.table(name).table_uri for name in WEIRD_NAMES}
    assert len(folders) == len(WEIRD_NAMES)
    assert all(uri.rpartition("/")[0] == warehouse.as_uri() for uri in folders)


def test_a_weird_name_can_be_opened_by_uri(catalog):
    for number, name in enumerate(WEIRD_NAMES[:10]):
        put(catalog, name, pa.table({"id": [number]}))
        uri = catalog.uri.with_table(name).render()
        assert rows(dl.DeltaTable(uri)) == [{"id": number}]


def test_a_column_may_have_any_name_that_parquet_takes(catalog):
    names = [
        "it's",
        'q"uote',
        "back\\slash",
        "dot.ted",
        "per%cent",
        "`tick`",
        "--",
        "雪",
        "select",
        "?",
    ]
    data = pa.table({"p/art": ["x"], **{name: [number] for number, name in enumerate(names)}})
    table = put(catalog, "t", data, partition_by="p/art")

    assert table.to_arrow().column_names == data.column_names
    assert rows(table) == data.to_pylist()
    for number, name in enumerate(names):
        assert rows(table, columns=[name], filter=[(name, "=", number)]) == [{name: number}]
        assert table.files([(name, "=", number + 1)]) == []
    assert table.partitions() == [{"p/art": "x"}]
    assert table.get_add_actions(flatten=True)["min.it's"].to_pylist() == [0]


def test_column_mapping_lifts_the_limits_on_column_names(catalog):
    names = ["a b", "x;y,{z}(=)", "q\"uo'te", "tab\t", "drop table dl_tables", "雪", "p=1/2", "`b`"]
    data = pa.table({name: [number] for number, name in enumerate(names)})
    table = put(
        catalog,
        "t",
        data,
        partition_by=["p=1/2"],
        configuration={"delta.columnMapping.mode": "name"},
    )

    assert table.to_arrow().column_names == names
    assert rows(table) == data.to_pylist()
    assert rows(table, filter="`a b` = 0 AND `p=1/2` = 6 AND ```b``` = 7") == data.to_pylist()
    assert rows(table, filter="`a b` = 1") == []
    assert rows(table, columns=["雪", "a b"]) == [{"雪": 5, "a b": 0}]


def test_a_name_that_is_taken_is_refused_or_ignored(catalog, unchanged):
    first = catalog.create_table("t", IDS)
    with unchanged():
        with pytest.raises(TableAlreadyExists, match="'t' already exists") as caught:
            catalog.create_table("t", [("other", pa.string())])
        assert caught.value.table == "t"
        again = catalog.create_table("t", [("other", pa.string())], mode="ignore")
    assert again.metadata() == first.metadata()


def test_two_tables_never_share_a_location(catalog, unchanged, tmp_path):
    place = tmp_path / "place"
    catalog.create_table("a", IDS, location=str(place))
    with unchanged():
        for spelling in (str(place), f"{place}/", place.as_uri(), f"{tmp_path}/x/../place"):
            with pytest.raises(TableAlreadyExists, match="belongs to table 'a'"):
                catalog.create_table("b", IDS, location=spelling)


def test_names_differ_by_case(catalog):
    put(catalog, "t", pa.table({"id": [1]}))
    put(catalog, "T", pa.table({"id": [2]}))
    assert rows(catalog.table("t")) == [{"id": 1}]
    assert rows(catalog.table("T")) == [{"id": 2}]
