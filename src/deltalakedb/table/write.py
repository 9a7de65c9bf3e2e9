"""Append and overwrite, whole or by predicate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from deltalakedb.errors import ConstraintViolation, InvalidArgument, SchemaMismatch
from deltalakedb.log.base import ReadSet, Snapshot
from deltalakedb.model.actions import Metadata, Protocol
from deltalakedb.model.arrow import delta_schema
from deltalakedb.model.expr import TRUE, Expr, parse
from deltalakedb.model.schema import StructType, parse_schema
from deltalakedb.storage.base import resolve
from deltalakedb.table import arguments, arrow_expr
from deltalakedb.table.conform import Conformer
from deltalakedb.table.data import to_reader
from deltalakedb.table.delete import Removal, remove_rows
from deltalakedb.table.metadata import changed, evolved, without_void
from deltalakedb.table.parquet import chunks
from deltalakedb.table.properties import checked
from deltalakedb.table.work import Work
from deltalakedb.txn.staged import Change

MODES = ("append", "overwrite", "error", "ignore")


@dataclass(frozen=True)
class WriteOptions:
    """How rows are written; `write_deltalake` explains each."""

    mode: str = "append"
    partition_by: Sequence[str] | str | None = None
    schema_mode: str | None = None
    predicate: Any = None
    location: str | None = None
    configuration: Mapping[str, object] | None = None
    description: str | None = None
    target_file_size: int | None = None

    def __post_init__(self) -> None:
        def refuse(argument: str, text: str, allowed: Any = None) -> None:
            raise InvalidArgument(text, argument=argument, allowed=allowed)

        if self.mode not in MODES:
            refuse("mode", f"mode {self.mode!r}: it takes {', '.join(MODES)}", MODES)
        if self.predicate is not None and self.mode != "overwrite":
            refuse("predicate", f"a predicate needs mode='overwrite', not {self.mode!r}")
        if self.schema_mode == "overwrite" and self.mode != "overwrite":
            refuse("schema_mode", "schema_mode='overwrite' needs mode='overwrite'")
        if self.schema_mode == "overwrite" and self.predicate is not None:
            refuse("schema_mode", "schema_mode='overwrite' replaces all rows: leave out predicate")
        if self.target_file_size is not None:
            arguments.number("target_file_size", self.target_file_size, least=1)

    @property
    def creates(self) -> bool:
        """Whether a table that is missing is made."""
        return self.predicate is None

    def appending(self) -> WriteOptions:
        """The same, into a table that has just been created."""
        return replace(self, mode="append", schema_mode=None)


def as_delta_schema(schema: Any) -> StructType:
    """A Delta schema of whatever describes one: ours, Arrow's, its JSON, or data."""
    if isinstance(schema, StructType):
        return without_void(schema)
    if isinstance(schema, str):
        return parse_schema(schema)
    if not isinstance(schema, pa.Schema):
        schema = pa.schema(schema) if hasattr(schema, "__arrow_c_schema__") else _schema_of(schema)
    return without_void(delta_schema(schema))


def _schema_of(schema: Any) -> pa.Schema:
    try:
        return pa.schema(schema)
    except (TypeError, ValueError, pa.ArrowException) as e:
        raise InvalidArgument(
            f"{type(schema).__name__} is no schema: give a pyarrow schema, a list of"
            " (name, pyarrow type), a Delta StructType or its JSON",
            argument="schema",
        ) from e


def prepared(data: Any) -> pa.RecordBatchReader:
    """The data as a stream."""
    return to_reader(data)


def write(work: Work, data: Any, options: WriteOptions) -> Change:
    """Write the rows to files and plan the change that makes them part of the table."""
    work.require_writable()
    _require_same_table(work.snapshot, options)
    snapshot, batches = work.snapshot, prepared(data)
    metadata = _metadata(work, delta_schema(batches.schema), options)
    actions = changed(snapshot.table, snapshot.metadata, snapshot.protocol, metadata)
    where = _predicate(work, options)
    removal = Removal(()) if where is None else remove_rows(work, where)

    metadata = next((a for a in actions if isinstance(a, Metadata)), metadata)
    protocol = next((a for a in actions if isinstance(a, Protocol)), snapshot.protocol)
    conformer = Conformer(snapshot.table, metadata, protocol)
    with work.writer(metadata, options.target_file_size) as writer:
        for chunk in chunks(batches, batches.schema):
            rows = conformer.fit(chunk)
            if where is not None and where != TRUE:
                _require_matching(rows, where, snapshot.table)
            writer.write(rows)
        adds = writer.close()
    overwrite = where is not None
    return Change(
        operation="WRITE",
        mode=options.mode,
        actions=(*actions, *removal.removes, *removal.rewritten, *adds),
        parameters=_parameters(options, metadata, where),
        metrics={
            "numFiles": len(adds),
            "numOutputRows": writer.num_rows,
            "numOutputBytes": sum(a.size for a in adds),
        }
        | ({"numRemovedFiles": len(removal.removes)} if overwrite else {}),
        reads=_reads(where),
        fresh_files=True,
    )


def _require_same_table(snapshot: Snapshot, options: WriteOptions) -> None:
    """What only a new table takes must not say something else of one that is there."""
    given = checked(options.configuration or {})
    found = snapshot.metadata.configuration
    different = [key for key, value in given.items() if found.get(key, value) != value]
    if options.description not in (None, snapshot.metadata.description):
        different.append("description")
    if options.location is not None and resolve(options.location) != snapshot.location:
        different.append("location")
    if different:
        raise InvalidArgument(
            f"{snapshot.table} exists already, and its {different[0]} is another one: a write sets"
            " it for new tables only, alter changes it",
            argument=different[0],
        )


def _predicate(work: Work, options: WriteOptions) -> Expr | None:
    """Which rows are replaced: none for an append, all for a plain overwrite."""
    if options.mode != "overwrite":
        return None
    if options.predicate is None:
        return TRUE
    return parse(options.predicate, work.snapshot.schema)


def _reads(where: Expr | None) -> ReadSet:
    if where is None:
        return ReadSet()
    return ReadSet(whole_table=True) if where == TRUE else ReadSet(predicates=(where,))


def _metadata(work: Work, incoming: StructType, options: WriteOptions) -> Metadata:
    old = work.snapshot.metadata
    metadata = evolved(work.snapshot.table, old, incoming, options.schema_mode)
    asked = arguments.names("partition_by", options.partition_by)
    if options.schema_mode == "overwrite":
        kept = (incoming.field(name) for name in old.partition_columns)
        columns = asked or tuple(field.name for field in kept if field)
        return msgspec.structs.replace(metadata, partition_columns=columns)
    if asked and asked != old.partition_columns:
        raise SchemaMismatch(
            f"{work.snapshot.table} is partitioned by {list(old.partition_columns)}, not"
            f" {list(asked)}; mode='overwrite' with schema_mode='overwrite' can change that",
            table=work.snapshot.table,
            expected=old.partition_columns,
            found=asked,
            columns=asked,
        )
    return metadata


def _require_matching(rows: pa.Table, where: Expr, table: str) -> None:
    """New rows must be ones the predicate replaces, or the overwrite would hide others."""
    stray = pc.invert(pc.fill_null(arrow_expr.evaluate(where, rows), False))
    if count := pc.sum(stray).as_py() or 0:
        sample = rows.filter(stray).slice(0, 1).to_pylist()
        raise ConstraintViolation(
            f"{table}: {count} of the new rows do not match the predicate {where} that is being"
            f" overwritten; for example {sample[0]}",
            table=table,
            constraint="predicate",
            expression=str(where),
            rows=count,
            sample=sample,
        )


def _parameters(options: WriteOptions, metadata: Metadata, where: Expr | None) -> dict[str, Any]:
    found: dict[str, Any] = {
        "mode": options.mode.capitalize(),
        "partitionBy": list(metadata.partition_columns),
    }
    if where is not None and where != TRUE:
        found["predicate"] = str(where)
    return found
