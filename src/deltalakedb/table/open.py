"""From a URI to a reader, and the calls that need nothing but a URI."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

import msgspec

from deltalakedb.config import Config
from deltalakedb.errors import InvalidArgument, TableAlreadyExists, UriError
from deltalakedb.log.files import FileTxnLogReader
from deltalakedb.table import arguments
from deltalakedb.table.catalog import Catalog
from deltalakedb.table.table import DeltaTable
from deltalakedb.uri import DeltaSqlUri, is_deltasql, parse

if TYPE_CHECKING:
    from deltalakedb.log.base import CommitResult, TxnLogReader
    from deltalakedb.model.expr import Predicate
    from deltalakedb.table.transaction import Transaction

_open: WeakValueDictionary[str, Catalog] = WeakValueDictionary()
_lock = Lock()


def catalog_of(uri: DeltaSqlUri) -> Catalog:
    """The catalog of a URI; the one that is open already while anything still holds it."""
    key = absolute(uri.catalog).render()
    with _lock:
        found = _open.get(key)
        if found is None or not found.database.alive:
            found = _open[key] = Catalog(uri)
        return found


def absolute(uri: DeltaSqlUri) -> DeltaSqlUri:
    """The URI with the path of an embedded catalog spelled out: folders change, catalogs do not."""
    if not uri.path or uri.in_memory:
        return uri
    return msgspec.structs.replace(uri, path=os.path.abspath(uri.path))


def open_location(uri: str) -> tuple[DeltaSqlUri | str, TxnLogReader, Catalog | None]:
    """The reader for a table, and its catalog if it has one."""
    if not is_deltasql(arguments.text("uri", uri)):
        return uri, FileTxnLogReader(uri), None
    found = parse(uri)
    if found.table is None:
        raise UriError(
            f"{found} names a catalog; add ?table=NAME to name a table in it", uri=str(found)
        )
    catalog = catalog_of(found)
    return found, catalog.reader(found.table), catalog


def begin(
    uri: str | None = None,
    *,
    max_tables: int | None = None,
    max_files_per_table: int | None = None,
    timeout_secs: float | None = None,
    transaction_id: str | None = None,
    message: str | None = None,
    run_id: str | None = None,
) -> Transaction:
    """Begin a transaction over the tables of one catalog, the default one without a URI.

    A clean end of the ``with`` block commits everything at once; an exception rolls everything
    back and removes the files written so far.

    Args:
        uri: The catalog.
        max_tables: How many tables it may touch (10 by default).
        max_files_per_table: How many files it may add or remove in one table (1,000 by default).
        timeout_secs: How long it may stay open (60 by default).
        transaction_id: An id of your own. Committing the same id twice happens once: the second
            commit returns what the first one did.
        message: Recorded with the commit.
        run_id: Recorded with the commit.
    """
    place = Config.from_env().catalog if uri is None else parse(arguments.text("uri", uri))
    catalog = catalog_of(place)
    return catalog.begin(
        max_tables=max_tables,
        max_files_per_table=max_files_per_table,
        timeout_secs=timeout_secs,
        transaction_id=transaction_id,
        message=message,
        run_id=run_id,
    )


def write_deltalake(
    table_or_uri: str | DeltaTable,
    data: Any,
    *,
    mode: str = "append",
    partition_by: Sequence[str] | str | None = None,
    schema_mode: str | None = None,
    predicate: Predicate | None = None,
    location: str | None = None,
    configuration: Mapping[str, object] | None = None,
    description: str | None = None,
    target_file_size: int | None = None,
    transaction_id: str | None = None,
    message: str | None = None,
) -> CommitResult | None:
    """Write rows to one table, creating it if it is missing.

    Args:
        table_or_uri: A table, or ``deltasql://...?table=NAME``.
        data: A pyarrow Table, RecordBatch or RecordBatchReader, a pandas or Polars DataFrame, a
            list of record batches or of dicts, or anything with ``__arrow_c_stream__``.
        mode: ``append``, ``overwrite``, ``error`` (the table must not exist yet) or ``ignore`` (do
            nothing if it does).
        partition_by: Columns to partition a new table by.
        schema_mode: ``merge`` adds columns the data has and the table has not; ``overwrite``, with
            mode ``overwrite``, replaces the schema.
        predicate: With mode ``overwrite``: replace only the rows that match, with rows that match.
        location: Where a new table's files go.
        configuration: Properties of a new table.
        description: Of a new table.
        target_file_size: Bytes after which a new file is begun.
        transaction_id: Committing the same id twice happens once.
        message: Recorded with the commit.

    Returns:
        The commit, or None if `ignore` found the table there.
    """
    table = table_or_uri if isinstance(table_or_uri, DeltaTable) else None
    if table is not None:
        catalog, name = table.require_catalog(), table.snapshot.table
    else:
        uri = _table_uri(arguments.text("table_or_uri", table_or_uri))
        catalog, name = catalog_of(uri), str(uri.table)
    if mode in ("error", "ignore") and catalog.registry.find(name):
        if mode == "ignore":
            return None
        raise TableAlreadyExists(
            f"table {name!r} already exists; mode='append' or 'overwrite' writes to it",
            table=name,
        )
    with catalog.transaction(pins={}, transaction_id=transaction_id, message=message) as tx:
        tx.write(
            name,
            data,
            mode=mode,
            partition_by=partition_by,
            schema_mode=schema_mode,
            predicate=predicate,
            location=location,
            configuration=configuration,
            description=description,
            target_file_size=target_file_size,
        )
    if table is not None:
        table.update_incremental()
    return tx.result


def _table_uri(text: str) -> DeltaSqlUri:
    if not is_deltasql(text):
        raise InvalidArgument(
            f"{text} is a file-backed table, which is only read; write to"
            " deltasql://...?table=NAME",
            argument="table_or_uri",
        )
    uri = parse(text)
    if uri.table is None:
        raise UriError(f"{uri} names a catalog; add ?table=NAME", uri=str(uri))
    return uri
