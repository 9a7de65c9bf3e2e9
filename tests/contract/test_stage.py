"""Ready-made actions, and what only the commit can fill in: row ids, times, domains."""

from __future__ import annotations

import json

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deltalakedb.errors import InvalidCommit, ProtocolError, TxnLogError
from deltalakedb.model.actions import (
    Add,
    Cdc,
    CommitInfo,
    DeletionVector,
    DomainMetadata,
    Metadata,
    Protocol,
    Remove,
    Txn,
    UnknownAction,
)
from support.catalogs import put, rows

SCHEMA = pa.schema([("n", pa.int64())])
TABLE_FEATURES = Protocol(
    min_reader_version=3,
    min_writer_version=7,
    reader_features=("deletionVectors",),
    writer_features=("appendOnly", "invariants", "deletionVectors", "domainMetadata"),
)


def add(path, n=1, **fields):
    defaults = {
        "partition_values": {},
        "size": 100,
        "modification_time": 5,
        "data_change": True,
        "stats": json.dumps({"numRecords": n}),
    }
    return Add(path=path, **{**defaults, **fields})


def remove(path, **fields):
    return Remove(path=path, **{"data_change": True, "deletion_timestamp": 6, **fields})


def stage(catalog, *actions, **options):
    with catalog.begin() as tx:
        tx.stage_table("t", list(actions), **options)
    return catalog.table("t")


@pytest.fixture
def t(catalog):
    return catalog.create_table("t", SCHEMA)


def test_files_that_exist_already_become_rows(catalog, t, warehouse):
    folder = warehouse / "t" / "imported"
    folder.mkdir(parents=True)
    pq.write_table(pa.table({"n": [1, 2]}), folder / "x y.parquet")
    size = (folder / "x y.parquet").stat().st_size
    table = stage(catalog, add("imported/x%20y.parquet", 2, size=size))

    assert rows(table) == [{"n": 1}, {"n": 2}]
    assert table.count() == 2
    assert table.history(1)[0].operation == "WRITE"


def test_files_may_lie_outside_the_table_by_their_full_path(catalog, t, tmp_path):
    pq.write_table(pa.table({"n": [7]}), tmp_path / "far.parquet")
    path = (tmp_path / "far.parquet").as_uri()
    table = stage(catalog, add(path, size=(tmp_path / "far.parquet").stat().st_size))
    assert rows(table) == [{"n": 7}]
    assert table.files() == table.file_uris() == [path]
    assert stage(catalog, remove(path)).files() == []
    assert (tmp_path / "far.parquet").exists()


def test_every_field_of_an_action_is_kept(catalog):
    catalog.create_table("t", SCHEMA, properties={"delta.enableChangeDataFeed": "true"})
    given = [
        add("a.parquet", 3, tags={"k": "v", "none": None}, extra={"future": {"x": [1]}}),
        add("b.parquet", stats=None),
        Txn(app_id="app", version=4, last_updated=9),
        Cdc(path="_change_data/c.parquet", partition_values={}, size=7, tags={"t": "u"}),
        UnknownAction("futureAction", '{"z":1,"a":[2]}'),
        CommitInfo('{"operation":"IMPORT","zeta":1,"alpha":{"y":2,"b":3}}'),
    ]
    stage(catalog, *given)
    stage(catalog, remove("a.parquet", size=100, partition_values={}, tags={"k": "v"}))

    found = catalog.reader("t").actions(1)
    for action in given:
        assert action in found
    assert len(found) == len(given)
    (gone,) = [a for a in catalog.reader("t").actions(2) if isinstance(a, Remove)]
    assert gone == remove("a.parquet", size=100, partition_values={}, tags={"k": "v"})
    assert catalog.table("t").files() == ["b.parquet"]
    assert catalog.table("t", version=1).files() == ["a.parquet", "b.parquet"]


def test_a_file_without_a_row_count_makes_the_table_count_by_reading(catalog, t, warehouse):
    folder = warehouse / "t"
    folder.mkdir(parents=True)
    pq.write_table(pa.table({"n": [1, 2, 3]}), folder / "x.parquet")
    table = stage(catalog, add("x.parquet", stats=None, size=(folder / "x.parquet").stat().st_size))
    assert table.snapshot.num_records is None
    assert table.count() == 3
    table = stage(catalog, remove("x.parquet"))
    assert table.snapshot.num_records == 0


def test_overwrite_removes_what_was_there(catalog, t):
    stage(catalog, add("a"), add("b"))
    table = stage(catalog, add("c", 5), mode="overwrite", operation="REPLACE", parameters={"x": 1})
    assert table.files() == ["c"]
    assert table.count() == 5
    last = table.history(1)[0]
    assert (last.operation, last.parameters) == ("REPLACE", {"x": 1})


def test_a_data_frame_can_be_staged_too(catalog, t):
    with catalog.begin() as tx:
        tx.stage_table("t", pa.table({"n": [7]}))
        tx.stage_table("t", [{"n": 8}])
    assert rows(catalog.table("t")) == [{"n": 7}, {"n": 8}]


def test_metadata_and_protocol_can_be_staged(catalog, t):
    metadata = msgspec.structs.replace(
        t.metadata(), configuration={"delta.constraints.c": "n > 0"}, description="new"
    )
    protocol = Protocol(min_reader_version=1, min_writer_version=3)
    table = stage(catalog, protocol, metadata)
    assert table.metadata() == metadata
    assert table.protocol() == protocol


def test_a_file_added_again_replaces_itself(catalog, t):
    stage(catalog, add("a", 1), add("b", 1))
    table = stage(catalog, add("a", 10, size=200))
    assert sorted(table.files()) == ["a", "b"]
    assert table.count() == 11
    assert table.snapshot.size_bytes == 300


def test_a_remove_matches_its_add_however_the_path_is_spelled(catalog, t):
    stage(catalog, add("p=x%20y/%C3%A4.parquet"), add("b"))
    table = stage(catalog, remove("p=x%20y/ä.parquet"))
    assert table.files() == ["b"]


def test_deletion_vectors_are_part_of_a_files_identity(catalog, t):
    stage(catalog, TABLE_FEATURES, add("a", 10), add("b", 10))
    vector = DeletionVector(
        storage_type="u",
        path_or_inline_dv="ab^-aqEH.-t@S}K{vb[*k^",
        offset=4,
        size_in_bytes=40,
        cardinality=6,
    )
    table = stage(catalog, remove("a"), add("a", 10, deletion_vector=vector))
    assert sorted(table.files()) == ["a", "b"]
    assert table.count() == 14
    larger = msgspec.structs.replace(vector, offset=50, cardinality=7)
    table = stage(
        catalog, remove("a", deletion_vector=vector), add("a", 10, deletion_vector=larger)
    )
    assert table.count() == 13
    assert catalog.table("t", version=1).count() == 20
    assert catalog.table("t", version=2).count() == 14
    with pytest.raises(TxnLogError, match="a"):
        stage(catalog, remove("a", deletion_vector=vector))
    with pytest.raises(ProtocolError, match="deletionVectors") as caught:
        table.to_arrow()
    assert caught.value.missing == ("deletionVectors",)
    with pytest.raises(ProtocolError, match="deletionVectors"):
        put(catalog, "t", pa.table({"n": [1]}))


def test_domains_come_and_go(catalog, t):
    stage(catalog, TABLE_FEATURES, DomainMetadata(domain="app.one", configuration='{"a": 1}'))
    stage(catalog, DomainMetadata(domain="app.two", configuration="{}"))
    reader = catalog.reader("t")
    assert set(reader.domains(reader.snapshot())) == {"app.one", "app.two"}
    stage(catalog, DomainMetadata(domain="app.one", configuration="", removed=True))
    assert set(reader.domains(reader.snapshot())) == {"app.two"}
    assert reader.domains(reader.snapshot(1))["app.one"].configuration == '{"a": 1}'


BAD = [
    pytest.param([add("a"), add("a")], InvalidCommit, "add per path", id="add twice"),
    pytest.param([add("a"), add("./a")], InvalidCommit, "add per path", id="add twice, spelled"),
    pytest.param([add("x"), remove("x")], InvalidCommit, "same file", id="add and remove"),
    pytest.param([add("../up")], TxnLogError, r"\.\.", id="climbs"),
    pytest.param([add("a/../../up")], TxnLogError, r"\.\.", id="climbs inside"),
    pytest.param([add("%2E%2E/up")], TxnLogError, "up", id="climbs encoded"),
    pytest.param([remove("../up")], TxnLogError, r"\.\.", id="remove climbs"),
    pytest.param([Cdc(path="../c", partition_values={}, size=1)], TxnLogError, r"\.\.", id="cdc"),
    pytest.param([add("")], TxnLogError, "path", id="no path"),
    pytest.param([add("a", size=-1)], InvalidCommit, "negative", id="negative size"),
    pytest.param([add("a", partition_values={"p": "x"})], InvalidCommit, "partition", id="values"),
    pytest.param([remove("never")], TxnLogError, "never", id="not live"),
    pytest.param([Txn(app_id="x", version=1)] * 2, InvalidCommit, "txn", id="txn twice"),
    pytest.param([CommitInfo("{}")] * 2, InvalidCommit, "commitInfo", id="info twice"),
    pytest.param(
        [Protocol(min_reader_version=1, min_writer_version=2)] * 2,
        InvalidCommit,
        "protocol",
        id="protocol twice",
    ),
    pytest.param(
        [DomainMetadata(domain="d", configuration="")] * 2,
        InvalidCommit,
        "domain",
        id="domain twice",
    ),
    pytest.param(
        [DomainMetadata(domain="d", configuration="")],
        TxnLogError,
        "domainMetadata",
        id="domain without the feature",
    ),
    pytest.param(
        [
            add(
                "a",
                deletion_vector=DeletionVector(
                    storage_type="i", path_or_inline_dv="x", size_in_bytes=1, cardinality=1
                ),
            )
        ],
        TxnLogError,
        "deletionVectors",
        id="vector without the feature",
    ),
    pytest.param(
        [Protocol(min_reader_version=9, min_writer_version=9)],
        TxnLogError,
        "9",
        id="newer protocol",
    ),
    pytest.param(
        [
            Protocol(
                min_reader_version=3,
                min_writer_version=7,
                reader_features=("quantumPages",),
                writer_features=("quantumPages",),
            )
        ],
        ProtocolError,
        "quantumPages",
        id="unknown feature",
    ),
    pytest.param(
        [Protocol(min_reader_version=3, min_writer_version=7)],
        TxnLogError,
        "readerFeatures",
        id="no lists",
    ),
    pytest.param([add("a"), "not an action"], TxnLogError, "str", id="not an action"),
    pytest.param([add("a", stats="{not json")], InvalidCommit, "stats", id="broken stats"),
    pytest.param([add("a", stats="[]")], InvalidCommit, "stats", id="stats of no use"),
    pytest.param([add("a", -5)], InvalidCommit, "stats", id="negative count"),
    pytest.param(
        [Cdc(path="_change_data/c", partition_values={}, size=1)],
        InvalidCommit,
        "changeDataFeed",
        id="cdc without the feature",
    ),
]


@pytest.mark.parametrize(("actions", "error", "reason"), BAD)
def test_actions_that_delta_forbids_are_refused(catalog, t, unchanged, actions, error, reason):
    stage(catalog, add("x"))
    with unchanged(), pytest.raises(error, match=reason):
        stage(catalog, *actions)


def test_a_schema_that_delta_forbids_is_refused(catalog, t, unchanged):
    def metadata(**changes):
        return msgspec.structs.replace(t.metadata(), **changes)

    fields = '{"name":"%s","type":"%s","nullable":true,"metadata":{}}'
    struct = '{"type":"struct","fields":[%s]}'
    with unchanged():
        for bad in (
            metadata(schema_string=struct % ",".join([fields % ("a", "long")] * 2)),
            metadata(schema_string=struct % (fields % ("a", "hologram"))),
            metadata(schema_string="nonsense"),
            metadata(partition_columns=("nope",)),
            metadata(configuration={"delta.enableDeletionVectors": "true"}),
        ):
            with pytest.raises(TxnLogError):
                stage(catalog, bad)


def test_nobody_edits_the_domains_of_delta_itself(catalog, unchanged):
    catalog.create_table("t", SCHEMA, properties={"delta.enableRowTracking": "true"})
    mark = DomainMetadata(domain="delta.rowTracking", configuration='{"rowIdHighWaterMark":1}')
    with unchanged(), pytest.raises(TxnLogError, match="delta"):
        stage(catalog, mark)


def test_an_append_only_table_takes_removes_that_change_no_data(catalog, unchanged):
    catalog.create_table("t", SCHEMA, properties={"delta.appendOnly": "true"})
    stage(catalog, add("a"), add("b"))
    with unchanged(), pytest.raises(InvalidCommit, match="append-only"):
        stage(catalog, remove("a"))
    compacted = [remove(p, data_change=False) for p in "ab"] + [add("ab", 2, data_change=False)]
    assert stage(catalog, *compacted).files() == ["ab"]


# --- row tracking, in-commit timestamps -----------------------------------------------------------


def row_ids(catalog, version):
    return [
        (a.base_row_id, a.default_row_commit_version)
        for a in catalog.reader("t").actions(version)
        if isinstance(a, Add)
    ]


def high_water_mark(catalog):
    reader = catalog.reader("t")
    domain = reader.domains(reader.snapshot()).get("delta.rowTracking")
    return json.loads(domain.configuration)["rowIdHighWaterMark"] if domain else None


def test_rows_get_ids_that_are_never_given_twice(catalog, unchanged):
    catalog.create_table("t", SCHEMA, properties={"delta.enableRowTracking": "true"})
    stage(catalog, add("a", 10), add("b", 5))
    assert row_ids(catalog, 1) == [(0, 1), (10, 1)]
    assert high_water_mark(catalog) == 14
    catalog.table("t").delete()
    put(catalog, "t", pa.table({"n": [1, 2, 3]}))
    assert row_ids(catalog, 3) == [(15, 3)]
    assert high_water_mark(catalog) == 17
    with unchanged(), pytest.raises(InvalidCommit, match="numRecords"):
        stage(catalog, add("c", stats=None))


def test_row_tracking_comes_with_names_for_its_columns(catalog):
    names = [
        f"delta.rowTracking.materialized{kind}ColumnName" for kind in ("RowId", "RowCommitVersion")
    ]
    made = catalog.create_table("made", SCHEMA, properties={"delta.enableRowTracking": "TRUE"})
    later = catalog.create_table("later", SCHEMA)
    later.alter.set_table_properties({"delta.enableRowTracking": True})
    for table in (made, later):
        configuration = table.metadata().configuration
        assert configuration["delta.enableRowTracking"] == "true"
        assert len({configuration[name] for name in names} - set(table.schema().names)) == 2
    before = later.metadata().configuration
    later.alter.set_table_properties({"team": "x"})
    assert later.metadata().configuration == {**before, "team": "x"}


def test_turning_row_tracking_on_numbers_the_rows_that_are_there(catalog):
    put(catalog, "t", pa.table({"n": [1, 2, 3]}))
    put(catalog, "t", pa.table({"n": [4, 5]}))
    table = catalog.table("t")
    files = table.files()
    table.alter.set_table_properties({"delta.enableRowTracking": "true"})

    assert sorted(table.files()) == sorted(files)
    assert [r["n"] for r in rows(table)] == [1, 2, 3, 4, 5]
    assert table.count() == 5
    assert row_ids(catalog, 2) == [(0, 2), (3, 2)]
    assert all(not a.data_change for a in catalog.reader("t").actions(2) if isinstance(a, Add))
    assert high_water_mark(catalog) == 4
    put(catalog, "t", pa.table({"n": [6]}))
    assert row_ids(catalog, 3) == [(5, 3)]
    assert catalog.table("t", version=1).count() == 5


def test_row_ids_are_given_anew_when_a_commit_is_rebased(catalog):
    catalog.create_table("t", SCHEMA, properties={"delta.enableRowTracking": "true"})
    first, second = catalog.begin(), catalog.begin()
    first.stage_table("t", [add("a", 10)])
    second.stage_table("t", [add("b", 5)])
    second.commit()
    first.commit()
    assert row_ids(catalog, 1) == [(0, 1)]
    assert row_ids(catalog, 2) == [(5, 2)]
    assert high_water_mark(catalog) == 14


def test_in_commit_timestamps_stand_first_and_only_grow(catalog, clock):
    catalog.create_table("t", SCHEMA, properties={"delta.enableInCommitTimestamps": "true"})
    clock.advance(-10_000)
    put(catalog, "t", pa.table({"n": [1]}))
    stage(catalog, add("b"), CommitInfo('{"operation":"X","inCommitTimestamp":1}'))
    times = []
    for version in range(3):
        info = catalog.reader("t").actions(version)[0]
        assert isinstance(info, CommitInfo)
        assert next(iter(info.as_dict())) == "inCommitTimestamp"
        times.append(info.as_dict()["inCommitTimestamp"])
    assert times == sorted(set(times))
    assert times == [r.timestamp for r in catalog.table("t").history()][::-1]
    assert catalog.table("t").metadata().configuration == {"delta.enableInCommitTimestamps": "true"}


def test_turning_in_commit_timestamps_on_records_since_when(catalog, clock):
    catalog.create_table("t", SCHEMA)
    put(catalog, "t", pa.table({"n": [1]}))
    now = clock.advance(60_000)
    catalog.table("t").alter.set_table_properties({"delta.enableInCommitTimestamps": "true"})
    configuration = catalog.table("t").metadata().configuration
    assert configuration["delta.inCommitTimestampEnablementVersion"] == "2"
    assert configuration["delta.inCommitTimestampEnablementTimestamp"] == str(now)
    put(catalog, "t", pa.table({"n": [2]}))
    assert catalog.table("t").metadata().configuration == configuration
    first = catalog.reader("t").actions(1)[0]
    assert "inCommitTimestamp" not in first.as_dict()


def test_commit_info_tells_who_did_what(catalog):
    with catalog.begin(message="why") as tx:
        tx.create_table("t", SCHEMA)
    info = catalog.reader("t").actions(0)[0].as_dict()
    assert info["operation"] == "CREATE TABLE"
    assert info["txnId"] == tx.transaction_id
    assert info["userMetadata"] == "why"
    assert info["engineInfo"].startswith("deltalakedb/")
    kinds = [type(a) for a in catalog.reader("t").actions(0)]
    assert kinds == [CommitInfo, Protocol, Metadata]
