"""A catalog: the tables of one database, and transactions over them."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Self

import msgspec

from deltalakedb.config import Config
from deltalakedb.errors import InvalidArgument, TableAlreadyExists, TableNotFound
from deltalakedb.log.base import CommitRecord, Snapshot
from deltalakedb.log.registry import Registry, TableEntry
from deltalakedb.log.sql_reader import READERS, SqlTxnLogReader
from deltalakedb.log.sql_writer import SqlTxnLogWriter
from deltalakedb.sql import connect
from deltalakedb.storage.base import remove_uris, resolve
from deltalakedb.table import arguments
from deltalakedb.table.folders import folder_name
from deltalakedb.table.table import DeltaTable
from deltalakedb.table.transaction import Transaction
from deltalakedb.times import Clock, system_clock
from deltalakedb.txn.multi import Limits, MultiTableTransaction, Provenance
from deltalakedb.txn.retry import Backoff
from deltalakedb.uri import DeltaSqlUri, parse

if TYPE_CHECKING:
    from types import TracebackType


class Catalog:
    """The tables of one SQLite, DuckDB or Postgres catalog.

    Opening it creates the catalog's own tables if they are missing, unless the configuration says
    `error`. It may be used from several threads.
    """

    def __init__(
        self,
        uri: str | DeltaSqlUri | None = None,
        *,
        config: Config | None = None,
        clock: Clock = system_clock,
    ) -> None:
        self.config = config or Config.from_env()
        found = self.config.catalog if uri is None else uri
        if not isinstance(found, DeltaSqlUri):
            found = parse(arguments.text("uri", found))
        self.uri = found.catalog
        self.clock = clock
        self.database = connect(self.uri, self.config)
        self.registry = Registry(self.database)
        self._writer = SqlTxnLogWriter(self.database, clock)

    def __repr__(self) -> str:
        return f"Catalog({str(self.uri)!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Give the database's connections back."""
        self.database.close()

    # --- tables -----------------------------------------------------------------------------------

    def list_tables(self) -> list[str]:
        """Names of all tables."""
        return [entry.name for entry in self.registry.tables()]

    def entry(self, name: str) -> TableEntry:
        """What the catalog knows of a table without opening it."""
        found = self.registry.find(arguments.text("name", name))
        if found is None:
            names = self.list_tables()
            listed = ", ".join(names[:20]) or "none"
            raise TableNotFound(
                f"no table {name!r} in {self.uri}; tables: {listed}",
                table=name,
                catalog=str(self.uri),
                available=names,
            )
        return found

    def table(
        self,
        name: str,
        version: int | None = None,
        timestamp: datetime | str | int | None = None,
    ) -> DeltaTable:
        """A table at its latest version, a given one, or as of a moment."""
        return DeltaTable.of(
            self.uri.with_table(name), self.reader(name), version, timestamp, catalog=self
        )

    def reader(self, name: str) -> SqlTxnLogReader:
        """Reads one table's log."""
        return READERS[self.uri.engine](self.database, arguments.text("table", name))

    def create_table(
        self,
        name: str,
        schema: Any,
        *,
        location: str | None = None,
        partition_by: Sequence[str] | str = (),
        properties: Mapping[str, object] | None = None,
        description: str | None = None,
        mode: str = "error",
    ) -> DeltaTable:
        """Create an empty table.

        Args:
            name: Any text that is not empty; it need not be an identifier.
            schema: A pyarrow schema, a list of (name, pyarrow type), a Delta StructType or its
                JSON.
            location: Where the data goes; by default a folder beside an embedded catalog.
            partition_by: Columns whose values split the files.
            properties: Delta's table properties, for instance ``{"delta.appendOnly": "true"}``.
            description: For people.
            mode: ``error`` refuses a name that is taken, ``ignore`` returns that table.
        """
        if mode not in ("error", "ignore"):
            raise InvalidArgument(
                f"mode {mode!r}: it takes error or ignore",
                argument="mode",
                allowed=("error", "ignore"),
            )
        try:
            with self.transaction(pins={}) as tx:
                tx.create_table(
                    name,
                    schema,
                    location=location,
                    partition_by=partition_by,
                    properties=properties,
                    description=description,
                )
        except TableAlreadyExists as e:
            if mode == "error" or e.table != name:
                raise
        return self.table(name)

    def drop_table(self, name: str) -> None:
        """Take the table out of the catalog. Its data files stay where they are."""
        self.registry.drop(arguments.text("name", name))

    def rename_table(self, name: str, new_name: str) -> None:
        """Give the table another name. Its location stays."""
        self.registry.rename(arguments.text("name", name), arguments.name("new_name", new_name))

    def new_location(self, name: str, location: str | None) -> str:
        """Where a new table's files go, as an absolute URI."""
        arguments.name("name", name)
        if location is not None:
            return resolve(arguments.path("location", location))
        root = self.config.warehouse
        if root is None and self.uri.path and not self.uri.in_memory:
            stem = self.uri.path.rpartition(".")[0] or self.uri.path
            root = f"{stem}_tables"
        if root is None:
            raise InvalidArgument(
                f"where do the files of {name!r} go? Give location=..., or set"
                " DELTALAKEDB_WAREHOUSE to a folder for all new tables",
                argument="location",
            )
        place = f"{resolve(root)}/{folder_name(name)}"
        taken = {entry.location for entry in self.registry.tables()}
        return place if place not in taken else f"{place}-{uuid.uuid4().hex[:8]}"

    # --- history ----------------------------------------------------------------------------------

    def transactions(self, limit: int | None = None) -> list[CommitRecord]:
        """Every commit of every table, newest first."""
        return self.registry.transactions(arguments.limit(limit))

    def at(
        self,
        *,
        transaction_id: str | None = None,
        timestamp: datetime | str | int | None = None,
    ) -> CatalogSnapshot:
        """All tables as of one transaction, or of one moment."""
        if (transaction_id is None) == (timestamp is None):
            raise InvalidArgument("give a transaction_id or a timestamp", argument="transaction_id")
        if transaction_id is not None:
            id_ = arguments.text("transaction_id", transaction_id)
            return CatalogSnapshot(self, seq=self.registry.seq_of(id_))
        ms = arguments.moment("timestamp", timestamp)
        self.database.settle()
        return CatalogSnapshot(self, timestamp=ms)

    # --- transactions -----------------------------------------------------------------------------

    def begin(
        self,
        *,
        max_tables: int | None = None,
        max_files_per_table: int | None = None,
        timeout_secs: float | None = None,
        transaction_id: str | None = None,
        message: str | None = None,
        run_id: str | None = None,
    ) -> Transaction:
        """A transaction over tables of this catalog, all of them seen as of now.

        The limits are the configuration's unless they are given. See `deltalakedb.begin`.
        """
        asked = {
            "max_tables": max_tables,
            "max_files_per_table": max_files_per_table,
            "timeout_secs": timeout_secs,
        }
        given = {name: value for name, value in asked.items() if value is not None}
        config = msgspec.structs.replace(self.config, **given)  # refuses what is out of range
        return self.transaction(
            pins=self.registry.heads(),
            limits=Limits(config.max_tables, config.max_files_per_table, config.timeout_secs),
            transaction_id=transaction_id,
            message=message,
            run_id=run_id,
        )

    def transaction(
        self,
        *,
        pins: Mapping[str, int],
        limits: Limits = Limits(),
        transaction_id: str | None = None,
        message: str | None = None,
        run_id: str | None = None,
    ) -> Transaction:
        """A transaction for the verbs of one table: without limits.

        A table is seen at its version in `pins`, or as of its first use.
        """
        if transaction_id is not None:
            arguments.name("transaction_id", transaction_id)
        why = (
            arguments.optional_text("message", message),
            arguments.optional_text("run_id", run_id),
        )
        inner = MultiTableTransaction(
            self._writer,
            limits=limits,
            provenance=Provenance(self.config.committer, *why),
            transaction_id=transaction_id,
            pins=pins,
            backoff=Backoff(
                self.config.retry_attempts,
                self.config.retry_backoff_ms / 1000,
                self.config.retry_max_backoff_ms / 1000,
            ),
            remove_files=remove_uris,
        )
        return Transaction(self, inner)


class CatalogSnapshot:
    """All tables of a catalog as of one transaction or moment. Read only."""

    def __init__(
        self, catalog: Catalog, *, seq: int | None = None, timestamp: int | None = None
    ) -> None:
        self._catalog = catalog
        self._seq = seq
        self._timestamp = timestamp

    def table(self, name: str) -> DeltaTable:
        """The table as it was."""
        snapshot = self._snapshot(name)
        return DeltaTable.of(
            self._catalog.uri.with_table(name), self._catalog.reader(name), snapshot.version
        )

    def list_tables(self) -> list[str]:
        """Names of the tables that existed then."""
        return list(self.versions())

    def versions(self) -> dict[str, int]:
        """The version of every table that existed then."""
        return self._catalog.registry.versions_at(seq=self._seq, timestamp=self._timestamp)

    def _snapshot(self, name: str) -> Snapshot:
        reader = self._catalog.reader(name)
        return reader.snapshot(timestamp=self._timestamp, seq=self._seq)
