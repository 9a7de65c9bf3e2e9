"""The reader of plain logs, on logs written by hand."""

from __future__ import annotations

import json
import os
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deltalakedb.errors import (
    CorruptLog,
    ProtocolError,
    TableNotFound,
    VersionNotFound,
)
from deltalakedb.log.files import FileTxnLogReader
from deltalakedb.log.files_schema import files_schema
from deltalakedb.model.actions import Add, CommitInfo
from deltalakedb.model.expr import parse

MAPS = pa.map_(pa.string(), pa.string())
COLUMNS = [("id", "long"), ("name", "string"), ("part", "string")]


def protocol(reader: int = 1, writer: int = 2, **features: list[str]) -> dict[str, Any]:
    return {"protocol": {"minReaderVersion": reader, "minWriterVersion": writer, **features}}


def features(*names: str, writer: tuple[str, ...] = ()) -> dict[str, Any]:
    return protocol(3, 7, readerFeatures=[*names], writerFeatures=[*names, *writer])


def metadata(**configuration: str) -> dict[str, Any]:
    fields = [{"name": n, "type": t, "nullable": True, "metadata": {}} for n, t in COLUMNS]
    return {
        "metaData": {
            "id": "5fba94ed-9794-4965-ba6e-6ee3c0d22af9",
            "format": {"provider": "parquet", "options": {}},
            "schemaString": json.dumps({"type": "struct", "fields": fields}),
            "partitionColumns": ["part"],
            "configuration": configuration,
        }
    }


def add(path: str, low: int = 0, high: int = 9, part: str | None = None, **more: Any) -> dict:
    stats = {
        "numRecords": 10,
        "minValues": {"id": low, "name": f"n{low}"},
        "maxValues": {"id": high, "name": f"n{high}"},
        "nullCount": {"id": 0, "name": 0},
    }
    return {
        "add": {
            "path": path,
            "partitionValues": {"part": part},
            "size": 100,
            "modificationTime": 1,
            "dataChange": True,
            "stats": json.dumps(stats),
            **more,
        }
    }


def remove(path: str, **more: Any) -> dict[str, Any]:
    return {"remove": {"path": path, "deletionTimestamp": 2, "dataChange": True, **more}}


def vector(path: str, cardinality: int, offset: int | None = 1) -> dict[str, Any]:
    return {
        "deletionVector": {
            "storageType": "u",
            "pathOrInlineDv": path,
            "offset": offset,
            "sizeInBytes": 40,
            "cardinality": cardinality,
        }
    }


class Log:
    """A table's log under construction."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folder = root / "_delta_log"
        self.folder.mkdir(parents=True)

    def commit(self, version: int, *actions: dict[str, Any], at: int | None = None) -> Path:
        file = self.folder / f"{version:020}.json"
        file.write_text("".join(json.dumps(action) + "\n" for action in actions))
        if at is not None:
            os.utime(file, ns=(at * 10**6, at * 10**6))
        return file

    def create(self, *more: dict[str, Any], **configuration: str) -> None:
        self.commit(0, protocol(), metadata(**configuration), *more)

    def checkpoint(self, name: str, *actions: dict[str, Any], schema: pa.Schema) -> Path:
        file = self.folder / name
        file.parent.mkdir(exist_ok=True)
        rows = [{k: a.get(k) for k in schema.names} for a in actions]
        pq.write_table(pa.Table.from_pylist(rows, schema), file)
        return file

    @property
    def reader(self) -> FileTxnLogReader:
        return FileTxnLogReader(str(self.root))

    def paths(self, version: int | None = None, where: str | None = None) -> set[str]:
        reader = self.reader
        snapshot = reader.snapshot(version)
        expr = None if where is None else parse(where, snapshot.schema)
        return set(reader.files(snapshot, expr, columns=["path"]).read_all()["path"].to_pylist())


@pytest.fixture
def log(tmp_path) -> Log:
    return Log(tmp_path / "my table")


VECTOR = pa.struct(
    [
        ("storageType", pa.string()),
        ("pathOrInlineDv", pa.string()),
        ("offset", pa.int32()),
        ("sizeInBytes", pa.int32()),
        ("cardinality", pa.int64()),
    ]
)
FILE = [
    ("path", pa.string()),
    ("partitionValues", MAPS),
    ("size", pa.int64()),
    ("modificationTime", pa.int64()),
    ("dataChange", pa.bool_()),
    ("stats", pa.string()),
    ("deletionVector", VECTOR),
]
FEATURES = pa.list_(pa.string())
PROTOCOL = pa.struct(
    [
        ("minReaderVersion", pa.int32()),
        ("minWriterVersion", pa.int32()),
        ("readerFeatures", FEATURES),
        ("writerFeatures", FEATURES),
    ]
)
FORMAT = pa.struct([("provider", pa.string()), ("options", MAPS)])
METADATA = pa.struct(
    [
        ("id", pa.string()),
        ("format", FORMAT),
        ("schemaString", pa.string()),
        ("partitionColumns", FEATURES),
        ("configuration", MAPS),
    ]
)
TXN = pa.struct([("appId", pa.string()), ("version", pa.int64())])
DOMAIN = pa.struct(
    [("domain", pa.string()), ("configuration", pa.string()), ("removed", pa.bool_())]
)
SIDECAR = pa.struct(
    [("path", pa.string()), ("sizeInBytes", pa.int64()), ("modificationTime", pa.int64())]
)
OTHERS = [("protocol", PROTOCOL), ("metaData", METADATA), ("txn", TXN), ("domainMetadata", DOMAIN)]
CHECKPOINT = pa.schema([*OTHERS, ("add", pa.struct(FILE))])
BASE = (protocol(), metadata())


# --- opening --------------------------------------------------------------------------------------


def test_newest_version(log):
    log.create(add("a", part="x"), add("b", part="y"))
    log.commit(1, remove("a"), add("c"))
    snapshot = log.reader.snapshot()
    assert (snapshot.version, snapshot.num_files, snapshot.size_bytes) == (1, 2, 200)
    assert snapshot.num_records == 20
    assert snapshot.location == (log.root).as_uri()
    assert snapshot.schema.names == ["id", "name", "part"]
    assert log.paths() == {"b", "c"}
    assert log.paths(0) == {"a", "b"}
    assert log.reader.version_range() == (0, 1)


def test_files_have_every_column(log):
    tags = {"tags": {"k": "v"}, "baseRowId": 5, "defaultRowCommitVersion": 0}
    log.create(add("a", part="é", **tags, clusteringProvider="liquid", **vector("dv", 3)))
    reader = log.reader
    table = reader.files(reader.snapshot()).read_all()
    assert table.schema == files_schema()
    row = table.to_pylist()[0]
    assert json.loads(row.pop("stats"))["numRecords"] == 10
    assert row == {
        "path": "a",
        "partition_values": '{"part":"é"}',
        "size": 100,
        "modification_time": 1,
        "data_change": True,
        "tags": '{"k":"v"}',
        "dv_storage_type": "u",
        "dv_path": "dv",
        "dv_offset": 1,
        "dv_size": 40,
        "dv_cardinality": 3,
        "base_row_id": 5,
        "default_row_commit_version": 0,
        "clustering_provider": "liquid",
        "num_records": 10,
    }
    chosen = reader.files(reader.snapshot(), columns=["size", "path"]).read_all()
    assert chosen.schema == files_schema(["size", "path"])


def test_a_table_without_files(log):
    log.create()
    snapshot = log.reader.snapshot()
    assert (snapshot.num_files, snapshot.size_bytes, snapshot.num_records) == (0, 0, 0)
    assert log.paths() == set()


def test_rows_are_counted_less_deleted_ones_if_all_are_known(log):
    log.create(add("a"), add("b", **vector("dv", 4)))
    log.commit(1, add("c", stats=None))
    log.commit(2, add("d", stats="{broken"))
    assert log.reader.snapshot(0).num_records == 16
    assert log.reader.snapshot(1).num_records is None
    assert log.reader.snapshot(2).num_records is None


def test_deletion_vectors_tell_files_apart(log):
    log.create(add("a"))
    log.commit(1, remove("a"), add("a", **vector("v1", 1)))
    log.commit(2, remove("a", **vector("v1", 1)), add("a", **vector("v1", 2, offset=9)))
    reader = log.reader
    files = reader.files(reader.snapshot()).read_all().to_pylist()
    assert [(f["path"], f["dv_path"], f["dv_offset"]) for f in files] == [("a", "v1", 9)]


def test_spellings_of_a_path_are_one_file(log):
    inside = f"{log.root.as_uri()}/p%3D1/a%20b"
    log.create(add("p=1/a%20b"), add("file:/elsewhere/x"), add("c"))
    log.commit(1, remove(inside), remove("/elsewhere/x"), remove("./c"))
    assert log.paths() == set()


def test_new_commits_are_seen(log):
    log.create()
    reader = log.reader
    assert reader.snapshot().version == 0
    log.commit(1, add("a"))
    assert reader.snapshot().version == 1
    assert reader.files(reader.snapshot(0)).read_all().num_rows == 0


def test_transactions_and_domains(log):
    log.create({"txn": {"appId": "etl", "version": 4}})
    domain = {"domain": "d", "configuration": "{}", "removed": False}
    log.commit(1, {"txn": {"appId": "etl", "version": 7}}, {"domainMetadata": domain})
    log.commit(2, {"domainMetadata": {**domain, "removed": True}})
    reader = log.reader
    assert [reader.txn_version("etl", reader.snapshot(v)) for v in range(3)] == [4, 7, 7]
    assert reader.txn_version("other", reader.snapshot()) is None
    assert [sorted(reader.domains(reader.snapshot(v))) for v in range(3)] == [[], ["d"], []]


def test_actions_and_history(log):
    info = {
        "operation": "WRITE",
        "operationParameters": {"mode": "Append"},
        "readVersion": 0,
        "isolationLevel": "Serializable",
        "isBlindAppend": True,
        "userName": "me",
        "userMetadata": "why",
        "txnId": "t-1",
    }
    log.create()
    log.commit(1, {"commitInfo": info}, add("a"), {"newAction": {"x": 1}}, at=5_000)
    reader = log.reader
    kinds = [type(action).__name__ for action in reader.actions(1)]
    assert kinds == ["CommitInfo", "Add", "UnknownAction"]
    newest, oldest = reader.history()
    assert (newest.operation, newest.parameters) == ("WRITE", {"mode": "Append"})
    assert (newest.committer, newest.message, newest.transaction_id) == ("me", "why", "t-1")
    assert (newest.read_version, newest.is_blind_append) == (0, True)
    assert newest.isolation_level == "Serializable"
    assert (oldest.version, oldest.operation, oldest.commit_info) == (0, None, {})
    assert reader.history(limit=1) == [newest]
    with pytest.raises(VersionNotFound):
        reader.actions(2)


# --- refusals -------------------------------------------------------------------------------------


def corrupt(log: Log, version: int | None = None) -> CorruptLog:
    with pytest.raises(CorruptLog) as caught:
        log.reader.snapshot(version)
    assert log.root.as_uri() in str(caught.value)
    return caught.value


def test_no_table(tmp_path):
    with pytest.raises(TableNotFound) as caught:
        FileTxnLogReader(str(tmp_path / "nowhere")).snapshot()
    assert caught.value.table == (tmp_path / "nowhere").as_uri()


def test_a_log_with_other_files_only(log):
    for name in ("00000000000000000000.crc", "_last_checkpoint", "1.json", "x.checkpoint.parquet"):
        (log.folder / name).write_text("{}")
    with pytest.raises(TableNotFound):
        log.reader.snapshot()


@pytest.mark.parametrize("missing", [0, 1, 2])
def test_gaps(log, missing):
    log.create()
    for version in range(1, 4):
        log.commit(version, add(f"f{version}"))
    (log.folder / f"{missing:020}.json").unlink()
    error = corrupt(log)
    assert (error.version, error.file) == (missing, f"_delta_log/{missing:020}.json")
    assert "missing" in error.reason


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "empty"),
        ("\n \n", "empty"),
        ('{"add": {"path": "a"', "line 1"),
        ('{"commitInfo":{}}\nnot json\n', "line 2"),
        ('{"add":{"path":"a"}}', "add"),
        ('{"add":{"path":"a","partitionValues":{},"size":"big"}}', "add"),
        ("[]", "line 1"),
        ("\ufeff{}", "line 1"),
    ],
)
def test_broken_commits(log, text, reason):
    log.create()
    file = log.commit(1)
    file.write_text(text)
    error = corrupt(log)
    assert (error.version, error.file) == (1, f"_delta_log/{file.name}")
    assert reason in error.reason
    assert log.reader.snapshot(0).version == 0


def test_bytes_that_are_no_text(log):
    log.create()
    log.commit(1).write_bytes(b'{"add":{"path":"\xff\xfe"}}')
    assert corrupt(log).version == 1


def test_one_commit_adds_and_removes_a_file(log):
    log.create()
    log.commit(1, add("a"), remove("a"))
    log.commit(2, add("b"))
    error = corrupt(log)
    assert (error.version, error.file) == (1, "_delta_log/00000000000000000001.json")


@pytest.mark.parametrize(
    ("actions", "reason"),
    [
        ([metadata()], "protocol"),
        ([protocol()], "metaData"),
        ([protocol(3, 7), metadata()], "readerFeatures"),
        ([protocol(3, 2, readerFeatures=[]), metadata()], "writer version 7"),
        ([features("catalogManaged"), metadata()], "inCommitTimestamp"),
    ],
)
def test_protocol_and_metadata_must_be_right(log, actions, reason):
    log.commit(0, *actions)
    error = corrupt(log)
    assert (error.version, error.file) == (0, "_delta_log/00000000000000000000.json")
    assert reason in error.reason


def test_a_schema_that_is_none(log):
    broken = metadata()
    broken["metaData"]["schemaString"] = '{"type":"struct"'
    log.commit(0, protocol(), broken)
    assert "schemaString" in corrupt(log).reason


@pytest.mark.parametrize(
    ("needed", "missing"),
    [
        (features("timeMachine", "deletionVectors"), ("timeMachine",)),
        (protocol(4, 7), ("reader version 4",)),
        (features("catalogManaged", writer=("inCommitTimestamp",)), ("catalogManaged",)),
    ],
)
def test_unknown_features_are_named(log, needed, missing):
    log.create(add("a"))
    log.commit(1, needed)
    with pytest.raises(ProtocolError) as caught:
        log.reader.snapshot()
    assert caught.value.missing == missing
    assert caught.value.operation == "read"
    assert log.reader.snapshot(0).version == 0


def test_features_for_writers_only_do_not_matter(log):
    log.commit(0, features(writer=("rowTracking", "domainMetadata", "timeMachine")), metadata())
    assert log.reader.snapshot().version == 0


# --- checkpoints ----------------------------------------------------------------------------------

CLASSIC = "00000000000000000002.checkpoint.parquet"


def write_checkpoint(log: Log, kind: str, *actions: dict[str, Any]) -> None:
    """A checkpoint of version 2."""
    head, uuid = "00000000000000000002.checkpoint", UUID(int=7)
    files = [a for a in actions if "add" in a]
    others = [a for a in actions if "add" not in a]
    name = "part %1.parquet"
    sidecar = {"path": "part%20%251.parquet", "sizeInBytes": 1, "modificationTime": 1}
    marked = {"checkpointMetadata": {"version": 2}}
    if kind == "classic":
        log.checkpoint(CLASSIC, *actions, schema=CHECKPOINT)
    elif kind == "multi-part":
        half = len(actions) // 2
        for part, rows in enumerate((actions[:half], actions[half:]), start=1):
            log.checkpoint(f"{head}.{part:010}.{2:010}.parquet", *rows, schema=CHECKPOINT)
    elif kind == "v2 json":
        lines = [marked, *actions]
        (log.folder / f"{head}.{uuid}.json").write_text("\n".join(map(json.dumps, lines)))
    else:
        schema = pa.schema([*OTHERS, ("sidecar", SIDECAR)])
        lines = [*others, {"sidecar": sidecar}]
        if kind == "v2 json with sidecars":
            text = "\n".join(map(json.dumps, [marked, *lines]))
            (log.folder / f"{head}.{uuid}.json").write_text(text)
        elif kind == "v2 classic with sidecars":
            log.checkpoint(CLASSIC, *lines, schema=schema)
        else:
            log.checkpoint(f"{head}.{uuid}.parquet", *lines, schema=schema)
        log.checkpoint(f"_sidecars/{name}", *files, schema=pa.schema([("add", pa.struct(FILE))]))


KINDS = [
    "classic",
    "multi-part",
    "v2 json",
    "v2 json with sidecars",
    "v2 parquet with sidecars",
    "v2 classic with sidecars",
]


@pytest.mark.parametrize("commits", ["all", "later"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_checkpoint(log, kind, commits):
    domain = {"domain": "d", "configuration": "{}", "removed": False}
    kept = [add("a b", part="x"), add("c"), add("d", **vector("v", 2))]
    others = [{"txn": {"appId": "etl", "version": 3}}, {"domainMetadata": domain}]
    if commits == "all":
        log.create(*kept)
        log.commit(1, *others)
        log.commit(2, {"commitInfo": {}})
    write_checkpoint(log, kind, *BASE, *others, *kept)
    log.commit(3, remove("./a%20b"), remove("d", **vector("v", 2)), add("d"))
    reader = log.reader
    assert reader.version_range() == (0 if commits == "all" else 2, 3)
    at_checkpoint, snapshot = reader.snapshot(2), reader.snapshot()
    assert (at_checkpoint.num_files, at_checkpoint.num_records) == (3, 28)
    assert log.paths(2) == {"a b", "c", "d"}
    assert log.paths() == {"c", "d"}
    assert snapshot.num_records == 20
    assert reader.txn_version("etl", snapshot) == 3
    assert list(reader.domains(snapshot)) == ["d"]
    row = next(f for f in reader.files(at_checkpoint).read_all().to_pylist() if f["path"] == "a b")
    assert (row["partition_values"], row["size"], row["tags"]) == ('{"part":"x"}', 100, None)


def test_a_checkpoint_without_files(log):
    write_checkpoint(log, "classic", *BASE)
    log.commit(3, remove("never there"), add("a"))
    assert log.paths(2) == set()
    assert log.paths() == {"a"}


def test_only_complete_checkpoints_count(log):
    log.create(add("a"))
    log.commit(1, add("b"))
    head = "00000000000000000001.checkpoint"
    wrong = [protocol(), metadata(), add("wrong")]
    log.checkpoint(f"{head}.{1:010}.{2:010}.parquet", *wrong, schema=CHECKPOINT)
    log.checkpoint(f"{head}.{2:010}.{3:010}.parquet", *wrong, schema=CHECKPOINT)
    assert log.paths() == {"a", "b"}


@pytest.mark.parametrize(
    "hint", ["", "{broken", '{"version":1}', '{"version":99,"size":1}', '{"version":"x"}', None]
)
def test_the_last_checkpoint_file_does_not_matter(log, hint):
    log.create(add("a"))
    log.commit(1)
    write_checkpoint(log, "classic", *BASE, add("a"), add("b"))
    log.commit(3, add("c"))
    if hint is not None:
        (log.folder / "_last_checkpoint").write_text(hint)
    assert log.paths() == {"a", "b", "c"}


def test_an_older_version_needs_an_older_checkpoint(log):
    log.create(add("a"))
    log.commit(1, add("b"))
    log.commit(2, add("c"))
    write_checkpoint(log, "classic", *BASE, add("a"), add("b"), add("c"))
    assert log.paths(1) == {"a", "b"}


def test_log_compaction_files_are_passed_over(log):
    log.create(add("a"))
    log.commit(1, add("b"))
    (log.folder / f"{0:020}.{1:020}.compacted.json").write_text("not even json")
    assert log.paths() == {"a", "b"}


def truncate(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-20])


@pytest.mark.parametrize("damage", [truncate, lambda f: f.write_bytes(b""), Path.unlink])
@pytest.mark.parametrize("kind", ["classic", "v2 parquet with sidecars"])
def test_damaged_checkpoints(log, kind, damage):
    write_checkpoint(log, kind, *BASE, add("a"))
    log.commit(3, add("b"))
    file = next(log.folder.glob("_sidecars/*" if kind != "classic" else "*.checkpoint.parquet"))
    damage(file)
    error = corrupt(log)
    if file.exists() or kind != "classic":
        assert (error.version, error.file) == (2, f"_delta_log/{file.relative_to(log.folder)}")


@pytest.mark.parametrize(
    ("actions", "reason"),
    [
        ([metadata(), add("a")], "no protocol"),
        ([protocol(), add("a")], "no metaData"),
        ([*BASE, add("a", size=None)], "no size"),
        ([*BASE, add("a", partitionValues=None)], "no partition_values"),
        ([*BASE, add("a"), add("b"), add("a")], "twice"),
    ],
)
def test_checkpoints_that_lack_something(log, actions, reason):
    write_checkpoint(log, "classic", *actions)
    error = corrupt(log)
    assert (error.version, error.file) == (2, f"_delta_log/{CLASSIC}")
    assert reason in error.reason


@pytest.mark.parametrize("timestamps", ["int64", "int96"])
def test_statistics_that_are_columns(log, timestamps):
    values = pa.struct(
        [
            ("id", pa.int64()),
            ("name", pa.string()),
            ("price", pa.decimal128(20, 2)),
            ("day", pa.date32()),
            ("at", pa.timestamp("us", "UTC" if timestamps == "int64" else None)),
            ("ratio", pa.float32()),
            ("raw", pa.binary()),
            ("inner", pa.struct([("flag", pa.bool_())])),
        ]
    )
    parsed = pa.struct([("numRecords", pa.int64()), ("minValues", values), ("maxValues", values)])
    zone = UTC if timestamps == "int64" else None
    known = {
        "id": 1,
        "name": 'a"b',
        "price": Decimal("12345678901234567.89"),
        "day": date(1, 2, 3),
        "at": datetime(1, 2, 3, 4, 5, 6, 789, tzinfo=zone),
        "ratio": float("nan"),
        "raw": b"\0",
        "inner": {"flag": True},
    }
    both = {"numRecords": 5, "minValues": known, "maxValues": None}
    some = {"numRecords": 6, "minValues": {"ratio": 0.1}}
    add_type = pa.struct([*FILE, ("stats_parsed", parsed)])
    schema = pa.schema([*OTHERS, ("add", add_type)])
    actions = [
        *BASE,
        add("a", stats=None, stats_parsed=both),
        add("b", stats=None, stats_parsed=some),
        add("c", stats_parsed=both),
        add("d", stats=None),
    ]
    table = pa.Table.from_pylist([{k: a.get(k) for k in schema.names} for a in actions], schema)
    int96 = {"use_deprecated_int96_timestamps": timestamps == "int96"}
    pq.write_table(table, log.folder / CLASSIC, **int96)
    reader = log.reader
    stats = {f["path"]: f["stats"] for f in reader.files(reader.snapshot()).read_all().to_pylist()}
    assert json.loads(stats["a"], parse_float=Decimal) == {
        "numRecords": 5,
        "minValues": {
            "id": 1,
            "name": 'a"b',
            "price": Decimal("12345678901234567.89"),
            "day": "0001-02-03",
            "at": "0001-02-03T04:05:06.000789Z",
            "ratio": "NaN",
            "inner": {"flag": True},
        },
    }
    assert json.loads(stats["b"])["minValues"] == {"ratio": 0.10000000149011612}
    assert json.loads(stats["c"])["numRecords"] == 10
    assert stats["d"] is None


# --- pruning --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["commits", "checkpoint"])
@pytest.mark.parametrize(
    ("where", "kept"),
    [
        ("part = 'x'", {"a", "b"}),
        ("part is null", {"d"}),
        ("part in ('x', 'y') and id > 15", {"b", "c", "e"}),
        ("id = 12", {"b", "e"}),
        ("id < 0", {"e"}),
        ("id = 5 or part = 'y'", {"a", "c", "d", "e"}),
        ("name = 'n3'", {"a", "b", "c", "d", "e"}),
        ("name > 'z'", {"e"}),
        ("id is null", {"e"}),
        ("abs(id) = 1", {"a", "b", "c", "d", "e"}),
        ("false", set()),
    ],
)
def test_pruning(log, kind, where, kept):
    files = [
        add("a", 0, 9, part="x"),
        add("b", 10, 40, part="x"),
        add("c", 20, 50, part="y"),
        add("d", 0, 5, part=None),
        add("e", part="y", stats=None),
    ]
    if kind == "commits":
        log.create(*files)
    else:
        write_checkpoint(log, "classic", *BASE, *files)
    assert log.paths(where=where) == kept


# --- time travel ----------------------------------------------------------------------------------


def test_versions_outside_the_range(log):
    log.create()
    log.commit(1, at=10**12)
    for version in (-1, 2):
        with pytest.raises(VersionNotFound) as caught:
            log.reader.snapshot(version)
        facts = caught.value
        assert (facts.version, facts.earliest, facts.latest) == (version, 0, 1)
        assert "versions 0 to 1" in str(facts)


def test_times_of_files_are_made_to_increase(log):
    for version, at in enumerate([1000, 5000, 3000, 3000, 9000]):
        actions = (protocol(), metadata()) if version == 0 else (add(f"f{version}"),)
        log.commit(version, *actions, at=at)
    reader = log.reader
    times = [reader.snapshot(version).timestamp for version in range(5)]
    assert times == [1000, 5000, 5001, 5002, 9000]
    asked = [1000, 4999, 5000, 5001, 8999, 9000, 10**15]
    assert [reader.snapshot(timestamp=t).version for t in asked] == [0, 0, 1, 2, 3, 4, 4]
    with pytest.raises(VersionNotFound) as caught:
        reader.snapshot(timestamp=999)
    assert (caught.value.timestamp, caught.value.earliest_timestamp) == (999, 1000)
    assert caught.value.latest_timestamp == 9000
    assert "1970-01-01T00:00:01.000Z" in str(caught.value)


def timed(at: int | None) -> dict[str, Any]:
    return {"commitInfo": {} if at is None else {"inCommitTimestamp": at}}


TIMED = features(writer=("inCommitTimestamp",))
ENABLED = {"delta.enableInCommitTimestamps": "true"}


def test_in_commit_timestamps_from_the_start(log):
    log.commit(0, timed(1000), TIMED, metadata(**ENABLED), at=77)
    log.commit(1, timed(2000), at=50)
    reader = log.reader
    assert [reader.snapshot(v).timestamp for v in range(2)] == [1000, 2000]
    assert [r.timestamp for r in reader.history()] == [2000, 1000]
    assert [reader.snapshot(timestamp=t).version for t in (1000, 1999, 2000)] == [0, 0, 1]
    with pytest.raises(VersionNotFound) as caught:
        reader.snapshot(timestamp=999)
    assert (caught.value.earliest_timestamp, caught.value.latest_timestamp) == (1000, 2000)


def test_in_commit_timestamps_switched_on_later(log):
    since = {
        "delta.inCommitTimestampEnablementVersion": "2",
        "delta.inCommitTimestampEnablementTimestamp": "5000",
    }
    # A file written late, and times in commits that do not count yet.
    log.commit(0, timed(1), protocol(), metadata(), at=3000)
    log.commit(1, timed(2), add("a"), at=4000)
    log.commit(2, timed(5000), TIMED, metadata(**ENABLED, **since), at=90_000)
    log.commit(3, timed(6000), add("b"), at=80_000)
    reader = log.reader
    assert [reader.snapshot(v).timestamp for v in range(4)] == [3000, 4000, 5000, 6000]
    assert [r.timestamp for r in reader.history()] == [6000, 5000, 4000, 3000]
    asked = [3000, 4000, 4999, 5000, 5999, 6000, 85_000]
    assert [reader.snapshot(timestamp=t).version for t in asked] == [0, 1, 1, 2, 2, 3, 3]


def test_a_property_without_the_feature_means_nothing(log):
    log.commit(0, timed(1000), protocol(), metadata(**ENABLED), at=77)
    assert log.reader.snapshot().timestamp == 77


def test_preview_of_in_commit_timestamps(log):
    preview = features(writer=("inCommitTimestamp-preview",))
    enabled = {"delta.enableInCommitTimestamps-preview": "true"}
    log.commit(0, timed(1000), preview, metadata(**enabled), at=77)
    assert log.reader.snapshot().timestamp == 1000


@pytest.mark.parametrize(
    ("info", "configuration", "reason"),
    [
        (timed(None), {}, "inCommitTimestamp"),
        (timed(5), {"delta.inCommitTimestampEnablementVersion": "soon"}, "soon"),
    ],
)
def test_in_commit_timestamps_that_are_none(log, info, configuration, reason):
    log.commit(0, info, TIMED, metadata(**ENABLED, **configuration))
    error = corrupt(log)
    assert error.version == 0
    assert reason in error.reason


def test_a_checkpoint_without_its_commit_has_the_time_of_its_file(log):
    write_checkpoint(log, "classic", TIMED, metadata(**ENABLED), add("a"))
    os.utime(log.folder / CLASSIC, ns=(10**9, 10**9))
    log.commit(3, timed(5000), add("b"))
    assert [log.reader.snapshot(v).timestamp for v in (2, 3)] == [1000, 5000]


def test_what_a_cleanup_left_over_is_not_part_of_the_table(log):
    log.create(add("gone"))
    write_checkpoint(log, "classic", *BASE, add("a"))
    log.commit(3, add("b"))
    assert log.reader.version_range() == (2, 3)
    assert [r.version for r in log.reader.history()] == [3]
    with pytest.raises(VersionNotFound) as caught:
        log.reader.snapshot(0)
    assert caught.value.earliest == 2


def test_actions_are_the_log_itself(log):
    log.create(add("a"))
    found = log.reader.actions(0)
    assert isinstance(found[-1], Add)
    assert not any(isinstance(action, CommitInfo) for action in found)
