"""Changes to the table itself: columns, properties, constraints, features."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from deltalakedb.errors import InvalidArgument, InvalidSchema, ProtocolError, TxnLogError
from deltalakedb.model.schema import GENERATION, PrimitiveType, StructField, StructType
from support.catalogs import put, rows

DATA = pa.table({"id": [1, 2], "name": ["a", "b"]})
MAPPED = {"delta.columnMapping.mode": "name"}


@pytest.fixture
def plain(catalog):
    return put(catalog, "t", DATA)


@pytest.fixture
def mapped(catalog):
    return put(catalog, "t", DATA, configuration=MAPPED, partition_by="name")


def last(table):
    return table.history(1)[0]


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param([("extra", pa.float64())], id="pairs"),
        pytest.param(pa.schema([("extra", pa.float64())]), id="arrow schema"),
        pytest.param([pa.field("extra", pa.float64())], id="arrow fields"),
        pytest.param(StructField("extra", PrimitiveType("double")), id="delta field"),
        pytest.param([StructField("extra", PrimitiveType("double"))], id="delta fields"),
        pytest.param(StructType((StructField("extra", PrimitiveType("double")),)), id="struct"),
    ],
)
def test_columns_are_added_at_the_end(catalog, plain, fields):
    plain.alter.add_columns(fields)
    assert plain.version() == 1, "the table object moves along"
    assert catalog.table("t").schema().names == ["id", "name", "extra"]
    assert rows(plain) == [{**row, "extra": None} for row in DATA.to_pylist()]
    assert last(plain).operation == "ADD COLUMNS"
    put(catalog, "t", pa.table({"id": [3], "extra": [0.5]}))
    assert rows(catalog.table("t"), filter="extra > 0") == [{"id": 3, "name": None, "extra": 0.5}]
    assert len(catalog.table("t").files("extra IS NULL")) >= 1


def test_columns_that_cannot_be_added(plain, unchanged):
    with unchanged():
        for fields, error, reason in (
            ([("id", pa.int64())], InvalidArgument, "already"),
            ([("NAME", pa.int64())], InvalidArgument, "already"),
            ([pa.field("x", pa.int64(), nullable=False)], InvalidArgument, "nullable"),
            ([("a b", pa.int64())], InvalidSchema, "column mapping"),
            ([("x", pa.int64()), ("X", pa.int64())], InvalidSchema, "case"),
            ([("x", pa.duration("s"))], InvalidSchema, "duration"),
            ([("x", pa.null())], TxnLogError, "null"),
            ("nonsense", TxnLogError, ""),
            (7, InvalidArgument, "schema"),
        ):
            with pytest.raises(error, match=reason or None):
                plain.alter.add_columns(fields)


def test_a_timestamp_without_zone_raises_the_protocol(plain):
    plain.alter.add_columns([("at", pa.timestamp("us"))])
    assert "timestampNtz" in plain.protocol().reader_features
    assert {"appendOnly", "invariants", "timestampNtz"} == set(plain.protocol().writer_features)


def test_a_column_is_dropped_and_can_come_back_empty(catalog, mapped):
    mapped.alter.add_columns([("extra", pa.int64())])
    put(catalog, "t", pa.table({"id": [3], "name": ["c"], "extra": [30]}))
    mapped.alter.drop_columns("extra")
    assert mapped.schema().names == ["id", "name"]
    mapped.alter.add_columns([("extra", pa.int64())])
    assert {r["extra"] for r in rows(mapped)} == {None}
    assert last(mapped).operation == "ADD COLUMNS"


def test_columns_that_cannot_be_dropped(catalog, mapped, unchanged):
    put(catalog, "plain", DATA)
    mapped.alter.add_columns([("other", pa.int64()), ("free", pa.int64())])
    mapped.alter.add_constraint({"c": "other IS NULL OR other > id"})
    with unchanged():
        for names, reason in (
            ("nope", "'nope'"),
            ("name", "partitions"),
            (["free", "other"], "used by c"),
            ("ID", "used by c"),
        ):
            with pytest.raises(InvalidArgument, match=reason):
                mapped.alter.drop_columns(names)
        with pytest.raises(InvalidArgument, match="column mapping"):
            catalog.table("plain").alter.drop_columns("id")
    mapped.alter.drop_columns(["free"])
    assert mapped.schema().names == ["id", "name", "other"]


def test_the_last_data_column_stays(mapped, unchanged):
    with unchanged(), pytest.raises(TxnLogError):
        mapped.alter.drop_columns("id")


def test_a_column_is_renamed_without_touching_a_file(catalog, mapped):
    files = mapped.files()
    mapped.alter.rename_column("ID", "the key")
    mapped.alter.rename_column("name", "group")
    assert mapped.files() == files
    assert mapped.metadata().partition_columns == ("group",)
    assert rows(mapped) == [{"the key": 1, "group": "a"}, {"the key": 2, "group": "b"}]
    assert rows(mapped, filter="`the key` = 2 AND group = 'b'") == [{"the key": 2, "group": "b"}]
    assert len(mapped.files("group = 'b'")) == 1
    assert len(mapped.files("`the key` = 2")) == 1
    put(catalog, "t", pa.table({"the key": [3], "group": ["c"]}))
    assert catalog.table("t").count() == 3
    assert catalog.table("t", version=0).schema().names == ["id", "name"]
    assert rows(catalog.table("t", version=0)) == DATA.to_pylist()


def test_columns_that_cannot_be_renamed(catalog, mapped, unchanged):
    put(catalog, "plain", DATA)
    mapped.alter.add_constraint({"c": "id > 0"})
    mapped.alter.add_columns([("free", pa.int64())])
    with unchanged():
        for old, new, error, reason in (
            ("nope", "x", InvalidArgument, "'nope'"),
            ("id", "x", InvalidArgument, "used by c"),
            ("free", "NAME", InvalidSchema, "case"),
            ("free", "", InvalidSchema, "name"),
        ):
            with pytest.raises(error, match=reason):
                mapped.alter.rename_column(old, new)
        with pytest.raises(InvalidArgument, match="column mapping"):
            catalog.table("plain").alter.rename_column("id", "x")


def test_a_column_that_others_are_computed_from_stays(catalog, unchanged):
    generated = {"name": "b", "type": "long", "nullable": True, "metadata": {GENERATION: "a + 1"}}
    base = {"name": "a", "type": "long", "nullable": True, "metadata": {}}
    text = json.dumps({"type": "struct", "fields": [base, generated]})
    table = catalog.create_table("t", text, properties=MAPPED)
    with unchanged():
        for change in (
            lambda: table.alter.drop_columns("a"),
            lambda: table.alter.rename_column("a", "c"),
        ):
            with pytest.raises(InvalidArgument, match="used by b"):
                change()


def test_not_null_can_be_dropped(catalog, unchanged):
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), ("s", pa.string())])
    table = catalog.create_table("t", schema)
    table.alter.drop_not_null("ID")
    put(catalog, "t", pa.table({"s": ["x"]}))
    assert rows(catalog.table("t")) == [{"id": None, "s": "x"}]
    with unchanged():
        with pytest.raises(InvalidArgument, match="'nope'"):
            table.alter.drop_not_null("nope")
        table.alter.drop_not_null("s")  # it was nullable already


def test_comments_names_and_descriptions(catalog, plain):
    plain.alter.set_column_comment("NAME", "what it's called")
    plain.alter.set_table_name("display name")
    plain.alter.set_table_description('for people; "quoted"')
    table = catalog.table("t")
    assert table.schema().field("name").metadata == {"comment": "what it's called"}
    assert table.metadata().name == "display name"
    assert table.metadata().description == 'for people; "quoted"'
    assert catalog.list_tables() == ["t"], "the catalog's own name is another thing"
    assert table.version() == 3


def test_properties_are_set_and_unset(catalog, plain, unchanged):
    plain.alter.set_table_properties(
        {"delta.appendOnly": True, "team": "x", "delta.logRetentionDuration": "interval 3 days"}
    )
    assert plain.metadata().configuration == {
        "delta.appendOnly": "true",
        "team": "x",
        "delta.logRetentionDuration": "interval 3 days",
    }
    plain.alter.set_table_properties({"team": "y"})
    plain.alter.unset_table_properties(["delta.appendOnly", "delta.logRetentionDuration"])
    assert catalog.table("t").metadata().configuration == {"team": "y"}
    plain.delete("id = 1")
    with unchanged():
        with pytest.raises(InvalidArgument, match="no property 'nope'"):
            plain.alter.unset_table_properties("nope")
        plain.alter.set_table_properties({"team": "y"})  # as it is: no commit


@pytest.mark.parametrize(
    ("properties", "reason"),
    [
        ({"delta.appendOnly": "maybe"}, "true or false"),
        ({"delta.appendonly": "true"}, "no property"),
        ({"delta.fancyNewThing": "1"}, "no property"),
        ({"deltalakedb.typo": "1"}, "no property"),
        ({"delta.checkpointInterval": "0"}, "checkpointInterval"),
        ({"delta.isolationLevel": "Snapshot"}, "Serializable"),
        ({"delta.logRetentionDuration": "a while"}, "interval"),
        ({"delta.columnMapping.mode": "name"}, "created"),
        ({"delta.constraints.c": "id > 0"}, "add_constraint"),
        ({"delta.enableDeletionVectors": "true"}, "deletionVectors"),
        ({"delta.parquet.compression.codec": "middle-out"}, "codec"),
        ({"delta.enableIcebergCompatV2": "true"}, "iceberg"),
        ({"delta.minReaderVersion": "99"}, "minReaderVersion"),
        ({"delta.minWriterVersion": "99"}, "minWriterVersion"),
        ({"delta.feature.hologram": "supported"}, "hologram"),
        ({7: "x"}, "7"),
    ],
)
def test_properties_that_make_no_sense_are_refused(catalog, plain, unchanged, properties, reason):
    with unchanged():
        with pytest.raises(TxnLogError, match=f"(?i){reason}"):
            plain.alter.set_table_properties(properties)
        if not {"delta.columnMapping.mode", "delta.constraints.c"} & set(properties):
            with pytest.raises(TxnLogError, match=f"(?i){reason}"):
                catalog.create_table("new", DATA.schema, properties=properties)


def test_a_property_can_raise_the_protocol(plain):
    plain.alter.set_table_properties({"delta.enableRowTracking": "true"})
    assert {"rowTracking", "domainMetadata"} <= set(plain.protocol().writer_features)
    assert plain.protocol().min_writer_version == 7


def test_versions_can_be_asked_for_when_a_table_is_made(catalog):
    table = catalog.create_table(
        "t", DATA.schema, properties={"delta.minReaderVersion": "2", "delta.minWriterVersion": "5"}
    )
    assert (table.protocol().min_reader_version, table.protocol().min_writer_version) == (2, 5)
    assert table.metadata().configuration == {}


def test_features_are_added_with_what_they_require(plain):
    plain.alter.add_feature("rowTracking")
    assert set(plain.protocol().writer_features) == {
        "appendOnly",
        "invariants",
        "rowTracking",
        "domainMetadata",
    }
    plain.alter.add_feature(["v2Checkpoint", "checkConstraints"])
    assert plain.protocol().reader_features == ("v2Checkpoint",)
    assert last(plain).operation == "ADD FEATURE"


def test_features_that_cannot_be_added(plain, unchanged):
    plain.alter.add_feature("inCommitTimestamp")
    with unchanged():
        for name, reason in (
            ("hologram", "hologram"),
            ("deletionVectors", "deletionVectors"),
            ("clustering", "clustering"),
            ("inCommitTimestamp", "already"),
            ([], "feature"),
        ):
            with pytest.raises(TxnLogError, match=reason):
                plain.alter.add_feature(name)


def test_legacy_features_keep_legacy_versions(plain):
    plain.alter.add_constraint({"c": "id > 0"})
    assert plain.protocol().min_writer_version == 3
    assert plain.protocol().writer_features is None
    with pytest.raises(ProtocolError, match="already"):
        plain.alter.add_feature("checkConstraints")


def test_an_old_table_object_alters_the_latest_version(catalog, plain):
    old = catalog.table("t", version=0)
    plain.alter.add_columns([("extra", pa.int64())])
    old.alter.add_columns([("more", pa.int64())])
    assert old.version() == 2
    assert catalog.table("t").schema().names == ["id", "name", "extra", "more"]
    with pytest.raises(InvalidArgument, match="at least one"):
        old.alter.add_constraint({})
