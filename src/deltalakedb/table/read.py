"""Rows of a snapshot, as Arrow: its files by the log, never by listing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from deltalakedb.errors import InvalidArgument, StorageError, UnsupportedByBackend
from deltalakedb.log.base import Snapshot, TxnLogReader
from deltalakedb.model.arrow import arrow_schema, physical_arrow_schema
from deltalakedb.model.evolve import check_type_changes
from deltalakedb.model.expr import Expr
from deltalakedb.model.expr import columns as columns_of
from deltalakedb.model.partition import deserialize
from deltalakedb.model.paths import decode, is_absolute
from deltalakedb.model.protocol import check_read
from deltalakedb.model.schema import StructType, mapping_mode
from deltalakedb.storage.base import filesystem
from deltalakedb.table import arguments
from deltalakedb.table.arrow_expr import compile_scan
from deltalakedb.table.nested import loose_schema, relabelled

_SCAN_COLUMNS = ("path", "partition_values", "size")


@dataclass(frozen=True)
class ScanFile:
    """A file to read: where, how large, and the values of its partition columns as text."""

    path: str
    size: int
    partition_values: dict[str, str | None]


def scan_files(reader: TxnLogReader, snapshot: Snapshot, where: Expr | None) -> Iterable[ScanFile]:
    """The snapshot's files that may hold matching rows."""
    decoder = msgspec.json.Decoder(dict[str, str | None])
    for batch in reader.files(snapshot, where, _SCAN_COLUMNS):
        paths, values, sizes = (column.to_pylist() for column in batch.columns)
        for path, value, size in zip(paths, values, sizes, strict=True):
            yield ScanFile(path, size, decoder.decode(value) if value != "{}" else {})


class Scan:
    """Reads files of one snapshot's schema, whichever files they are."""

    def __init__(self, snapshot: Snapshot) -> None:
        check_read(snapshot.protocol, table=snapshot.table)
        check_type_changes(snapshot.schema, table=snapshot.table)
        self.snapshot = snapshot
        self.mode = mapping_mode(snapshot.metadata.configuration)
        self.schema = snapshot.schema
        self.physical = loose_schema(physical_arrow_schema(self.schema, self.mode))
        self.filesystem, self.root = filesystem(snapshot.location)
        self._format = ds.ParquetFileFormat()
        self._partition_fields = [
            (field, field.physical_name(self.mode), self.physical.field(i).type)
            for i, field in enumerate(self.schema.fields)
            if field.name in snapshot.metadata.partition_columns
        ]

    def dataset(self, files: Iterable[ScanFile]) -> ds.FileSystemDataset:
        """The files as a dataset, in physical column names."""
        fragments = [self._fragment(file) for file in files]
        return ds.FileSystemDataset(fragments, self.physical, self._format, self.filesystem)

    def _fragment(self, file: ScanFile) -> Any:
        if is_absolute(file.path):
            place, path = filesystem(file.path)
        else:
            place, path = self.filesystem, f"{self.root}/{decode(file.path)}"
        return self._format.make_fragment(
            path,
            filesystem=place,
            partition_expression=self._partition(file.partition_values),
            file_size=file.size,
        )

    def _partition(self, values: dict[str, str | None]) -> Any:
        found = None
        for field, name, kind in self._partition_fields:
            value = deserialize(values.get(name), field.type)
            term = (
                pc.field(name).is_null()
                if value is None
                else pc.field(name) == pa.scalar(value, kind)
            )
            found = term if found is None else found & term
        return found

    def to_table(
        self,
        files: Iterable[ScanFile],
        *,
        columns: Sequence[str] | None = None,
        where: Expr | None = None,
    ) -> pa.Table:
        """The rows that match, in the logical names and types of the table."""
        names = self._columns(columns)
        physical = [self._physical(name) for name in names]
        scan, rest = (None, None) if where is None else compile_scan(where, physical=self._rename)
        needed = dict.fromkeys(physical)
        if where is not None and rest is not None:
            needed |= {self._rename(path[:1])[0]: None for path in columns_of(where)}
        try:
            found = self.dataset(files).to_table(columns=list(needed), filter=scan)
            if rest is not None:
                found = found.filter(rest).select(physical)
        except (OSError, pa.ArrowException) as e:
            raise StorageError(
                f"{self.snapshot.table}: a data file cannot be read: {e}",
                path=self.snapshot.location,
            ) from e
        target = arrow_schema(self.schema)
        return relabelled(found, pa.schema([target.field(n) for n in names]))

    def _columns(self, columns: Sequence[str] | None) -> list[str]:
        if columns is None:
            return self.schema.names
        names = []
        for name in arguments.names("columns", columns):
            field = self.schema.field(name)
            if field is None:
                raise InvalidArgument(
                    f"{self.snapshot.table} has no column {name!r};"
                    f" columns: {', '.join(self.schema.names)}",
                    argument="columns",
                    allowed=tuple(self.schema.names),
                )
            names.append(field.name)
        return names

    def _physical(self, name: str) -> str:
        field = self.schema.field(name)
        assert field is not None
        return field.physical_name(self.mode)

    def _rename(self, path: tuple[str, ...]) -> tuple[str, ...]:
        """A logical path as it is in the files."""
        found = self.schema.at(path)
        assert found is not None, "resolved when the expression was parsed"
        return tuple(field.physical_name(self.mode) for field in found)


def to_arrow(
    reader: TxnLogReader,
    snapshot: Snapshot,
    columns: Sequence[str] | None,
    where: Expr | None,
) -> pa.Table:
    """The rows of a snapshot that match."""
    files = scan_files(reader, snapshot, where)
    return Scan(snapshot).to_table(files, columns=columns, where=where)


def to_dataset(reader: TxnLogReader, snapshot: Snapshot, where: Expr | None) -> ds.Dataset:
    """The files that may match, as a lazy dataset.

    Under column mapping Arrow would show physical names, which nobody should build on.
    """
    scan = Scan(snapshot)
    if scan.mode != "none":
        raise UnsupportedByBackend(
            f"{snapshot.table} has column mapping, which an Arrow dataset cannot express;"
            " to_arrow() reads it",
            backend="pyarrow",
            operation="dataset with column mapping",
        )
    return scan.dataset(scan_files(reader, snapshot, where))


def count(reader: TxnLogReader, snapshot: Snapshot, where: Expr | None) -> int:
    """How many rows match; from the log alone if all of them do and their number is known."""
    if where is None and snapshot.num_records is not None:
        return snapshot.num_records
    narrow = [] if where is None else sorted({path[0] for path in columns_of(where)})
    found: int = to_arrow(reader, snapshot, narrow or snapshot.schema.names[:1], where).num_rows
    return found


def touches_only(expr: Expr, names: Iterable[str]) -> bool:
    """Whether an expression reads no other columns than these."""
    return {path[0] for path in columns_of(expr)} <= set(names)


def partition_row(schema: StructType, file: ScanFile, mode: Any) -> dict[str, Any]:
    """The partition values of a file, typed, by logical name."""
    return {
        field.name: deserialize(file.partition_values[physical], field.type)
        for field in schema.fields
        if (physical := field.physical_name(mode)) in file.partition_values
    }
