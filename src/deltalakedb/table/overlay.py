"""A table as a transaction sees it: the pinned snapshot with the transaction's own changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from deltalakedb.log import rows
from deltalakedb.log.base import CommitRecord, Snapshot, TxnLogReader
from deltalakedb.log.files_schema import FILE_COLUMNS, files_schema
from deltalakedb.log.matching import counted, file_matcher
from deltalakedb.log.version_rows import Totals
from deltalakedb.model.actions import (
    Action,
    Add,
    DomainMetadata,
    Metadata,
    Protocol,
    Remove,
    Txn,
)

if TYPE_CHECKING:
    from deltalakedb.model.expr import Expr
    from deltalakedb.txn.staged import Stage


class OverlayReader:
    """Reads what the transaction would commit, on top of what it began with.

    Like the table it is read through, it moves on to later changes of the transaction only when
    a new snapshot is asked for.
    """

    def __init__(self, base: TxnLogReader, stage: Callable[[], Stage]) -> None:
        self._base = base
        self._current = stage
        self.snapshot()

    def snapshot(self, version: int | None = None, timestamp: int | None = None) -> Snapshot:
        """The pinned version with the staged changes; other versions as they are committed."""
        if version is not None or timestamp is not None:
            return self._base.snapshot(version, timestamp)
        self._stage = self._current()
        self._staged = staged_snapshot(self._stage)
        return self._staged

    def files(
        self,
        snapshot: Snapshot,
        where: Expr | None = None,
        columns: Sequence[str] = FILE_COLUMNS,
    ) -> pa.RecordBatchReader:
        """Live files, staged ones last."""
        if snapshot is not self._staged:
            return self._base.files(snapshot, where, columns)
        schema = files_schema(columns)
        return pa.RecordBatchReader.from_batches(schema, self._batches(snapshot, where, columns))

    def _batches(
        self, snapshot: Snapshot, where: Expr | None, columns: Sequence[str]
    ) -> Iterator[pa.RecordBatch]:
        # A file that is added again takes the place of the one that is there.
        gone = {a.path for a in self._stage.actions if isinstance(a, Remove | Add)}
        if self._stage.base is not None:
            wanted = columns if "path" in columns or not gone else (*columns, "path")
            base = replace(self._stage.base, metadata=snapshot.metadata)
            for batch in self._base.files(base, where, wanted):
                kept = batch
                if gone:
                    kept = batch.filter(
                        pc.invert(pc.is_in(batch["path"], pa.array(gone, pa.string())))
                    )
                yield kept.select(list(columns))
        adds = [a for a in self._stage.actions if isinstance(a, Add)]
        if where is not None:
            adds = [a for a in adds if file_matcher(where, snapshot)(a)]
        if adds:
            yield pa.RecordBatch.from_pylist(
                [_file_row(a, columns) for a in adds], files_schema(columns)
            )

    def actions(self, version: int) -> list[Action]:
        """Of a committed version."""
        return self._base.actions(version)

    def history(self, limit: int | None = None) -> list[CommitRecord]:
        """Commits up to the pinned version, newest first."""
        pinned = self._stage.base.version if self._stage.base else -1
        return [c for c in self._base.history() if c.version <= pinned][:limit]

    def version_range(self) -> tuple[int, int]:
        """Committed versions."""
        return self._base.version_range()

    def txn_version(self, app_id: str, snapshot: Snapshot) -> int | None:
        """How far an application has come, the transaction's own step included."""
        for action in self._stage.actions:
            if isinstance(action, Txn) and action.app_id == app_id:
                return action.version
        return self._base.txn_version(app_id, snapshot) if self._stage.base else None

    def domains(self, snapshot: Snapshot) -> dict[str, DomainMetadata]:
        """Metadata domains, the transaction's own included."""
        found = self._base.domains(snapshot) if self._stage.base else {}
        for action in self._stage.actions:
            if isinstance(action, DomainMetadata):
                found[action.domain] = action
        return {name: d for name, d in found.items() if not d.removed}


def staged_snapshot(stage: Stage) -> Snapshot:
    """The snapshot the table would have if the transaction committed now."""
    actions = stage.actions
    metadata = next((a for a in actions if isinstance(a, Metadata)), None)
    protocol = next((a for a in actions if isinstance(a, Protocol)), None)
    adds = [a for a in actions if isinstance(a, Add)]
    removes = [a for a in actions if isinstance(a, Remove)]
    base = stage.base
    if base is None:
        assert metadata is not None, "a new table comes with it"
        assert protocol is not None, "a new table comes with it"
        assert stage.create is not None, "a table is there or new"
        totals = Totals().plus(map(counted, adds), 1)
        return Snapshot(
            table=stage.table,
            location=stage.create.location,
            version=-1,
            timestamp=0,
            metadata=metadata,
            protocol=protocol,
            num_files=totals.num_files,
            size_bytes=totals.size_bytes,
            num_records=None if totals.num_uncounted else totals.num_records,
        )
    added = Totals().plus(map(counted, adds), 1)
    replaces = bool(removes) or not all(change.fresh_files for change in stage.changes)
    exact = base.num_records is not None and not added.num_uncounted and not replaces
    return replace(
        base,
        metadata=metadata or base.metadata,
        protocol=protocol or base.protocol,
        num_files=base.num_files + len(adds) - len(removes),
        size_bytes=base.size_bytes + added.size_bytes - sum(r.size or 0 for r in removes),
        num_records=(base.num_records or 0) + added.num_records if exact else None,
    )


def _file_row(add: Add, columns: Sequence[str]) -> dict[str, Any]:
    row = dict(zip((c.strip() for c in rows.ADD.split(",")), rows.add_row(add), strict=True))
    row["num_records"] = counted(add)[1]
    return {name: row[name] for name in columns}
