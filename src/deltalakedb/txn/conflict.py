"""Whether a commit may follow one that won the race. Pure: decided from rows alone.

The rules are Delta's (see the table in docs/explanation/transactions.md), applied file by file:
a winner's file counts only if a read predicate of the loser may match it, by partition value or
by statistics.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from deltalakedb.errors import (
    ConcurrentAppend,
    ConcurrentDeleteDelete,
    ConcurrentDeleteRead,
    ConcurrentModification,
    ConcurrentTransaction,
    MetadataChanged,
    ProtocolChanged,
)
from deltalakedb.log.base import Head, TableCommit, Winner
from deltalakedb.log.matching import file_matcher
from deltalakedb.model.actions import (
    Add,
    CommitInfo,
    DomainMetadata,
    Metadata,
    Protocol,
    Remove,
    Txn,
)
from deltalakedb.model.protocol import FEATURES, features

ROW_TRACKING_DOMAIN = "delta.rowTracking"
"""Reassigned on every commit, so two writers of it never conflict."""


@dataclass(frozen=True)
class Conflict:
    """Why a commit cannot follow a winner."""

    error: type[ConcurrentModification]
    rule: str
    winner: Winner

    def as_error(self, table: str) -> ConcurrentModification:
        """The exception that says it."""
        return self.error(
            f"{table}: {self.rule}; version {self.winner.version}"
            f" ({self.winner.operation or 'unknown operation'}) was committed meanwhile."
            " Read the table again and repeat the operation.",
            table=table,
            winner=self.winner.version,
            winner_operation=self.winner.operation,
            rule=self.rule,
        )


def rebase(mine: TableCommit, head: Head, winners: Callable[[], Sequence[Winner]]) -> TableCommit:
    """The commit as it may follow `head`, or the conflict raised.

    A blind append depends on nothing but metadata, protocol and its application ids, so that the
    winners need not even be loaded. What the protocol has become by then holds for this one too.
    """
    base = mine.base
    assert base is not None, "a table that is being created has no winners"
    unchanged = head.metadata_version <= base.version and head.protocol_version <= base.version
    if unchanged and _depends_on_metadata_only(mine):
        return mine
    met = winners()
    for winner in met:
        if conflict := find_conflict(mine, winner):
            raise conflict.as_error(mine.table)
    protocol = next((w.protocol for w in reversed(met) if w.protocol), base.protocol)
    return replace(mine, base=replace(base, protocol=protocol))


def _depends_on_metadata_only(mine: TableCommit) -> bool:
    stateful = (Txn, DomainMetadata, Metadata, Protocol)
    return (
        mine.is_blind_append
        and not mine.reads.app_ids
        and not any(isinstance(a, stateful) for a in mine.actions)
    )


def find_conflict(mine: TableCommit, winner: Winner) -> Conflict | None:
    """The first rule that keeps `mine` from following `winner`, or None."""
    checks = (_protocol, _metadata, _transactions, _delete_delete, _delete_read, _append)
    for check in checks:
        if verdict := check(mine, winner):
            error, rule = verdict
            return Conflict(error, rule, winner)
    return None


Verdict = tuple[type[ConcurrentModification], str] | None


def _protocol(mine: TableCommit, winner: Winner) -> Verdict:
    if winner.protocol is None or mine.base is None:
        return None
    if any(isinstance(a, Protocol) for a in mine.actions):
        return ProtocolChanged, "both commits change the protocol"
    before, after = features(mine.base.protocol), features(winner.protocol)
    if dropped := before - after:
        return ProtocolChanged, f"the winner dropped {', '.join(sorted(dropped))}"
    known = {name for name, feature in FEATURES.items() if feature.writes}
    if foreign := after - before - known:
        names = ", ".join(sorted(foreign))
        return ProtocolChanged, f"the winner added {names}, which this build does not write"
    return None


def _metadata(mine: TableCommit, winner: Winner) -> Verdict:
    if winner.metadata is None:
        return None
    return MetadataChanged, "the winner changed schema, partitioning or properties"


def _transactions(mine: TableCommit, winner: Winner) -> Verdict:
    ours = {a.app_id for a in mine.actions if isinstance(a, Txn)} | mine.reads.app_ids
    if shared := ours & {t.app_id for t in winner.txns}:
        return ConcurrentTransaction, f"both commits advance application {min(shared)!r}"
    domains = {a.domain for a in mine.actions if isinstance(a, DomainMetadata)}
    domains -= {ROW_TRACKING_DOMAIN}
    if shared := domains & {d.domain for d in winner.domains}:
        return ConcurrentTransaction, f"both commits change domain {min(shared)!r}"
    return None


def _delete_delete(mine: TableCommit, winner: Winner) -> Verdict:
    ours = {a.path for a in mine.actions if isinstance(a, Remove)}
    for file in winner.removes:
        if file.path in ours:
            return ConcurrentDeleteDelete, f"both commits remove {file.path!r}"
    return None


def _delete_read(mine: TableCommit, winner: Winner) -> Verdict:
    again = {a.path for a in mine.actions if isinstance(a, Add)}
    for file in winner.removes:
        if file.path in again:
            return ConcurrentDeleteRead, f"the winner removed {file.path!r}, which is added again"
    if found := _first_read(mine, winner.removes):
        return ConcurrentDeleteRead, f"the winner removed {found.path!r}, which this commit read"
    return None


def _append(mine: TableCommit, winner: Winner) -> Verdict:
    """Rows that appeared under this commit's feet.

    A commit that only rearranges rows (compaction) does not mind. Under WriteSerializable a blind
    append is taken as having happened after this commit, unless this one changes metadata: a new
    CHECK constraint must hold for that append too.
    """
    if mine.actions and all(map(_rearranges, mine.actions)):
        return None
    changes_metadata = any(isinstance(a, Metadata) for a in mine.actions)
    if winner.is_blind_append and mine.isolation != "Serializable" and not changes_metadata:
        return None
    if found := _first_read(mine, (a for a in winner.adds if a.data_change)):
        return ConcurrentAppend, f"the winner added {found.path!r}, which this commit should read"
    return None


def _rearranges(action: object) -> bool:
    if isinstance(action, Add | Remove):
        return not action.data_change
    return isinstance(action, CommitInfo)


def _first_read(mine: TableCommit, files: Iterable[Add]) -> Add | None:
    """The first of the files that this commit's reads cover."""
    if mine.reads.whole_table:
        return next(iter(files), None)
    if not mine.reads.predicates or mine.base is None:
        return None
    tests = [file_matcher(p, mine.base) for p in mine.reads.predicates]
    return next((f for f in files if any(test(f) for test in tests)), None)
