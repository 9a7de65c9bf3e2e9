"""The live files of a snapshot, for people and programs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from deltalakedb.log.base import Snapshot, TxnLogReader
from deltalakedb.model.arrow import arrow_type
from deltalakedb.model.expr import Expr
from deltalakedb.model.partition import deserialize
from deltalakedb.model.schema import (
    ArrayType,
    MappingMode,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
    mapping_mode,
)
from deltalakedb.table.flat import flattened, nested

_COLUMNS = ("path", "size", "modification_time", "num_records", "partition_values", "stats")
_NO_BOUNDS = ("binary", "variant")


def paths(reader: TxnLogReader, snapshot: Snapshot, where: Expr | None) -> list[str]:
    """Paths of the live files that may match."""
    found: list[str] = []
    for batch in reader.files(snapshot, where, ("path",)):
        found += batch.column(0).to_pylist()
    return found


def partitions(reader: TxnLogReader, snapshot: Snapshot) -> list[dict[str, Any]]:
    """The combinations of partition values that have files, typed, by logical name."""
    seen: set[str] = set()
    for batch in reader.files(snapshot, None, ("partition_values",)):
        seen |= set(batch.column(0).unique().to_pylist())
    fields = _partition_fields(snapshot)
    if not fields:
        return []
    texts = [msgspec.json.decode(text) for text in sorted(seen)]
    unique = {tuple(values.get(name) for name, _ in fields): values for values in texts}
    return [
        {field.name: deserialize(values.get(name), field.type) for name, field in fields}
        for values in unique.values()
    ]


def add_actions(
    reader: TxnLogReader, snapshot: Snapshot, where: Expr | None, *, flatten: bool
) -> pa.Table:
    """The live files with typed partition values and statistics, batch by batch."""
    shape = _Shape(snapshot)
    batches = reader.files(snapshot, where, _COLUMNS)
    made = [shape.of(batch, flatten=flatten) for batch in batches if batch.num_rows]
    return pa.concat_tables(made) if made else shape.empty(flatten=flatten)


def _partition_fields(snapshot: Snapshot) -> list[tuple[str, StructField]]:
    mode = mapping_mode(snapshot.metadata.configuration)
    found = (snapshot.schema.field(name) for name in snapshot.metadata.partition_columns)
    return [(f.physical_name(mode), f) for f in found if f is not None]


class _Shape:
    """The Arrow schema of statistics for one table, and the reading of their JSON into it."""

    def __init__(self, snapshot: Snapshot) -> None:
        mode = mapping_mode(snapshot.metadata.configuration)
        self.partition = _partition_fields(snapshot)
        names = {name for name, _ in self.partition}
        data = [f for f in snapshot.schema.fields if f.physical_name(mode) not in names]
        struct = StructType(tuple(data))
        self.counts = _struct(struct, "none", counts=True)
        self.bounds = _struct(struct, "none", counts=False)
        bounds = _as_text(_struct(struct, mode, counts=False))
        self._read = pj.ParseOptions(
            explicit_schema=pa.schema(
                [
                    ("minValues", bounds),
                    ("maxValues", bounds),
                    ("nullCount", _struct(struct, mode, counts=True)),
                ]
            ),
            unexpected_field_behavior="ignore",
        )

    def of(self, batch: pa.RecordBatch, *, flatten: bool) -> pa.Table:
        stats = self._stats(batch["stats"])
        columns = {
            "path": batch["path"],
            "size_bytes": batch["size"],
            "modification_time": batch["modification_time"],
            "num_records": batch["num_records"],
            "null_count": nested(stats["nullCount"], self.counts),
            "min": nested(stats["minValues"], self.bounds),
            "max": nested(stats["maxValues"], self.bounds),
            "partition": self._partition(batch["partition_values"]),
        }
        kept = {k: v for k, v in columns.items() if v.type != pa.struct([])}
        table = pa.table(kept)
        return flattened(table) if flatten else table

    def empty(self, *, flatten: bool) -> pa.Table:
        none = pa.RecordBatch.from_pydict({name: pa.array([], _kind(name)) for name in _COLUMNS})
        return self.of(none, flatten=flatten)

    def _stats(self, texts: pa.Array) -> pa.Table:
        """All texts parsed at once; a file without statistics is an empty object."""
        if not len(texts):
            return self._read.explicit_schema.empty_table()
        lines = pc.fill_null(texts, "{}")
        joined = pc.binary_join(pa.ListArray.from_arrays([0, len(lines)], lines), "\n")[0]
        source = pa.BufferReader(joined.as_buffer())
        options = pj.ReadOptions(block_size=max(len(joined.as_buffer()) + 1, 1024))
        return pj.read_json(source, read_options=options, parse_options=self._read)

    def _partition(self, texts: pa.Array) -> pa.Array:
        encoded = texts.dictionary_encode()
        values = [msgspec.json.decode(text) for text in encoded.dictionary.to_pylist()]
        fields = [pa.field(f.name, arrow_type(f.type)) for _, f in self.partition]
        if not fields:
            return pa.array([{}] * len(texts), pa.struct([]))
        distinct = [
            {f.name: deserialize(v.get(name), f.type) for name, f in self.partition} for v in values
        ]
        return pa.array(distinct, pa.struct(fields)).take(encoded.indices)


def _kind(name: str) -> pa.DataType:
    return pa.string() if name in ("path", "partition_values", "stats") else pa.int64()


def _struct(struct: StructType, mode: MappingMode, *, counts: bool) -> pa.DataType:
    """Null counts of every leaf, or bounds of those that have an order."""
    return pa.struct(list(_fields(struct, mode, counts=counts)))


def _fields(struct: StructType, mode: MappingMode, *, counts: bool) -> Iterator[pa.Field]:
    for field in struct.fields:
        name, kind = field.physical_name(mode), field.type
        if isinstance(kind, StructType):
            inner = _struct(kind, mode, counts=counts)
            if inner.num_fields:
                yield pa.field(name, inner)
        elif counts:
            yield pa.field(name, pa.int64())
        elif isinstance(kind, ArrayType | MapType):
            continue
        elif isinstance(kind, PrimitiveType) and kind.supported and kind.name not in _NO_BOUNDS:
            yield pa.field(name, arrow_type(kind))


def _as_text(kind: pa.DataType) -> pa.DataType:
    """The type in which the JSON is read: what JSON has no type for comes as text."""
    if pa.types.is_struct(kind):
        return pa.struct([(f.name, _as_text(f.type)) for f in kind])
    if pa.types.is_decimal(kind):
        return kind
    plain = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
    return kind if plain else pa.string()
