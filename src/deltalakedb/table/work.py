"""What a verb works with: the table as its transaction sees it, and where new files go."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from deltalakedb.errors import UnsupportedByBackend
from deltalakedb.log import rows
from deltalakedb.log.base import Snapshot, TxnLogReader
from deltalakedb.model.actions import Add, Metadata, Remove
from deltalakedb.model.protocol import check_write
from deltalakedb.table.folders import folder_name
from deltalakedb.table.parquet import FileWriter, Target
from deltalakedb.table.properties import CODECS
from deltalakedb.times import Clock

if TYPE_CHECKING:
    from deltalakedb.model.expr import Expr

_ADD_COLUMNS = tuple(c.strip() for c in rows.ADD.split(",") if c.strip() != "extra")


def live_files(
    reader: TxnLogReader, snapshot: Snapshot, where: Expr | None = None
) -> Iterator[Add]:
    """Files of a snapshot that may match, as they were added."""
    for batch in reader.files(snapshot, where, _ADD_COLUMNS):
        columns = [column.to_pylist() for column in batch.columns]
        for row in zip(*columns, strict=True):
            yield rows.add_from((*row, None))


@dataclass(frozen=True)
class Work:
    """One table inside one transaction."""

    reader: TxnLogReader
    transaction_id: str
    clock: Clock
    wrote: Callable[[list[str]], None]
    target_file_size: int

    @cached_property
    def snapshot(self) -> Snapshot:
        """The table, own changes included."""
        return self.reader.snapshot()

    def require_writable(self) -> None:
        """Refuse a table with features whose rows this build cannot write."""
        check_write(
            self.snapshot.protocol, metadata=self.snapshot.metadata, table=self.snapshot.table
        )

    def files(self, where: Expr | None = None) -> Iterator[Add]:
        """Live files that may match."""
        return live_files(self.reader, self.snapshot, where)

    def remove(self, file: Add) -> Remove:
        """The action that takes a live file out of the table."""
        return Remove(
            path=file.path,
            data_change=True,
            deletion_timestamp=self.clock(),
            extended_file_metadata=True,
            partition_values=file.partition_values,
            size=file.size,
            tags=file.tags,
            deletion_vector=file.deletion_vector,
            base_row_id=file.base_row_id,
            default_row_commit_version=file.default_row_commit_version,
        )

    def writer(self, metadata: Metadata, target_file_size: int | None = None) -> FileWriter:
        """Writes new files of the table, in this transaction's folder."""
        codec = metadata.configuration.get("delta.parquet.compression.codec", "snappy").lower()
        if codec not in CODECS:
            raise UnsupportedByBackend(
                f"{self.snapshot.table} asks for Parquet files compressed by {codec!r}; this build"
                f" has {', '.join(CODECS)}",
                backend="pyarrow",
                operation=f"compression by {codec}",
            )
        target = Target(
            table=self.snapshot.table,
            location=self.snapshot.location,
            folder=f"tx-{folder_name(self.transaction_id)}",
            metadata=metadata,
            file_size=target_file_size or self.target_file_size,
            compression="none" if codec == "uncompressed" else codec,
        )
        return FileWriter(target, self.clock(), self.wrote)
