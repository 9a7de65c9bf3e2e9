"""Take rows out of a table: whole files where that is enough, rewritten files where it is not."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow.compute as pc

from deltalakedb.errors import InvalidCommit, UnsupportedByBackend
from deltalakedb.log.base import ReadSet
from deltalakedb.log.matching import counted
from deltalakedb.log.version_rows import Totals
from deltalakedb.model.actions import Add, Remove
from deltalakedb.model.expr import TRUE, Expr, evaluate
from deltalakedb.model.protocol import supports
from deltalakedb.model.schema import mapping_mode
from deltalakedb.table import arrow_expr
from deltalakedb.table.read import Scan, ScanFile, partition_row, touches_only
from deltalakedb.table.work import Work
from deltalakedb.txn.staged import Change


@dataclass(frozen=True)
class Removal:
    """Files that go, and files that take over the rows that stay."""

    removes: tuple[Remove, ...]
    rewritten: tuple[Add, ...] = ()
    rows_deleted: int | None = None
    rows_copied: int = 0


def delete(work: Work, where: Expr) -> Change:
    """Remove the rows for which the predicate is true."""
    work.require_writable()
    gone = remove_rows(work, where)
    metrics = {
        "numRemovedFiles": len(gone.removes),
        "numAddedFiles": len(gone.rewritten),
        "numCopiedRows": gone.rows_copied,
    }
    if gone.rows_deleted is not None:
        metrics["numDeletedRows"] = gone.rows_deleted
    return Change(
        operation="DELETE",
        mode="delete",
        actions=(*gone.removes, *gone.rewritten),
        parameters={"predicate": [] if where == TRUE else [str(where)]},
        metrics=metrics,
        reads=ReadSet(whole_table=True) if where == TRUE else ReadSet(predicates=(where,)),
        fresh_files=True,
    )


def reported(change: Change) -> dict[str, int]:
    """The metrics of a delete under delta-rs' names."""
    return {re.sub("([A-Z])", r"_\1", name).lower(): n for name, n in change.metrics.items()}


def remove_rows(work: Work, where: Expr) -> Removal:
    """What it takes to remove the matching rows, with the rows that stay already rewritten."""
    snapshot = work.snapshot
    if snapshot.metadata.configuration.get("delta.appendOnly", "").lower() == "true":
        raise InvalidCommit(
            f"{snapshot.table} is append-only (delta.appendOnly): rows cannot be removed",
            table=snapshot.table,
            rule="delta.appendOnly",
        )
    if where == TRUE:
        return Removal(
            tuple(work.remove(f) for f in work.files()), rows_deleted=snapshot.num_records
        )
    files = list(work.files(where))
    if touches_only(where, snapshot.metadata.partition_columns):
        mode = mapping_mode(snapshot.metadata.configuration)
        hit = [
            f
            for f in files
            if evaluate(where, partition_row(snapshot.schema, _scan_file(f), mode)) is True
        ]
        return Removal(tuple(work.remove(f) for f in hit), rows_deleted=_rows(hit))
    return _rewrite(work, where, files)


def _rows(files: Iterable[Add]) -> int | None:
    """How many rows the files hold, if all of them tell."""
    found = Totals().plus(map(counted, files), 1)
    return None if found.num_uncounted else found.num_records


def _scan_file(file: Add) -> ScanFile:
    return ScanFile(file.path, file.size, dict(file.partition_values))


def _rewrite(work: Work, where: Expr, files: list[Add]) -> Removal:
    snapshot = work.snapshot
    if snapshot.metadata.configuration.get("delta.enableChangeDataFeed", "").lower() == "true":
        raise UnsupportedByBackend(
            f"{snapshot.table} has a change data feed, and rows are to be removed from the middle"
            " of files: this engine does not write change files yet."
            " Remove whole partitions, or switch delta.enableChangeDataFeed off",
            backend="embedded",
            operation="delete rows with change data feed",
        )
    if supports(snapshot.protocol, "rowTracking"):
        raise UnsupportedByBackend(
            f"{snapshot.table} has row tracking, and rows are to be removed from the middle of"
            " files: this engine does not carry row ids over yet. Remove whole partitions",
            backend="embedded",
            operation="delete rows with row tracking",
        )
    scan, removes, deleted = Scan(snapshot), [], 0
    with work.writer(snapshot.metadata) as writer:
        for file in files:
            rows = scan.to_table([_scan_file(file)])
            hit = pc.fill_null(arrow_expr.evaluate(where, rows), False)
            count = pc.sum(hit).as_py() or 0
            if count == 0:
                continue
            removes.append(work.remove(file))
            deleted += count
            if count < rows.num_rows:
                writer.write(rows.filter(pc.invert(hit)))
        return Removal(tuple(removes), tuple(writer.close()), deleted, writer.num_rows)
