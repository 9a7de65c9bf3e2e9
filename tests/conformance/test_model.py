"""What the model makes of every action, schema, partition value and statistic in the tables."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest

from conformance.tables import OPENED, TABLES
from deltalakedb.errors import UnsupportedByBackend
from deltalakedb.log.base import Snapshot
from deltalakedb.log.files import FileTxnLogReader
from deltalakedb.model import stats as statistics
from deltalakedb.model.actions import CommitInfo, Metadata, UnknownAction
from deltalakedb.model.arrow import arrow_schema, delta_schema, physical_arrow_schema
from deltalakedb.model.codec import decode_commit, decode_line, encode
from deltalakedb.model.intervals import interval_reader
from deltalakedb.model.partition import deserialize, serialize
from deltalakedb.model.schema import (
    PrimitiveType,
    mapping_mode,
    parse_schema,
    primitives,
    to_json,
)

pytestmark = pytest.mark.conformance

BEYOND_PYTHON = "trino/databricks73/read_timestamps"
"""Has partition values and statistics in the year 10000, which Python has no datetime for."""


def _commits(name: str) -> Iterator[Path]:
    log = TABLES[name] / "_delta_log"
    return (f for f in sorted(log.glob("*.json")) if re.fullmatch(r"\d{20}(\..*)?", f.stem))


def _without_nulls(fields: dict[str, Any]) -> dict[str, Any]:
    """Fields that are null are as good as left out; values of maps are not fields."""
    made = {key: value for key, value in fields.items() if value is not None}
    for struct in ("deletionVector", "format"):
        if struct in made:
            made[struct] = _without_nulls(made[struct])
    return made


@pytest.mark.parametrize("name", TABLES)
def test_actions_survive_the_codec(name):
    for commit in _commits(name):
        for line in filter(None, map(str.strip, commit.read_text("utf-8").split("\n"))):
            action = decode_line(line)
            if action is None:
                continue
            text = encode(action)
            assert decode_line(text) == action
            ((kind, fields),) = (
                (k, v) for k, v in json.JSONDecoder().raw_decode(line)[0].items() if v is not None
            )
            wanted = fields if kind == "commitInfo" else _without_nulls(fields)
            assert json.loads(text) == {kind: wanted}
            if isinstance(action, CommitInfo | UnknownAction):
                assert action.body in line


@cache
def _metadata(name: str) -> list[Metadata]:
    """Every metadata that some version had, those of checkpoints too."""
    actions = [a for commit in _commits(name) for a in decode_commit(commit.read_bytes())]
    found = [a for a in actions if isinstance(a, Metadata)]
    if name in OPENED:
        found += [snapshot.metadata for snapshot in _snapshots(name)[1]]
    return list({(m.id, m.schema_string): m for m in found}.values())


def _snapshots(name: str) -> tuple[FileTxnLogReader, list[Snapshot]]:
    reader = FileTxnLogReader(str(TABLES[name]))
    first, last = reader.version_range()
    return reader, [reader.snapshot(version) for version in range(first, last + 1)]


def _plain(schema: Any) -> Any:
    """A schema's JSON in one spelling."""
    match schema:
        case {"type": "variant", **rest} if not rest:
            return "variant"
        case dict():
            return {key: _plain(value) for key, value in schema.items()}
        case list():
            return [_plain(value) for value in schema]
        case str() if schema.startswith("decimal("):
            return schema.replace(" ", "")
    return schema


@pytest.mark.parametrize("name", TABLES)
def test_schemas_survive_parsing(name):
    for metadata in _metadata(name):
        schema = parse_schema(metadata.schema_string)
        assert parse_schema(to_json(schema)) == schema
        if metadata.schema_string:
            assert json.loads(to_json(schema)) == _plain(json.loads(metadata.schema_string))


@pytest.mark.parametrize("name", TABLES)
def test_supported_schemas_have_an_arrow_schema(name):
    for metadata in _metadata(name):
        schema = parse_schema(metadata.schema_string)
        if not all(kind.supported for kind in primitives(schema)):
            continue
        arrow = arrow_schema(schema)
        assert arrow.names == schema.names
        assert delta_schema(arrow) == schema
        mode = mapping_mode(metadata.configuration)
        physical = physical_arrow_schema(schema, mode)
        assert physical.names == [field.physical_name(mode) for field in schema.fields]


def test_only_geometry_is_not_supported():
    unsupported = {
        (name, kind.name)
        for name in OPENED
        for metadata in _metadata(name)
        for kind in primitives(parse_schema(metadata.schema_string))
        if not kind.supported
    }
    assert unsupported == {
        ("kernelrs/table-with-geo", "geometry(OGC:CRS84)"),
        ("kernelrs/table-with-geo", "geography(OGC:CRS84, spherical)"),
    }


@pytest.mark.parametrize("name", OPENED)
def test_partition_values_are_of_their_types(name):
    reader, snapshots = _snapshots(name)
    for snapshot in snapshots:
        kinds = _partition_types(snapshot)
        seen = set(reader.files(snapshot, columns=["partition_values"]).read_all().column(0))
        for values in (json.loads(text.as_py()) for text in seen):
            assert values.keys() == kinds.keys()
            for column, text in values.items():
                if name == BEYOND_PYTHON and _is_late(text or ""):
                    with pytest.raises(UnsupportedByBackend):
                        deserialize(text, kinds[column])
                    continue
                value = deserialize(text, kinds[column])
                assert (value is None) == (not text)
                assert deserialize(serialize(value, kinds[column]), kinds[column]) == value


def _partition_types(snapshot: Snapshot) -> dict[str, PrimitiveType]:
    mode = mapping_mode(snapshot.metadata.configuration)
    fields = [snapshot.schema.field(column) for column in snapshot.metadata.partition_columns]
    return {field.physical_name(mode): field.type for field in fields}


def _is_late(text: str) -> bool:
    return text.startswith(("10000-", "+10000-"))


@pytest.mark.parametrize("name", OPENED)
def test_statistics_can_be_read(name):
    reader, snapshots = _snapshots(name)
    for snapshot in snapshots:
        metadata = snapshot.metadata
        columns = statistics.tracked_columns(
            snapshot.schema, metadata.partition_columns, metadata.configuration
        )
        types = {c.physical: c.type for c in columns if not c.partition}
        read = interval_reader(columns)
        files = reader.files(snapshot).read_all().to_pylist()
        for text in {file["stats"] for file in files} - {None}:
            plain, typed = statistics.parse(text), statistics.parse(text, types)
            assert plain.num_records == msgspec.json.decode(text).get("numRecords")
            for found, told in (
                (typed.min_values, plain.min_values),
                (typed.max_values, plain.max_values),
            ):
                lost = {str(told[path]) for path in told.keys() & types.keys() - found.keys()}
                assert not lost or (name == BEYOND_PYTHON and all(_is_late(v) for v in lost))
        for file in files:
            found = read(file["stats"], json.loads(file["partition_values"]))
            assert len(found) == len(columns)
