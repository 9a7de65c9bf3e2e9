"""The rows of one new version of one table."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import msgspec

from deltalakedb.errors import ConcurrentDeleteDelete
from deltalakedb.log import rows
from deltalakedb.log.base import Head, TableCommit
from deltalakedb.log.matching import Counted, counted, prunable
from deltalakedb.log.tracking import TrackedColumn, encode_tracked, track
from deltalakedb.model.actions import (
    Action,
    Add,
    Cdc,
    CommitInfo,
    DomainMetadata,
    Metadata,
    Protocol,
    Remove,
    Txn,
    UnknownAction,
)
from deltalakedb.model.keys import span
from deltalakedb.model.paths import spellings
from deltalakedb.sql import tables as t

if TYPE_CHECKING:
    from deltalakedb.sql.base import Session

_PAIRS = 500
"""(path, dv) pairs bound in one statement."""


@dataclass(frozen=True)
class Totals:
    """What a version holds: kept per version, so that opening one counts nothing."""

    num_files: int = 0
    size_bytes: int = 0
    num_records: int = 0
    num_uncounted: int = 0

    def plus(self, files: Iterable[Counted], sign: int) -> Totals:
        """With files added, or with -1 taken away."""
        count = size = records = uncounted = 0
        for file_size, file_records, deleted in files:
            count += 1
            size += file_size
            if file_records is None:
                uncounted += 1
            else:
                records += file_records - (deleted or 0)
        return Totals(
            self.num_files + sign * count,
            self.size_bytes + sign * size,
            self.num_records + sign * records,
            self.num_uncounted + sign * uncounted,
        )


@dataclass(frozen=True)
class Place:
    """Where a new version goes: the table, its head under lock, and what the head holds."""

    table: str
    table_id: int
    head: Head = Head(-1, -1, -1)
    next_file_id: int = 0
    status: str = "active"
    committed_at: int = 0
    totals: Totals = Totals()

    @property
    def version(self) -> int:
        """The version that stands now; the new one is the next."""
        return self.head.version


@dataclass(frozen=True)
class _Sorted:
    """The actions of a commit by kind."""

    adds: list[Add]
    removes: list[Remove]
    cdcs: list[Cdc]
    metadata: Metadata | None
    protocol: Protocol | None
    txns: list[Txn]
    domains: list[DomainMetadata]
    others: list[UnknownAction]
    commit_info: CommitInfo | None


def _sort(actions: Sequence[Action]) -> _Sorted:
    def of(kind: type) -> list[Any]:
        return [a for a in actions if isinstance(a, kind)]

    return _Sorted(
        adds=of(Add),
        removes=of(Remove),
        cdcs=of(Cdc),
        metadata=next(iter(of(Metadata)), None),
        protocol=next(iter(of(Protocol)), None),
        txns=of(Txn),
        domains=of(DomainMetadata),
        others=of(UnknownAction),
        commit_info=next(iter(of(CommitInfo)), None),
    )


def write_version(session: Session, part: TableCommit, place: Place, seq: int, now: int) -> None:
    """Insert everything one table's part of a commit consists of, and move its head."""
    found = _sort(part.actions)
    version, key = place.version + 1, (place.table_id, place.version + 1)
    tracked = part.base.tracked if part.base else ()
    if found.metadata is not None:
        tracked = track(found.metadata, tracked, version)
        text = encode_tracked(tracked)
        session.insert(t.METADATA_UPDATES, [(*key, *rows.metadata_row(found.metadata), text)])
    if found.protocol is not None:
        session.insert(t.PROTOCOL_UPDATES, [(*key, *rows.protocol_row(found.protocol))])

    totals, removed = place.totals, Totals()
    if found.removes or not part.fresh_files:
        gone = _remove(session, part, found, place)
        removed = removed.plus(gone, 1)
        totals = totals.plus(gone, -1)
    metadata = found.metadata or (part.base.metadata if part.base else None)
    assert metadata is not None, "validated before"
    added = _add(session, found.adds, metadata, tracked, place)
    totals = totals.plus(added, 1)

    _insert_rest(session, found, key)
    head = Head(
        version,
        version if found.metadata else place.head.metadata_version,
        version if found.protocol else place.head.protocol_version,
    )
    row = (
        *key,
        seq,
        now,
        part.operation,
        rows.to_text(part.parameters),
        found.commit_info.body if found.commit_info else None,
        part.base.version if part.base else None,
        part.isolation,
        part.is_blind_append,
        len(added),
        removed.num_files,
        sum(size for size, _, _ in added),
        removed.size_bytes,
        totals.num_files,
        totals.size_bytes,
        totals.num_records,
        totals.num_uncounted,
        head.metadata_version,
        head.protocol_version,
    )
    session.insert(t.TABLE_VERSIONS, [row])
    session.insert(
        t.MIRROR_STATUS, [(*key, "delta", "PENDING", 0, now, None, None, None, None, now)]
    )
    session.send(
        "UPDATE dl_table_heads SET version = ?, next_file_id = ? WHERE table_id = ?",
        (version, place.next_file_id + len(added), place.table_id),
    )


def _insert_rest(session: Session, found: _Sorted, key: tuple[int, int]) -> None:
    """The kinds that are written as they are."""
    for table, made in (
        (t.TXN_ACTIONS, [(*key, *rows.txn_row(a)) for a in found.txns]),
        (t.DOMAIN_METADATA, [(*key, *rows.domain_row(a)) for a in found.domains]),
        (t.CDC_FILES, [(*key, n, *rows.cdc_row(a)) for n, a in enumerate(found.cdcs)]),
        (t.OTHER_ACTIONS, [(*key, n, a.kind, a.body) for n, a in enumerate(found.others)]),
    ):
        if made:
            session.insert(table, made)


def _add(
    session: Session,
    adds: list[Add],
    metadata: Metadata,
    tracked: tuple[TrackedColumn, ...],
    place: Place,
) -> list[Counted]:
    """Insert the files with their typed statistics."""
    table_id, version = place.table_id, place.version + 1
    _, intervals = prunable(metadata)
    ids = [column.id for column in tracked]
    files, stats, found = [], [], []
    for file_id, add in enumerate(adds, start=place.next_file_id):
        count = counted(add)
        found.append(count)
        files.append((table_id, file_id, version, None, add.dv_id, count[1], *rows.add_row(add)))
        for column_id, interval in zip(
            ids, intervals(add.stats, add.partition_values), strict=True
        ):
            lo, hi, nulls, low, high = interval
            stats.append((table_id, column_id, span(lo, hi), lo, hi, file_id, nulls, low, high))
    if files:
        session.insert(t.ADD_FILES, files)
    if stats:
        session.insert(t.COLUMN_STATS, stats)
    return found


def _remove(session: Session, part: TableCommit, found: _Sorted, place: Place) -> list[Counted]:
    """Mark removed files, and files that are added again, as gone from this version on."""
    removes = [(r.path, r.dv_id) for r in found.removes]
    gone = _mark(session, place, removes)
    if len(gone) < len(removes):
        gone, fixed = _by_other_spelling(session, place, found.removes, gone)
        found = replace(found, removes=fixed)
    if not part.fresh_files:
        gone |= _mark(session, place, _keys(found.adds))
    if found.removes:
        made = [
            (
                place.table_id,
                place.version + 1,
                n,
                gone[(r.path, r.dv_id)][0],
                r.dv_id,
                *rows.remove_row(r),
            )
            for n, r in enumerate(found.removes)
        ]
        session.insert(t.REMOVE_FILES, made)
    return [file[1:] for file in gone.values()]


Key = tuple[str, str]
Gone = dict[Key, tuple[int, int, int | None, int | None]]
"""(path, dv id) -> (file id, size, num_records, deleted by vector)."""


_PLAIN = re.compile(r"[\w.=+-][\w/.=+-]*", re.ASCII)
"""Paths that everybody spells the same way."""


def _keys(adds: Iterable[Add]) -> list[Key]:
    """Of the files, in every spelling of their paths."""
    keys = [(a.path, a.dv_id) for a in adds]
    odd = (key for key in keys if not _PLAIN.fullmatch(key[0]))
    return keys + [(path, dv_id) for given, dv_id in odd for path in spellings(given)]


def _mark(session: Session, place: Place, keys: Sequence[Key]) -> Gone:
    """Set the removing version on the live ones among the keys."""
    gone: Gone = {}
    for start in range(0, len(keys), _PAIRS):
        chunk = keys[start : start + _PAIRS]
        marks = ", ".join(["(?, ?)"] * len(chunk))
        sql = (
            f"WITH k (path, dv_id) AS (VALUES {marks})"  # a bare VALUES makes SQLite scan
            " UPDATE dl_add_files SET removed_version = ? WHERE table_id = ?"
            " AND removed_version IS NULL AND (path, dv_id) IN (SELECT path, dv_id FROM k)"
            " RETURNING path, dv_id, file_id, size, num_records, dv_cardinality"
        )
        params = [*(value for pair in chunk for value in pair), place.version + 1, place.table_id]
        for path, dv_id, *file in session.rows(sql, params):
            gone[(path, dv_id)] = tuple(file)
    return gone


def _by_other_spelling(
    session: Session, place: Place, removes: Sequence[Remove], gone: Gone
) -> tuple[Gone, list[Remove]]:
    """Match removes whose path is written differently from the add's.

    The remove takes the add's spelling, so that what is stored matches to the letter.
    """
    fixed: list[Remove] = []
    for remove in removes:
        if (remove.path, remove.dv_id) in gone:
            fixed.append(remove)
            continue
        for path in spellings(remove.path):
            if found := _mark(session, place, [(path, remove.dv_id)]):
                gone |= found
                fixed.append(msgspec.structs.replace(remove, path=path))
                break
        else:
            raise ConcurrentDeleteDelete(
                f"{place.table}: {remove.path!r} is not a live file of the table",
                table=place.table,
                path=remove.path,
                rule="a removed file must be live",
            )
    return gone, fixed
