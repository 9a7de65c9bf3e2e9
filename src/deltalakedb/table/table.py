"""One table, as its user sees it. Every method delegates to the verb's own module."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from deltalakedb.errors import InvalidArgument, UnsupportedByBackend
from deltalakedb.log.base import CommitRecord, Snapshot, TxnLogReader
from deltalakedb.model.actions import Add, Metadata, Protocol
from deltalakedb.model.schema import StructType
from deltalakedb.table import arguments
from deltalakedb.uri import DeltaSqlUri, is_deltasql, parse

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa
    import pyarrow.dataset as ds

    from deltalakedb.model.expr import Expr, Predicate
    from deltalakedb.table.alter import Alter
    from deltalakedb.table.catalog import Catalog

Moment = datetime | str | int
OnRead = Callable[["Expr | None"], None]


class DeltaTable:
    """A table at one version. It stays at that version until `update_incremental` is called.

    Args:
        uri: ``deltasql://...?table=NAME``, or the location of a table with its own log.
        version: The version to open; the latest by default.
        timestamp: Open the last version at or before this moment instead.
    """

    def __init__(
        self,
        uri: str,
        version: int | None = None,
        timestamp: Moment | None = None,
    ) -> None:
        from deltalakedb.table.open import open_location

        location, reader, catalog = open_location(uri)
        self._uri: DeltaSqlUri | str = location
        self._reader = reader
        self._catalog = catalog
        self._on_read: OnRead | None = None
        self._snapshot = _snapshot(reader, version, timestamp)

    @classmethod
    def open(
        cls, uri: str, *, version: int | None = None, timestamp: Moment | None = None
    ) -> DeltaTable:
        """Open a table; the URI decides which log is read."""
        return cls(uri, version, timestamp)

    @classmethod
    def open_with_reader(
        cls,
        uri: str,
        reader: TxnLogReader,
        *,
        version: int | None = None,
        timestamp: Moment | None = None,
    ) -> DeltaTable:
        """Open a table through a reader of your own."""
        location = parse(uri) if is_deltasql(uri) else uri
        return cls.of(location, reader, version, timestamp)

    @classmethod
    def of(
        cls,
        uri: DeltaSqlUri | str,
        reader: TxnLogReader,
        version: int | None = None,
        timestamp: Moment | None = None,
        *,
        catalog: Catalog | None = None,
        on_read: OnRead | None = None,
    ) -> DeltaTable:
        """Of parts that are open already."""
        made = cls.__new__(cls)
        made._uri = uri
        made._reader = reader
        made._catalog = catalog
        made._on_read = on_read
        made._snapshot = _snapshot(reader, version, timestamp)
        return made

    def __repr__(self) -> str:
        return f"DeltaTable({str(self._uri)!r}, version={self.version()})"

    # --- what it is -------------------------------------------------------------------------------

    @property
    def snapshot(self) -> Snapshot:
        """Everything known of this version without looking at files."""
        return self._snapshot

    @property
    def table_uri(self) -> str:
        """Where the data lies."""
        return self._snapshot.location

    def version(self) -> int:
        """The version that is open."""
        return self._snapshot.version

    def schema(self) -> StructType:
        """Delta's own schema."""
        return self._snapshot.schema

    def metadata(self) -> Metadata:
        """Schema, partitioning, properties, name and description."""
        return self._snapshot.metadata

    def protocol(self) -> Protocol:
        """Versions and features a reader and a writer need."""
        return self._snapshot.protocol

    def history(self, limit: int | None = None) -> list[CommitRecord]:
        """Commits of the table, newest first."""
        return self._reader.history(arguments.limit(limit))

    def update_incremental(self) -> None:
        """Move on to the latest version."""
        self._snapshot = self._reader.snapshot()

    def load_as_version(self, version: int | Moment) -> None:
        """Move to another version, or to the version as of a moment."""
        if isinstance(version, datetime | str):
            self._snapshot = _snapshot(self._reader, None, version)
        else:
            self._snapshot = _snapshot(self._reader, arguments.number("version", version), None)

    def transaction_version(self, app_id: str) -> int | None:
        """How far an application has come in writing this table."""
        return self._reader.txn_version(arguments.text("app_id", app_id), self._snapshot)

    # --- files ------------------------------------------------------------------------------------

    def files(self, filter: Predicate | None = None) -> list[str]:
        """Paths of the live files that may match, as in the log."""
        from deltalakedb.table.listing import paths

        return paths(self._reader, self._snapshot, self._where(filter))

    def file_uris(self, filter: Predicate | None = None) -> list[str]:
        """Full URIs of the live files that may match."""
        from deltalakedb.model.paths import join

        return [join(self._snapshot.location, path) for path in self.files(filter)]

    def get_add_actions(self, flatten: bool = False, filter: Predicate | None = None) -> pa.Table:
        """The live files as Arrow: path, size, time, partition values and statistics.

        With `flatten`, a column for each partition column and statistic (``partition.x``,
        ``min.x``, ``max.x``, ``null_count.x``) instead of structs.
        """
        from deltalakedb.table.listing import add_actions

        return add_actions(self._reader, self._snapshot, self._where(filter), flatten=flatten)

    def live_files(self) -> Iterator[Add]:
        """The live files as the actions that added them."""
        from deltalakedb.table.work import live_files

        return live_files(self._reader, self._snapshot)

    def partitions(self) -> list[dict[str, Any]]:
        """The combinations of partition values that have files."""
        from deltalakedb.table.listing import partitions

        return partitions(self._reader, self._snapshot)

    # --- rows -------------------------------------------------------------------------------------

    def count(self, filter: Predicate | None = None) -> int:
        """How many rows there are; without a filter from metadata alone where that is exact."""
        from deltalakedb.table.read import count

        return count(self._reader, self._read(filter), self._where(filter))

    def to_arrow(
        self, columns: Sequence[str] | None = None, filter: Predicate | None = None
    ) -> pa.Table:
        """The rows as an Arrow table; `filter` keeps the rows for which it is true."""
        from deltalakedb.table.read import to_arrow

        return to_arrow(self._reader, self._read(filter), columns, self._where(filter))

    def to_pyarrow_table(
        self, columns: Sequence[str] | None = None, filter: Predicate | None = None
    ) -> pa.Table:
        """As `to_arrow`, under delta-rs' name."""
        return self.to_arrow(columns, filter)

    def to_pyarrow_dataset(self, filter: Predicate | None = None) -> ds.Dataset:
        """A lazy dataset over the live files that may match."""
        from deltalakedb.table.read import to_dataset

        return to_dataset(self._reader, self._read(filter), self._where(filter))

    def to_pandas(
        self, columns: Sequence[str] | None = None, filter: Predicate | None = None
    ) -> pd.DataFrame:
        """The rows as a pandas DataFrame."""
        return self.to_arrow(columns, filter).to_pandas()

    def to_polars(
        self, columns: Sequence[str] | None = None, filter: Predicate | None = None
    ) -> pl.DataFrame:
        """The rows as a Polars DataFrame."""
        from deltalakedb.extras import require

        made: pl.DataFrame = require("polars", "polars").from_arrow(self.to_arrow(columns, filter))
        return made

    # --- changes ----------------------------------------------------------------------------------

    @property
    def alter(self) -> Alter:
        """Columns, properties, constraints and features."""
        from deltalakedb.table.alter import Alter

        return Alter(self)

    def delete(self, predicate: Predicate | None = None) -> dict[str, int]:
        """Remove the rows that match, all without a predicate; where none do, nothing happens.

        Returns:
            What was done: ``num_deleted_rows`` (where the log knows), ``num_copied_rows``,
            ``num_removed_files`` and ``num_added_files``.
        """
        with self.require_catalog().transaction(pins={}) as tx:
            metrics = tx.delete(self._snapshot.table, predicate)
            if not metrics["num_removed_files"]:
                tx.rollback()
        self.update_incremental()
        return metrics

    def require_catalog(self) -> Catalog:
        """The catalog that writes go through."""
        if self._catalog is None:
            raise UnsupportedByBackend(
                f"{self._uri} is read only here: a table is written through its catalog"
                " (deltasql://...?table=NAME), and inside a transaction through the transaction",
                backend="files",
                operation="write",
            )
        return self._catalog

    # --- inside -----------------------------------------------------------------------------------

    def _where(self, filter: Predicate | None) -> Expr | None:
        if filter is None:
            return None
        from deltalakedb.model.expr import parse as parse_expression

        return parse_expression(filter, self._snapshot.schema)

    def _read(self, filter: Predicate | None) -> Snapshot:
        """The snapshot, with the read noted where it happens inside a transaction."""
        if self._on_read is not None:
            self._on_read(self._where(filter))
        return self._snapshot


def _snapshot(reader: TxnLogReader, version: int | None, timestamp: Moment | None) -> Snapshot:
    if version is not None and timestamp is not None:
        raise InvalidArgument("give a version or a timestamp, not both", argument="version")
    if version is not None:
        return reader.snapshot(arguments.number("version", version))
    ms = None if timestamp is None else arguments.moment("timestamp", timestamp)
    return reader.snapshot(None, ms)
