"""Rows into Parquet files under the transaction's own folder, each with its statistics.

Statistics come from the footer the writer has just made, so nothing is read twice.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Self

import pyarrow as pa
import pyarrow.parquet as pq

from deltalakedb.errors import InvalidArgument, StorageError
from deltalakedb.model.actions import Add, Metadata
from deltalakedb.model.arrow import physical_arrow_schema
from deltalakedb.model.partition import hive_path, serialize
from deltalakedb.model.paths import encode
from deltalakedb.model.schema import mapping_mode, parse_schema
from deltalakedb.model.stats import StatsColumn, stats_columns, to_json
from deltalakedb.model.stats_collect import Collector, from_parquet_metadata
from deltalakedb.storage.base import filesystem
from deltalakedb.table.nested import loose_schema, relabelled
from deltalakedb.table.split import split

ROW_GROUP = 262_144
CHUNK_ROWS = 4 * ROW_GROUP
_OPEN_FILES = 256
"""Partitions written at the same time; beyond that the least recent one is closed."""
_NAME_BYTES = 255
"""The longest name of a folder that file systems take."""


@dataclass(frozen=True)
class Target:
    """Where files go and how they are made."""

    table: str
    location: str
    folder: str
    metadata: Metadata
    file_size: int
    compression: str = "snappy"


def chunks(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.Table]:
    """The batches in pieces of about a row group or more, so that files come out well-formed."""
    pending: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        pending.append(batch)
        rows += batch.num_rows
        if rows >= CHUNK_ROWS:
            yield pa.Table.from_batches(pending, schema)
            pending, rows = [], 0
    if rows:
        yield pa.Table.from_batches(pending, schema)


class _OpenFile:
    """One Parquet file in the making."""

    def __init__(
        self,
        path: str,
        sink: Any,
        schema: pa.Schema,
        compression: str,
        stats: Sequence[StatsColumn],
    ) -> None:
        self.path = path
        self._sink = sink
        self._stats = stats
        # Footers pass over NaN, statistics must not.
        self._floats = Collector([c for c in stats if str(c.type) in ("float", "double")])
        self._footers: list[Any] = []
        self._writer = pq.ParquetWriter(
            sink, schema, compression=compression, metadata_collector=self._footers
        )

    def write(self, rows: pa.Table) -> int:
        self._floats.add(rows)
        self._writer.write_table(rows, row_group_size=ROW_GROUP)
        return int(self._sink.tell())

    def close(self) -> tuple[int, str]:
        """The size of the file and its statistics."""
        self._writer.close()
        size = int(self._sink.tell())
        self._sink.close()
        found = from_parquet_metadata(self._footers[0], self._stats, nan=self._floats.nan)
        return size, to_json(found)


class FileWriter:
    """Writes the fitted rows of one table and tells which files came of it."""

    def __init__(self, target: Target, now: int, wrote: Callable[[list[str]], None]) -> None:
        self.target = target
        self.adds: list[Add] = []
        self.num_rows = 0
        self._now = now
        self._wrote = wrote
        self._place, self._root = filesystem(target.location)
        metadata = target.metadata
        schema = parse_schema(metadata.schema_string)
        mode = mapping_mode(metadata.configuration)
        fields = [schema.field(name) for name in metadata.partition_columns]
        self._partition = [(f.physical_name(mode), f.type) for f in fields if f is not None]
        self._by = list(metadata.partition_columns)
        names = {name for name, _ in self._partition}
        physical = physical_arrow_schema(schema, mode)
        self._schema = loose_schema(pa.schema([f for f in physical if f.name not in names]))
        self._stats = stats_columns(schema, metadata.partition_columns, metadata.configuration)
        self._open: dict[tuple[Any, ...], _OpenFile] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        """Let go of what was begun and not finished; its owner removes the files."""
        for file in self._open.values():
            with suppress(OSError, pa.ArrowException):
                file.close()

    def write(self, rows: pa.Table) -> None:
        """Write rows that fit the table already."""
        self.num_rows += rows.num_rows
        try:
            for values, part in split(rows, self._by):
                self._write_part(values, part)
        except OSError as e:
            raise self._failed(e) from e
        except OverflowError as e:
            raise InvalidArgument(
                f"{self.target.table}: a partition value lies beyond the year 9999: {e}",
                argument="data",
            ) from e

    def _write_part(self, values: tuple[Any, ...], rows: pa.Table) -> None:
        key = tuple(serialize(v, k) for v, (_, k) in zip(values, self._partition, strict=True))
        for piece in self._pieces(relabelled(rows, self._schema)):
            file = self._open.pop(key, None) or self._start(key)
            self._open[key] = file  # most recent last
            if file.write(piece) >= self.target.file_size:
                self._finish(key)
            elif len(self._open) > _OPEN_FILES:
                self._finish(next(iter(self._open)))

    def _pieces(self, rows: pa.Table) -> Iterator[pa.Table]:
        """Row groups, none much larger than a file is to be."""
        fitting = rows.num_rows * self.target.file_size // max(rows.nbytes, 1)
        step = min(max(fitting, 1), ROW_GROUP)
        return (rows.slice(start, step) for start in range(0, rows.num_rows, step))

    def _start(self, key: tuple[str | None, ...]) -> _OpenFile:
        names = (name for name, _ in self._partition)
        folder = hive_path(zip(names, key, strict=True))
        if any(len(part.encode()) > _NAME_BYTES for part in folder.split("/")):
            folder = ""  # for people only: the log says what a file's partition is
        number, codec = len(self.adds) + len(self._open), self.target.compression
        name = f"part-{number:05d}-{uuid.uuid4()}.{codec}.parquet"
        path = "/".join(filter(None, [self.target.folder, folder, name]))
        self._wrote([f"{self.target.location}/{encode(path)}"])
        full = f"{self._root}/{path}"
        self._place.create_dir(full.rpartition("/")[0], recursive=True)
        sink = self._place.open_output_stream(full)
        return _OpenFile(path, sink, self._schema, self.target.compression, self._stats)

    def _finish(self, key: tuple[str | None, ...]) -> None:
        file = self._open.pop(key)
        size, stats = file.close()
        names = (name for name, _ in self._partition)
        self.adds.append(
            Add(
                path=encode(file.path),
                partition_values=dict(zip(names, key, strict=True)),
                size=size,
                modification_time=self._now,
                data_change=True,
                stats=stats,
            )
        )

    def close(self) -> list[Add]:
        """Finish every file; the adds in the order the files were begun."""
        try:
            for key in list(self._open):
                self._finish(key)
        except OSError as e:
            raise self._failed(e) from e
        return self.adds

    def _failed(self, error: OSError) -> StorageError:
        return StorageError(
            f"{self.target.table}: cannot write to {self.target.location}: {error}",
            path=self.target.location,
        )
