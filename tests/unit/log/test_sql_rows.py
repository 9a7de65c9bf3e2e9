"""Actions survive the database with every field, on every engine."""

from __future__ import annotations

import pytest

from deltalakedb.log import rows
from deltalakedb.log.matching import num_records
from deltalakedb.model.actions import (
    Add,
    Cdc,
    CommitInfo,
    DeletionVector,
    DomainMetadata,
    Format,
    Metadata,
    Protocol,
    Remove,
    Txn,
    UnknownAction,
)
from support.actions import PROTOCOL, add, metadata, remove, schema
from support.logs import Log

EXTRA = {"new": {"nested": [1, 2.5, None, "x"]}, "deletionVectors": 1}
DV = DeletionVector(
    storage_type="u",
    path_or_inline_dv="ab^-aqEH.-t@S}K{vb[*k^",
    offset=4,
    size_in_bytes=40,
    cardinality=6,
    extra={"maxRowIndex": 9},
)
ADD = Add(
    path="p=a%2520b/f'\";--",
    partition_values={"p": "a b"},
    size=2**62,
    modification_time=-1,
    data_change=False,
    stats='{ "numRecords":7 , "minValues":{} }',
    tags={"k": "v", "n": None},
    deletion_vector=DV,
    base_row_id=0,
    default_row_commit_version=3,
    clustering_provider="liquid",
    extra=EXTRA,
)
REMOVE = Remove(
    path="gone",
    data_change=False,
    deletion_timestamp=5,
    extended_file_metadata=False,
    partition_values={"p": None},
    size=10,
    stats="{}",
    tags={},
    base_row_id=1,
    default_row_commit_version=1,
    extra=EXTRA,
)
METADATA = Metadata(
    id="id",
    name="n",
    description="d",
    format=Format(provider="parquet", options={"a": "b"}),
    schema_string=metadata(schema(p="string", id="long")).schema_string,
    partition_columns=("p",),
    configuration={"z": "1", "a": "2"},
    created_time=9,
    extra={"x": 1},
)
ROUND_TRIPS = [
    (rows.add_row, rows.add_from, [ADD, add("f"), add("f", tags={}, stats="")]),
    (rows.remove_row, rows.remove_from, [REMOVE, remove("f"), remove("f", deletion_vector=DV)]),
    (rows.metadata_row, rows.metadata_from, [METADATA, metadata()]),
    (
        rows.protocol_row,
        rows.protocol_from,
        [
            PROTOCOL,
            Protocol(min_reader_version=3, min_writer_version=7, reader_features=()),
            Protocol(
                min_reader_version=3,
                min_writer_version=7,
                reader_features=("a",),
                writer_features=("b", "a"),
                extra={"x": 1},
            ),
        ],
    ),
    (rows.txn_row, rows.txn_from, [Txn(app_id="a", version=1, last_updated=2, extra={"x": 1})]),
    (
        rows.domain_row,
        rows.domain_from,
        [DomainMetadata(domain="d", configuration="", removed=True, extra={"x": [1]})],
    ),
    (
        rows.cdc_row,
        rows.cdc_from,
        [Cdc(path="c", partition_values={"p": None}, size=1, tags={"a": None}, extra={"x": 1})],
    ),
]


@pytest.mark.parametrize(
    ("to_row", "from_row", "action"),
    [(to, back, action) for to, back, actions in ROUND_TRIPS for action in actions],
)
def test_rows_and_back(to_row, from_row, action):
    assert from_row(to_row(action)) == action


def test_a_commit_comes_back_as_it_was_from_every_engine(catalog_uri):
    first = [PROTOCOL, METADATA, add("gone")]
    info = CommitInfo('{"operation": "WHATEVER", "a": 1.50}')
    second = [
        info,
        Txn(app_id="A", version=1, last_updated=2, extra={"x": 1}),
        Txn(app_id="a'; DROP TABLE dl_tables; --", version=2**62),
        Txn(app_id="雪", version=0),
        DomainMetadata(domain="d", configuration="{ }", extra={"x": 1}),
        REMOVE,
        ADD,
        Cdc(path="c", partition_values={"p": "x"}, size=1, tags={"a": None}, extra={"x": 1}),
        UnknownAction("future", '{"a": [1,  2]}'),
    ]
    with Log(catalog_uri) as log:
        log.create("t", actions=first)
        log.commit("t", *second)
        assert log.reader("t").actions(0)[1:] == first
        assert log.reader("t").actions(1) == second
        assert log.files("t")[0] == Add(
            **{f: getattr(ADD, f) for f in ADD.__struct_fields__ if f not in _UNKNOWN},
            deletion_vector=DeletionVector(
                **{f: getattr(DV, f) for f in DV.__struct_fields__ if f != "extra"}
            ),
        )


_UNKNOWN = ("extra", "deletion_vector")


@pytest.mark.parametrize(
    ("text", "count"),
    [
        (None, None),
        ("", None),
        ("{}", None),
        ('{"numRecords": 0}', 0),
        ('{"numRecords": 3, "x": 1}', 3),
        ('{"numRecords": null}', None),
        ('{"numRecords": -1}', None),
        ('{"numRecords": 9223372036854775807}', 2**63 - 1),
        ('{"numRecords": 9223372036854775808}', None),
        ('{"numRecords": "3"}', None),
        ("[]", None),
        ("{", None),
    ],
)
def test_statistics_are_advice(text, count):
    assert num_records(text) == count
