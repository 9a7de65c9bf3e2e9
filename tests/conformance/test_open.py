"""Tables that other people's software wrote, opened at every version they still have."""

from __future__ import annotations

import json
from collections import Counter
from urllib.parse import unquote

import deltalake
import pyarrow as pa
import pytest

from conformance.expectations import CHECKPOINT_TELLS_OTHERWISE as OVERRULED
from conformance.expectations import GAPS_BEFORE_A_CHECKPOINT, NOT_AS_DELTA_RS, REFUSED
from conformance.naive_replay import Replayed, replay_all
from conformance.tables import OPENED, TABLES, WITH_DELTA_RS, indexed
from deltalakedb.errors import VersionNotFound
from deltalakedb.log.base import Snapshot
from deltalakedb.log.files import FileTxnLogReader

pytestmark = pytest.mark.conformance

WITH_VECTORS = [
    "deltars/table-with-dv-small",
    "golden/dv-partitioned-with-checkpoint",
    "kernel/basic-dv-no-checkpoint",
    "kernelrs/table-with-dv-small",
    "trino/deltalake/deletion_vector_pages",
]
"""Tables with deletion vectors in their newest version, and with the files that hold them."""


def _open(name: str) -> FileTxnLogReader:
    return FileTxnLogReader(str(TABLES[name]))


def _snapshots(reader: FileTxnLogReader) -> list[Snapshot]:
    first, last = reader.version_range()
    return [reader.snapshot(version) for version in range(first, last + 1)]


def _files(reader: FileTxnLogReader, snapshot: Snapshot) -> list[dict]:
    return reader.files(snapshot).read_all().to_pylist()


def _schema(text: str | None) -> dict:
    return json.loads(text) if text else {"type": "struct", "fields": []}


def test_expectations_are_about_tables_there_are():
    named = {*REFUSED, *NOT_AS_DELTA_RS, *GAPS_BEFORE_A_CHECKPOINT, *OVERRULED}
    assert named <= TABLES.keys()
    assert not REFUSED.keys() & NOT_AS_DELTA_RS.keys()
    assert len(indexed()) == 260
    assert set(indexed()) <= TABLES.keys()


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_refused(name):
    expected = REFUSED[name]
    with pytest.raises(expected.error, match=expected.says) as caught:
        _open(name).snapshot()
    assert type(caught.value) is expected.error


@pytest.mark.parametrize("name", OPENED)
def test_every_version_as_the_naive_replay(name):
    _compare_all(_open(name), replay_all(TABLES[name], trust_checkpoints=name in OVERRULED))


def _compare_all(reader: FileTxnLogReader, expected: dict[int, Replayed]) -> None:
    first, last = reader.version_range()
    assert list(expected) == list(range(first, last + 1))
    assert reader.snapshot().version == last
    for snapshot in _snapshots(reader):
        _compare(reader, snapshot, expected[snapshot.version])


@pytest.mark.parametrize("name", sorted(OVERRULED))
def test_checkpoint_really_tells_otherwise(name):
    with pytest.raises(AssertionError):
        _compare_all(_open(name), replay_all(TABLES[name]))


def _compare(reader: FileTxnLogReader, snapshot: Snapshot, expected: Replayed) -> None:
    files = _files(reader, snapshot)
    assert {_key(f): _facts(f) for f in files} == {
        key: (add["size"], add["modificationTime"], add["partitionValues"])
        for key, add in expected.files.items()
    }
    for file in files:  # a checkpoint may leave statistics out, but not change them
        told = expected.files[_key(file)].get("stats")
        if told and file["stats"]:
            assert json.loads(told) == json.loads(file["stats"])
            assert file["num_records"] == json.loads(told).get("numRecords")
    assert snapshot.num_files == len(files) == len(expected.files)
    assert snapshot.size_bytes == sum(add["size"] for add in expected.files.values())

    found, wanted = snapshot.protocol, expected.protocol
    assert found.min_reader_version == wanted["minReaderVersion"]
    assert found.min_writer_version == wanted["minWriterVersion"]
    assert set(found.reader_features or ()) == set(wanted.get("readerFeatures") or ())
    assert set(found.writer_features or ()) == set(wanted.get("writerFeatures") or ())

    metadata, wanted = snapshot.metadata, expected.metadata
    assert metadata.id == wanted["id"]
    assert _schema(metadata.schema_string) == _schema(wanted.get("schemaString"))
    assert list(metadata.partition_columns) == wanted["partitionColumns"]
    assert dict(metadata.configuration) == wanted["configuration"]

    assert {
        d.domain: d.configuration for d in reader.domains(snapshot).values()
    } == expected.domains
    for app_id, version in expected.txns.items():
        assert reader.txn_version(app_id, snapshot) == version
    assert reader.txn_version("nobody", snapshot) is None


def _key(file: dict) -> tuple[str, str]:
    vector = ""
    if file["dv_storage_type"]:
        vector = file["dv_storage_type"] + file["dv_path"]
        vector += "" if file["dv_offset"] is None else f"@{file['dv_offset']}"
    return unquote(file["path"]), vector


def _facts(file: dict) -> tuple:
    return file["size"], file["modification_time"], json.loads(file["partition_values"])


@pytest.mark.parametrize("name", WITH_DELTA_RS)
def test_every_version_as_delta_rs(name):
    reader, peer = _open(name), deltalake.DeltaTable(TABLES[name])
    assert peer.version() == reader.version_range()[1]
    for snapshot in _snapshots(reader):
        peer.load_as_version(snapshot.version)
        _compare_with_peer(_files(reader, snapshot), snapshot, peer)


def _compare_with_peer(files: list[dict], snapshot: Snapshot, peer: deltalake.DeltaTable) -> None:
    theirs = pa.table(peer.get_add_actions()).to_pylist()
    assert Counter((f["path"], f["size_bytes"], f["modification_time"]) for f in theirs) == Counter(
        (f["path"], f["size"], f["modification_time"]) for f in files
    )
    counts = {f["path"]: f["num_records"] for f in files}
    assert all(f["num_records"] in (None, counts[f["path"]]) for f in theirs)
    assert _schema(peer.schema().to_json()) == _schema(snapshot.metadata.schema_string)
    protocol, ours = peer.protocol(), snapshot.protocol
    assert (protocol.min_reader_version, protocol.min_writer_version) == (
        ours.min_reader_version,
        ours.min_writer_version,
    )
    assert set(protocol.reader_features or ()) == set(ours.reader_features or ())
    assert set(protocol.writer_features or ()) == set(ours.writer_features or ())
    metadata = peer.metadata()
    assert metadata.id == snapshot.metadata.id
    assert metadata.partition_columns == list(snapshot.metadata.partition_columns)
    assert metadata.configuration == dict(snapshot.metadata.configuration)


@pytest.mark.parametrize("name", [n for n in WITH_VECTORS if n in TABLES])
def test_as_many_deleted_rows_as_delta_rs_finds_in_the_vectors(name):
    reader = _open(name)
    ours = {
        file["path"]: file["dv_cardinality"]
        for file in _files(reader, reader.snapshot())
        if file["dv_path"]
    }
    theirs = pa.table(deltalake.DeltaTable(TABLES[name]).deletion_vectors()).to_pylist()
    assert ours == {
        vector["filepath"].removeprefix(f"{reader.location}/"): vector["selection_vector"].count(
            False
        )
        for vector in theirs
    }
    assert ours


@pytest.mark.parametrize("name", sorted(NOT_AS_DELTA_RS))
def test_delta_rs_really_is_of_another_opinion(name):
    with pytest.raises((AssertionError, deltalake.exceptions.DeltaError)):
        test_every_version_as_delta_rs(name)


@pytest.mark.parametrize("name", sorted(GAPS_BEFORE_A_CHECKPOINT))
def test_what_lies_before_a_gap_is_out_of_range(name):
    version, _ = GAPS_BEFORE_A_CHECKPOINT[name]
    reader = _open(name)
    assert reader.version_range() == (version, version)
    assert reader.snapshot().version == version
    with pytest.raises(VersionNotFound) as caught:
        reader.snapshot(5)
    assert (caught.value.earliest, caught.value.latest) == (version, version)
