"""The state of a table from its actions, and the rules a commit must keep.

Pure: the caller brings the actions. Files are told apart by canonical path and deletion vector.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

from deltalakedb.errors import CorruptLog, InvalidCommit
from deltalakedb.model.actions import (
    Action,
    Add,
    Cdc,
    CheckpointMetadata,
    CommitInfo,
    DeletionVector,
    DomainMetadata,
    Metadata,
    Protocol,
    Remove,
    Sidecar,
    Txn,
    UnknownAction,
)
from deltalakedb.model.paths import canonical, check_inside

FileKey: TypeAlias = tuple[str, str]
"""(canonical path, unique id of the deletion vector or empty)."""


@dataclass(frozen=True)
class State:
    """A version of a table: the newest of everything."""

    version: int = -1
    protocol: Protocol | None = None
    metadata: Metadata | None = None
    files: Mapping[FileKey, Add] = field(default_factory=dict)
    tombstones: Mapping[FileKey, Remove] = field(default_factory=dict)
    txns: Mapping[str, Txn] = field(default_factory=dict)
    domains: Mapping[str, DomainMetadata] = field(default_factory=dict)
    unknown: tuple[UnknownAction, ...] = ()

    def complete(self, location: str | None = None) -> tuple[Protocol, Metadata]:
        """Protocol and metadata, which every table has from its first version on.

        Raises:
            CorruptLog: names the one that is missing.
        """
        if self.protocol is None or self.metadata is None:
            reason = f"no {'protocol' if self.protocol is None else 'metaData'} action"
            raise CorruptLog(
                f"version {self.version} has {reason}",
                location=location,
                version=self.version,
                reason=reason,
            )
        return self.protocol, self.metadata


def replay(
    commits: Iterable[tuple[int, Iterable[Action]]],
    base: State | None = None,
    *,
    root: str | None = None,
) -> State:
    """The state after the commits, in ascending order without a gap.

    A checkpoint is replayed like the commit it stands for, without a base. The order of actions
    inside a commit does not matter. `base` is left as it is.

    Args:
        commits: (version, actions) pairs.
        base: The state the first commit follows.
        root: The table's location, to match absolute paths with relative ones.

    Raises:
        CorruptLog: versions are missing, or a commit both adds and removes the same file.
    """
    building = _Building(base or State(), root)
    last = base.version if base else None
    for version, actions in commits:
        if last is not None and version != last + 1:
            raise _corrupt(version, f"version {last + 1} is missing before it")
        building.apply(version, actions)
        last = version
    return building.state(-1 if last is None else last)


class _Building:
    """A state under construction, on copies of the base's collections."""

    def __init__(self, base: State, root: str | None) -> None:
        self._root = root
        self._protocol, self._metadata = base.protocol, base.metadata
        self._files, self._tombstones = dict(base.files), dict(base.tombstones)
        self._txns, self._domains = dict(base.txns), dict(base.domains)
        self._unknown = list(base.unknown)

    def apply(self, version: int, actions: Iterable[Action]) -> None:
        added: dict[FileKey, Add] = {}
        removed: dict[FileKey, Remove] = {}
        for action in actions:
            match action:
                case Add():
                    added[canonical(action.path, self._root), action.dv_id] = action
                case Remove():
                    removed[canonical(action.path, self._root), action.dv_id] = action
                case Metadata():
                    self._metadata = action
                case Protocol():
                    self._protocol = action
                case Txn():
                    self._txns[action.app_id] = action
                case DomainMetadata():
                    self._domains[action.domain] = action
                case UnknownAction():
                    self._unknown.append(action)
        if both := added.keys() & removed.keys():
            raise _corrupt(version, f"it both adds and removes {min(both)[0]!r}")
        for key in removed:
            self._files.pop(key, None)
        for key in added:
            self._tombstones.pop(key, None)
        self._files |= added
        self._tombstones |= removed

    def state(self, version: int) -> State:
        return State(
            version=version,
            protocol=self._protocol,
            metadata=self._metadata,
            files=self._files,
            tombstones=self._tombstones,
            txns=self._txns,
            domains={k: domain for k, domain in self._domains.items() if not domain.removed},
            unknown=tuple(self._unknown),
        )


def _corrupt(version: int, reason: str) -> CorruptLog:
    return CorruptLog(
        f"version {version} cannot be replayed: {reason}", version=version, reason=reason
    )


# -- the rules of a commit ---------------------------------------------------------------------


def validate_commit(
    actions: Sequence[Action],
    *,
    partition_columns: Collection[str] | None = None,
    absolute_paths: Literal["refuse", "allow"] = "refuse",
    table: str | None = None,
) -> None:
    """Refuse actions that Delta's rules forbid in one commit.

    Args:
        actions: All actions of the commit.
        partition_columns: Physical names; every file must then have a value for each, and for
            nothing else.
        absolute_paths: Whether files may lie outside the table's folder.
        table: For the error.

    Raises:
        InvalidCommit: names the rule.
    """
    try:
        _check_once(actions)
        _check_files(actions, partition_columns, absolute_paths)
    except InvalidCommit as error:
        if table is None:
            raise
        raise InvalidCommit(f"{table}: {error}", **{**error.facts, "table": table}) from None


def _forbid(rule: str, found: str) -> InvalidCommit:
    return InvalidCommit(f"{rule}: {found}", rule=rule)


_ONCE: Final[Mapping[type[Any], tuple[str, Callable[[Any], str]]]] = {
    Metadata: ("metaData", lambda _: ""),
    Protocol: ("protocol", lambda _: ""),
    CommitInfo: ("commitInfo", lambda _: ""),
    Txn: ("txn per application", lambda txn: txn.app_id),
    DomainMetadata: ("domainMetadata per domain", lambda domain: domain.domain),
    Add: ("add per path", lambda add: canonical(add.path)),
    Remove: ("remove per path", lambda remove: canonical(remove.path)),
    Cdc: ("cdc per path", lambda cdc: canonical(cdc.path)),
}
"""What reconciles with itself, and by what."""


def _check_once(actions: Sequence[Action]) -> None:
    seen: set[tuple[str, str]] = set()
    files: dict[type[Any], set[FileKey]] = {Add: set(), Remove: set()}
    for action in actions:
        sort = type(action)
        if sort in (CheckpointMetadata, Sidecar):
            raise _forbid("only checkpoints hold this action", sort.__name__)
        if sort is UnknownAction:
            continue
        kind, name_of = _ONCE[sort]
        name = name_of(action)
        if (kind, name) in seen:
            raise _forbid(f"at most one {kind} in a commit", repr(name) if name else "it has two")
        seen.add((kind, name))
        if isinstance(action, (Add, Remove)):
            files[sort].add((name, action.dv_id))
    if both := files[Add] & files[Remove]:
        raise _forbid("a commit cannot add and remove the same file", repr(min(both)[0]))


def _check_files(
    actions: Sequence[Action],
    partition_columns: Collection[str] | None,
    absolute: Literal["refuse", "allow"],
) -> None:
    columns = None if partition_columns is None else set(partition_columns)
    for action in actions:
        if not isinstance(action, (Add, Remove, Cdc)):
            continue
        check_inside(action.path, absolute=absolute)
        if action.size is not None and action.size < 0:
            raise _forbid("sizes are not negative", f"{action.path!r} has {action.size}")
        if isinstance(action, Cdc):
            if action.data_change:
                raise _forbid("a cdc file never changes data", repr(action.path))
        elif action.deletion_vector is not None:
            _check_vector(action.deletion_vector, action.path)
        given = action.partition_values
        if columns is not None and given is not None and given.keys() != columns:
            found = f"{action.path!r} has {sorted(given)}, the table {sorted(columns)}"
            raise _forbid("a file has a value for every partition column", found)


def _check_vector(dv: DeletionVector, path: str) -> None:
    if dv.storage_type not in ("u", "i", "p"):
        rule = "a deletion vector is stored as u, i or p"
    elif dv.storage_type == "i" and dv.offset is not None:
        rule = "an inline deletion vector has no offset"
    elif min(dv.size_in_bytes, dv.cardinality, dv.offset or 0) < 0:
        rule = "sizes are not negative"
    else:
        return
    raise _forbid(rule, f"the deletion vector of {path!r}")
