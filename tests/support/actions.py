"""Actions and snapshots for tests of the log: one small table, partitioned by `p`."""

from __future__ import annotations

from typing import Any

import msgspec

from deltalakedb.log.base import Snapshot, TableCommit
from deltalakedb.model.actions import Add, DeletionVector, Metadata, Protocol, Remove
from deltalakedb.model.protocol import NEW_TABLE
from deltalakedb.model.schema import PrimitiveType, StructField, StructType, to_json

PROTOCOL = NEW_TABLE


def schema(**types: str) -> StructType:
    """Nullable columns by name and type."""
    return StructType(tuple(StructField(n, PrimitiveType(t), True) for n, t in types.items()))


SCHEMA = schema(p="string", id="long", s="string")


def metadata(
    columns: StructType = SCHEMA, partition_by: tuple[str, ...] = ("p",), **configuration: str
) -> Metadata:
    """Metadata of the table; dots in properties are written as double underscores."""
    return Metadata(
        id="0",
        schema_string=to_json(columns),
        partition_columns=partition_by,
        configuration={k.replace("__", "."): v for k, v in configuration.items()},
    )


def protocol(*features: str) -> Protocol:
    """Writer version 7 with exactly these features, none of which concerns readers."""
    return Protocol(min_reader_version=1, min_writer_version=7, writer_features=tuple(features))


def snapshot(version: int = 0, **more: Any) -> Snapshot:
    """A version of the table."""
    values = {
        "table": "t",
        "location": "file:///t",
        "timestamp": 0,
        "metadata": metadata(),
        "protocol": PROTOCOL,
        "num_files": 0,
        "size_bytes": 0,
        "num_records": 0,
        "table_id": 1,
    }
    return Snapshot(version=version, **(values | more))


def vector(name: str, *, cardinality: int = 1, **more: Any) -> DeletionVector:
    """A deletion vector in a file of its own."""
    return DeletionVector(
        storage_type="p",
        path_or_inline_dv=f"file:///t/{name}.bin",
        size_in_bytes=40,
        cardinality=cardinality,
        **more,
    )


def stats(rows: int | None = None, **bounds: tuple[Any, Any]) -> str:
    """Statistics text: `rows`, and a minimum and maximum for each column."""
    found: dict[str, Any] = {} if rows is None else {"numRecords": rows}
    found["minValues"] = {name: low for name, (low, _) in bounds.items()}
    found["maxValues"] = {name: high for name, (_, high) in bounds.items()}
    found["nullCount"] = dict.fromkeys(bounds, 0)
    return msgspec.json.encode(found).decode()


def add(path: str, p: str | None = "a", **more: Any) -> Add:
    """A file of the partition `p`."""
    values = {
        "partition_values": {"p": p},
        "size": 10,
        "modification_time": 1,
        "data_change": True,
    }
    return Add(path=path, **(values | more))


def remove(path: str, **more: Any) -> Remove:
    """A file that goes."""
    return Remove(path=path, **({"data_change": True, "deletion_timestamp": 1} | more))


def table_commit(*actions: Any, **more: Any) -> TableCommit:
    """A commit decided on version 0."""
    return TableCommit(actions=actions, **({"operation": "WRITE", "base": snapshot()} | more))
