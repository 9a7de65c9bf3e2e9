"""Ready-made actions into a transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import msgspec

from deltalakedb.errors import InvalidArgument, InvalidCommit
from deltalakedb.log.base import ReadSet, Snapshot
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
from deltalakedb.model.protocol import supports
from deltalakedb.model.replay import validate_commit
from deltalakedb.table.work import Work
from deltalakedb.txn.staged import Change

STAGEABLE = (
    Add | Remove | Cdc | Metadata | Protocol | Txn | DomainMetadata | CommitInfo | UnknownAction
)
MODES = ("append", "overwrite")


def is_actions(value: Any) -> bool:
    """Whether these are actions, and not rows."""
    if isinstance(value, STAGEABLE):
        return True
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        return False
    return not value or any(isinstance(item, STAGEABLE) for item in value)


def ready_made(
    work: Work,
    actions: Any,
    mode: str,
    operation: str | None,
    parameters: Mapping[str, Any] | None,
) -> Change:
    """The change these actions are; with `overwrite`, all files that were there go."""
    given: list[Action] = [actions] if isinstance(actions, STAGEABLE) else list(actions)
    if not given:
        raise InvalidCommit(
            f"{work.snapshot.table}: an empty list of actions changes nothing; stage at least one",
            table=work.snapshot.table,
            rule="a commit has actions",
        )
    if wrong := [type(a).__name__ for a in given if not isinstance(a, STAGEABLE)]:
        raise InvalidArgument(f"{wrong[0]} is not an action", argument="actions")
    if mode not in MODES:
        raise InvalidArgument(
            f"mode {mode!r}: ready-made actions take {' or '.join(MODES)}",
            argument="mode",
            allowed=MODES,
        )
    _check(work.snapshot, given)
    reads = ReadSet()
    if mode == "overwrite":
        given = [*(work.remove(f) for f in work.files()), *given]
        reads = ReadSet(whole_table=True)
    return Change(
        operation=operation or "WRITE",
        mode="overwrite" if mode == "overwrite" else "append",
        actions=tuple(given),
        parameters=parameters or {"mode": mode.capitalize()},
        reads=reads,
    )


def _check(snapshot: Snapshot, actions: Sequence[Action]) -> None:
    """Refuse what no commit may hold, or what the table's protocol does not provide for."""
    validate_commit(actions, absolute_paths="allow", table=snapshot.table)
    protocol = next((a for a in actions if isinstance(a, Protocol)), snapshot.protocol)
    for action in actions:
        feature = _needs(action)
        if feature and not supports(protocol, feature):
            raise InvalidCommit(
                f"{snapshot.table}: the protocol does not list {feature}, which"
                f" {type(action).__name__} needs; stage a protocol that does",
                table=snapshot.table,
                rule="the protocol lists every feature in use",
                missing=(feature,),
            )
        if isinstance(action, DomainMetadata) and action.domain.startswith("delta."):
            raise InvalidCommit(
                f"{snapshot.table}: {action.domain!r} belongs to Delta itself",
                table=snapshot.table,
                rule="domains under delta. are not for users",
            )
        if isinstance(action, Add) and not _is_statistics(action.stats):
            raise InvalidCommit(
                f"{snapshot.table}: the stats of {action.path!r} are no JSON object of statistics",
                table=snapshot.table,
                rule="stats are JSON",
            )


def _needs(action: Action) -> str | None:
    match action:
        case DomainMetadata():
            return "domainMetadata"
        case Cdc():
            return "changeDataFeed"
        case Add(deletion_vector=vector) if vector is not None:
            return "deletionVectors"
    return None


class _Statistics(msgspec.Struct):
    numRecords: Annotated[int, msgspec.Meta(ge=0)] | None = None  # noqa: N815 - as in the log


_statistics = msgspec.json.Decoder(_Statistics)


def _is_statistics(text: str | None) -> bool:
    try:
        return not text or bool(_statistics.decode(text))
    except msgspec.DecodeError:
        return False
