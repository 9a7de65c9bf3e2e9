"""Checkpoints as files: classic, multi-part, and V2 in Parquet or JSON with their sidecars.

What a checkpoint holds decides how it is read, not its name: a classic file may follow the V2 spec.
File actions stay columns from the Parquet file to the answer; tombstones are not read at all.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from deltalakedb.errors import CorruptLog
from deltalakedb.log.files_schema import files_schema
from deltalakedb.log.listing import SIDECARS, Checkpoint, blaming
from deltalakedb.log.rows import add_row, to_text
from deltalakedb.log.struct_stats import stats_text
from deltalakedb.model.actions import Action, Add, Sidecar
from deltalakedb.model.codec import decode_commit, from_fields
from deltalakedb.model.paths import decode
from deltalakedb.model.replay import State, replay
from deltalakedb.storage.base import Store

_SINGLE: Final = ("protocol", "metaData", "txn", "domainMetadata", "sidecar")
"""Actions that are few, read one by one."""

_FILE: Final = {
    "path": ("path",),
    "size": ("size",),
    "modification_time": ("modificationTime",),
    "data_change": ("dataChange",),
    "stats": ("stats",),
    "dv_storage_type": ("deletionVector", "storageType"),
    "dv_path": ("deletionVector", "pathOrInlineDv"),
    "dv_offset": ("deletionVector", "offset"),
    "dv_size": ("deletionVector", "sizeInBytes"),
    "dv_cardinality": ("deletionVector", "cardinality"),
    "base_row_id": ("baseRowId",),
    "default_row_commit_version": ("defaultRowCommitVersion",),
    "clustering_provider": ("clusteringProvider",),
}
"""Columns of `files_schema` that are taken over as they are."""

_MAPS: Final = {"partition_values": "partitionValues", "tags": "tags"}
_REQUIRED: Final = ("path", "partition_values", "size", "modification_time", "data_change")


@dataclass(frozen=True)
class CheckpointContent:
    """The state at a checkpoint; `state.files` is empty, the live files are the table's rows."""

    state: State
    files: pa.Table


def read_checkpoint(store: Store, checkpoint: Checkpoint) -> CheckpointContent:
    """All of a checkpoint but its tombstones.

    Raises:
        CorruptLog: names the version and the file that cannot be read or lacks something.
    """
    reader = _Reader(store, checkpoint.version)
    actions: list[Action] = []
    tables: list[pa.Table] = []
    for entry in checkpoint.files:
        found, files = reader.read(entry.path)
        actions += found
        tables.append(files)
    for sidecar in [a for a in actions if isinstance(a, Sidecar)]:
        name = decode(sidecar.path).rpartition("/")[2]
        tables.append(reader.read(f"{SIDECARS}/{name}")[1])
    state = replay([(checkpoint.version, actions)])
    with blaming(store.location, checkpoint.version, checkpoint.files[0].path):
        state.complete(store.location)
        files = pa.concat_tables(tables)
        _check_unique(files)
    return CheckpointContent(state, files)


def files_table(adds: Iterable[Add]) -> pa.Table:
    """Add actions as `files_schema`."""
    made = [(*add_row(add)[:-1], num_records(add.stats)) for add in adds]
    columns = zip(*made, strict=True) if made else [()] * len(files_schema())
    arrays = [pa.array(c, f.type) for c, f in zip(columns, files_schema(), strict=True)]
    return pa.table(arrays, files_schema())


class _Count(msgspec.Struct, rename="camel"):
    num_records: int | None = None


_count = msgspec.json.Decoder(_Count)


def num_records(stats: str | None) -> int | None:
    """The physical rows of a file, if its statistics tell."""
    try:
        return _count.decode(stats).num_records if stats else None
    except msgspec.DecodeError:
        return None


@dataclass(frozen=True)
class _Reader:
    """Reads the files of one checkpoint."""

    store: Store
    version: int

    def read(self, path: str) -> tuple[list[Action], pa.Table]:
        """Other actions, and the added files."""
        with blaming(self.store.location, self.version, path):
            data = self.store.get(path)
            if path.endswith(".json"):
                return self._read_json(data)
            try:
                # Otherwise INT96 becomes nanoseconds, which reach from 1677 to 2262 only.
                file = pq.ParquetFile(pa.py_buffer(data), coerce_int96_timestamp_unit="us")
                return self._read_parquet(file)
            except (pa.ArrowException, OSError) as error:
                raise CorruptLog(str(error)) from error

    def _read_json(self, data: bytes) -> tuple[list[Action], pa.Table]:
        actions = decode_commit(data, version=self.version)
        adds = [a for a in actions if isinstance(a, Add)]
        return [a for a in actions if not isinstance(a, Add)], files_table(adds)

    def _read_parquet(self, file: pq.ParquetFile) -> tuple[list[Action], pa.Table]:
        names = file.schema_arrow.names
        actions: list[Action] = []
        for kind in [k for k in _SINGLE if k in names]:
            rows = file.read([kind]).column(0).drop_null()
            actions += [from_fields(kind, row, version=self.version) for row in rows.to_pylist()]
        if "add" not in names:
            return actions, files_schema().empty_table()
        return actions, _files(file)


def _files(file: pq.ParquetFile) -> pa.Table:
    """The add column in the shape of `files_schema`."""
    known = file.schema_arrow.field("add").type.names
    wanted = {names[0] for names in _FILE.values()} | set(_MAPS.values())
    adds = _column(file, [f"add.{n}" for n in known if n in wanted])
    kinds = {field.name: field.type for field in files_schema()}
    columns = {name: _at(adds, names).cast(kinds[name]) for name, names in _FILE.items()}
    columns |= {name: _map_text(_at(adds, (source,))) for name, source in _MAPS.items()}
    if "stats_parsed" in known and columns["stats"].null_count:
        parsed = _at(_column(file, ["add.path", "add.stats_parsed"]), ("stats_parsed",))
        columns["stats"] = pc.coalesce(columns["stats"], stats_text(parsed, _int96(file)))
    columns["num_records"] = pa.array(map(num_records, columns["stats"].to_pylist()), pa.int64())
    for name in _REQUIRED:
        if columns[name].null_count:
            raise CorruptLog(f"an add has no {name}")
    return pa.table(columns).select(list(kinds)).cast(files_schema())


def _column(file: pq.ParquetFile, columns: list[str]) -> pa.StructArray:
    found = file.read(columns).column("add").combine_chunks().drop_null()
    assert isinstance(found, pa.StructArray)
    return found


def _at(values: pa.StructArray, names: tuple[str, ...]) -> pa.Array:
    """A member of a struct, null where it or the struct is missing."""
    for name in names:
        if not pa.types.is_struct(values.type) or values.type.get_field_index(name) < 0:
            return pa.nulls(len(values))
        values = pc.struct_field(values, name)
    return values


def _map_text(values: pa.Array) -> pa.Array:
    """Maps as JSON objects. Equal maps, of which there are many, are written once."""
    if pa.types.is_null(values.type):
        return values.cast(pa.string())
    seen: dict[tuple[Any, ...], str] = {}
    texts: list[str | None] = []
    for pairs in values.to_pylist():
        if pairs is None:
            texts.append(None)
            continue
        key = tuple(pairs)
        if key not in seen:
            seen[key] = to_text(dict(key))
        texts.append(seen[key])
    return pa.array(texts, pa.string())


def _int96(file: pq.ParquetFile) -> set[str]:
    """Statistics that are timestamps in INT96."""
    leaves = (file.schema.column(i) for i in range(len(file.schema)))
    prefix = "add.stats_parsed."
    return {c.path.removeprefix(prefix) for c in leaves if c.physical_type == "INT96"}


def _check_unique(files: pa.Table) -> None:
    keys = files.select(["path", "dv_storage_type", "dv_path", "dv_offset"])
    once = keys.group_by(keys.column_names).aggregate([])
    if once.num_rows != files.num_rows:
        raise CorruptLog("a file is listed twice")
