from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltalakedb.errors import CorruptLog
from deltalakedb.model.actions import (
    Add,
    Cdc,
    CheckpointMetadata,
    CommitInfo,
    DeletionVector,
    DomainMetadata,
    Format,
    Metadata,
    Protocol,
    Remove,
    Sidecar,
    Txn,
    UnknownAction,
)
from deltalakedb.model.codec import (
    KINDS,
    decode_commit,
    decode_line,
    encode,
    encode_commit,
    from_fields,
)
from support.schemas import json_values

ADD = '{"add":{"path":"a","partitionValues":{},"size":1,"modificationTime":2,"dataChange":true'

DV = '"deletionVector":{"storageType":"u","pathOrInlineDv":"x","offset":1,"sizeInBytes":2,'
FULL_ADD = (
    f'{ADD},"stats":"{{}}","tags":{{"a":"b"}},{DV}"cardinality":3}},"baseRowId":4,'
    '"defaultRowCommitVersion":5,"clusteringProvider":"liquid"}}'
)
FULL_REMOVE = (
    '{"remove":{"path":"a","deletionTimestamp":1,"dataChange":true,"extendedFileMetadata":true,'
    f'"partitionValues":{{"p":null}},"size":1,"tags":{{}},{DV}"cardinality":3}},"baseRowId":4,'
    '"defaultRowCommitVersion":5,"stats":"{}"}}'
)
FULL_METADATA = (
    '{"metaData":{"id":"i","name":"n","description":"d","format":{"provider":"parquet",'
    '"options":{}},"schemaString":"{}","partitionColumns":["p"],"configuration":{"a":"b"},'
    '"createdTime":1}}'
)
FULL_PROTOCOL = (
    '{"protocol":{"minReaderVersion":3,"minWriterVersion":7,"readerFeatures":[],'
    '"writerFeatures":["x"]}}'
)

texts = st.text()
longs = st.integers(-(2**63), 2**63 - 1)
maps = st.dictionaries(texts, st.none() | texts, max_size=3)
extras = st.dictionaries(texts.map(lambda key: f"x-{key}"), json_values, max_size=2)


def maybe(strategy):
    return st.none() | strategy


vectors = st.builds(
    DeletionVector,
    storage_type=st.sampled_from("uip"),
    path_or_inline_dv=texts,
    size_in_bytes=longs,
    cardinality=longs,
    offset=maybe(longs),
    extra=extras,
)
rows = {"base_row_id": maybe(longs), "default_row_commit_version": maybe(longs), "extra": extras}
files = {"path": texts, "data_change": st.booleans(), "stats": maybe(texts), "tags": maybe(maps)}
names = st.lists(texts, max_size=3).map(tuple)
actions = st.one_of(
    st.builds(
        Add,
        **files,
        **rows,
        partition_values=maps,
        size=longs,
        modification_time=longs,
        deletion_vector=maybe(vectors),
        clustering_provider=maybe(texts),
    ),
    st.builds(
        Remove,
        **files,
        **rows,
        deletion_timestamp=maybe(longs),
        extended_file_metadata=maybe(st.booleans()),
        partition_values=maybe(maps),
        size=maybe(longs),
        deletion_vector=maybe(vectors),
    ),
    st.builds(Cdc, path=texts, partition_values=maps, size=longs, tags=maybe(maps), extra=extras),
    st.builds(
        Metadata,
        id=texts,
        schema_string=texts,
        partition_columns=names,
        configuration=st.dictionaries(texts, texts, max_size=3),
        format=st.builds(Format, provider=texts, options=st.dictionaries(texts, texts, max_size=2)),
        name=maybe(texts),
        description=maybe(texts),
        created_time=maybe(longs),
        extra=extras,
    ),
    st.builds(
        Protocol,
        min_reader_version=longs,
        min_writer_version=longs,
        reader_features=maybe(names),
        writer_features=maybe(names),
        extra=extras,
    ),
    st.builds(Txn, app_id=texts, version=longs, last_updated=maybe(longs), extra=extras),
    st.builds(
        DomainMetadata, domain=texts, configuration=texts, removed=st.booleans(), extra=extras
    ),
    st.builds(CheckpointMetadata, version=longs, tags=maybe(maps), extra=extras),
    st.builds(
        Sidecar,
        path=texts,
        size_in_bytes=longs,
        modification_time=longs,
        tags=maybe(maps),
        extra=extras,
    ),
    st.dictionaries(texts, json_values).map(lambda body: CommitInfo(json.dumps(body))),
    json_values.filter(lambda body: body is not None).map(
        lambda body: UnknownAction("somethingNew", json.dumps(body))
    ),
)


@given(st.lists(actions, max_size=5))
def test_any_commit_survives_the_log(commit):
    assert decode_commit(encode_commit(commit)) == commit


@given(actions)
def test_an_action_is_one_line_and_always_the_same(action):
    line = encode(action)
    assert "\n" not in line
    assert encode(decode_line(line)) == line
    assert decode_line(line.encode()) == action


@pytest.mark.parametrize(
    "line",
    [
        FULL_ADD,
        FULL_REMOVE,
        '{"cdc":{"path":"a","partitionValues":{},"size":1,"tags":{},"dataChange":false}}',
        FULL_METADATA,
        FULL_PROTOCOL,
        '{"txn":{"appId":"a","version":1,"lastUpdated":2}}',
        '{"domainMetadata":{"domain":"d","configuration":"{}","removed":false}}',
        '{"checkpointMetadata":{"version":1,"tags":{}}}',
        '{"sidecar":{"path":"s","sizeInBytes":1,"modificationTime":2,"tags":{}}}',
        '{"commitInfo":{ "kept" :1.10, "as":"it is"}}',
        '{"somethingNew":[ 1 ]}',
    ],
)
def test_lines_come_out_as_delta_spark_writes_them(line):
    assert encode(decode_line(line)) == line


def test_nulls_are_left_out_and_unknown_fields_stay():
    line = ADD + ',"stats":null,"tags":null,"extra":{"a":1},"future":[null],"gone":null}}'
    action = decode_line(line)
    assert isinstance(action, Add)
    assert action.extra == {"extra": {"a": 1}, "future": [None], "gone": None}
    assert encode(action) == ADD + ',"extra":{"a":1},"future":[null],"gone":null}}'


def test_unknown_fields_of_deletion_vectors_stay():
    dv = (
        '"deletionVector":{"storageType":"u","pathOrInlineDv":"x","sizeInBytes":2,'
        '"cardinality":3,"maxRowIndex":9}'
    )
    action = decode_line(f"{ADD},{dv}}}}}")
    assert isinstance(action, Add)
    assert action.dv_id == "ux"
    assert encode(action) == f"{ADD},{dv}}}}}"


@pytest.mark.parametrize("line", ["", "  ", "{}", '{"add":null}', b"\r"])
def test_lines_without_an_action(line):
    assert decode_line(line) is None


def test_keys_that_are_null_do_not_count():
    line = '{"add":null,"txn":{"appId":"a","version":3},"remove":null}'
    assert decode_line(line) == Txn(app_id="a", version=3)
    assert decode_line('{"txn":{"appId":"a","version":3},"new":{}}') == Txn(app_id="a", version=3)


def test_the_x_that_databricks_wrote():
    data = b'{"commitInfo":{"a":1}}x\n' + ADD.encode() + b"}}x\n"
    info, add = decode_commit(data)
    assert info == CommitInfo('{"a":1}')
    assert isinstance(add, Add)


def test_a_table_may_come_before_its_schema():
    line = '{"metaData":{"id":"i","format":{"provider":"parquet","options":{}},'
    line += '"partitionColumns":[],"configuration":{}}}'
    action = decode_line(line)
    assert isinstance(action, Metadata)
    assert action.schema_string == ""
    assert encode(action) == line


def test_carriage_returns_and_blank_lines():
    data = b'{"txn":{"appId":"a","version":1}}\r\n\r\n{"txn":{"appId":"b","version":1}}'
    assert [action.app_id for action in decode_commit(data)] == ["a", "b"]


def test_provenance_never_breaks_the_line():
    assert encode(CommitInfo('{\n "a": 1\n}')) == '{"commitInfo":{"a":1}}'
    assert encode(UnknownAction('q"', "[\r\n]")) == '{"q\\"":[]}'


@pytest.mark.parametrize(
    ("line", "field"),
    [
        ('{"add":{"path":"a"}}', "add.partitionValues"),
        (ADD.replace('"size":1', '"size":"1"') + "}}", "add.size"),
        (ADD.replace('"size":1', '"size":null') + "}}", "add.size"),
        (ADD.replace("{}", '{"p":5}') + "}}", "add.partitionValues[...]"),
        (ADD.replace("{}", "[1]") + "}}", "add.partitionValues"),
        (ADD + ',"deletionVector":{"storageType":"u"}}}', "add.deletionVector.pathOrInlineDv"),
        ('{"add":5}', "add"),
        ('{"remove":{"path":"a"}}', "remove.dataChange"),
        (
            '{"protocol":{"minReaderVersion":true,"minWriterVersion":2}}',
            "protocol.minReaderVersion",
        ),
        ('{"metaData":{"id":"a","format":5}}', "metaData.format"),
        ('{"commitInfo":5}', "commitInfo"),
        ('{"add":{},"remove":{}}', None),
        ('{"add":', None),
        ("[1]", None),
        ("null", None),
        ("x", None),
        ('{"txn":{"appId":"\\ud800","version":1}}', None),
        (b'{"txn":{"appId":"\xff","version":1}}', None),
        ('{"x":' + "[" * 100_000, None),
    ],
)
def test_what_cannot_be_read_names_version_line_and_field(line, field):
    text = line if isinstance(line, bytes) else line.encode()
    with pytest.raises(CorruptLog) as caught:
        decode_commit(b"\n" + text, version=7, location="here")
    error = caught.value
    assert (error.version, error.line, error.field, error.location) == (7, 2, field, "here")
    assert "version 7, line 2" in str(error)
    assert error.reason


def test_rows_of_checkpoints():
    row = {
        "path": "a",
        "partitionValues": [("p", "1"), ("q", None)],
        "size": 1,
        "modificationTime": 2,
        "dataChange": False,
        "stats": None,
        "tags": [],
        "deletionVector": {
            "storageType": "u",
            "pathOrInlineDv": "x",
            "offset": None,
            "sizeInBytes": 1,
            "cardinality": 2,
            "maxRowIndex": None,
        },
        "stats_parsed": {"numRecords": 1},
        "partitionValues_parsed": {"p": 1},
        "future": 1,
    }
    add = from_fields("add", row)
    assert isinstance(add, Add)
    assert add.partition_values == {"p": "1", "q": None}
    assert (add.tags, add.dv_id, add.extra) == ({}, "ux", {"future": 1})

    metadata = from_fields(
        "metaData",
        {
            "id": "i",
            "name": None,
            "format": {"provider": "parquet", "options": []},
            "schemaString": "{}",
            "partitionColumns": ["p"],
            "configuration": [("a", "b")],
        },
    )
    assert metadata == Metadata(
        id="i", schema_string="{}", partition_columns=("p",), configuration={"a": "b"}
    )
    assert from_fields("new", {"a": 1}) == UnknownAction("new", '{"a":1}')
    assert from_fields("commitInfo", {"a": 1}) == CommitInfo('{"a":1}')
    with pytest.raises(CorruptLog) as caught:
        from_fields("add", {"path": None}, version=4)
    assert (caught.value.version, caught.value.field) == (4, "add.path")


@pytest.mark.conformance
def test_every_commit_that_others_wrote_survives(conformance):
    def without_nulls(value):
        if isinstance(value, dict):
            return {k: without_nulls(v) for k, v in value.items() if v is not None}
        return value

    seen = set()
    for file in conformance.glob("**/_delta_log/*.json"):
        lines = [line for line in file.read_text("utf-8").split("\n") if line.strip()]
        actions = decode_commit(file.read_bytes())
        assert len(actions) == len(lines), file
        for line, action in zip(lines, actions, strict=True):
            given = msgspec.json.decode(line.removesuffix("x"))
            assert without_nulls(msgspec.json.decode(encode(action))) == without_nulls(given), file
            seen.add(type(action))
    assert set(KINDS.values()) <= seen | {DomainMetadata}
