"""What a transaction is going to do to one table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from deltalakedb.errors import InvalidArgument
from deltalakedb.log.base import NewTable, ReadSet, Snapshot, TableCommit
from deltalakedb.model.actions import Action, Add, Metadata, Protocol, Remove

APPEND = "append"


@dataclass(frozen=True)
class Change:
    """One operation on one table: its actions, and what it read to decide them."""

    operation: str
    mode: str
    actions: tuple[Action, ...]
    parameters: Mapping[str, Any] = field(default_factory=dict)
    metrics: Mapping[str, int] = field(default_factory=dict)
    reads: ReadSet = ReadSet()
    fresh_files: bool = False

    @property
    def touches_files(self) -> bool:
        """Whether it adds or removes files."""
        return any(isinstance(a, Add | Remove) for a in self.actions)


_GUARD = Change("READ", "read", ())
"""A table that is only read: its reads are checked at commit, and it gets no new version."""


@dataclass(frozen=True)
class Stage:
    """All changes to one table, in order, on top of the snapshot they were decided on.

    `base` is None while the table is only going to be created.
    """

    table: str
    base: Snapshot | None
    create: NewTable | None = None
    changes: tuple[Change, ...] = ()
    reads: ReadSet = ReadSet()

    def plus(self, change: Change) -> Stage:
        """With one more change.

        Only appends may follow a change of files: anything else would have to undo it.
        """
        earlier = [c.mode for c in self.changes if c.touches_files]
        if earlier and change.mode != APPEND:
            raise InvalidArgument(
                f"{self.table} is already staged in this transaction with mode"
                f" {earlier[-1]!r}, which {change.mode!r} cannot follow."
                " Stage the overwrite or delete first and append after it, or use two transactions",
                argument="mode",
                table=self.table,
            )
        return replace(self, changes=(*self.changes, change))

    def reading(self, reads: ReadSet) -> Stage:
        """Having read more of the table."""
        return replace(self, reads=merge_reads([self.reads, reads]))

    @property
    def is_live(self) -> bool:
        """Whether it matters at commit: it changes the table, or its reads must still hold."""
        return bool(self.changes) or self.reads != ReadSet()

    @property
    def actions(self) -> tuple[Action, ...]:
        """Of all changes; of several metadata or protocols the last one counts."""
        every = [a for change in self.changes for a in change.actions]
        last: dict[type, Action] = {type(a): a for a in every if isinstance(a, Metadata | Protocol)}
        files = [a for a in every if not isinstance(a, Metadata | Protocol)]
        return (*last.values(), *files)

    @property
    def num_files(self) -> int:
        """How many files are added or removed."""
        return sum(isinstance(a, Add | Remove) for a in self.actions)

    def commit(self, isolation: str) -> TableCommit:
        """The table's part of the commit."""
        first = self.changes[0] if self.changes else _GUARD
        metrics: dict[str, int] = {}
        for change in self.changes:
            for name, value in change.metrics.items():
                metrics[name] = metrics.get(name, 0) + value
        return TableCommit(
            actions=self.actions,
            operation=first.operation,
            base=self.base,
            create=self.create,
            parameters=first.parameters,
            metrics=metrics,
            reads=merge_reads([self.reads, *(c.reads for c in self.changes)]),
            isolation=isolation,
            fresh_files=all(c.fresh_files for c in self.changes),
            guard=not self.changes,
        )


def merge_reads(reads: Sequence[ReadSet]) -> ReadSet:
    """Everything that any of them read."""
    return ReadSet(
        predicates=tuple(p for r in reads for p in r.predicates),
        whole_table=any(r.whole_table for r in reads),
        app_ids=frozenset(a for r in reads for a in r.app_ids),
    )
