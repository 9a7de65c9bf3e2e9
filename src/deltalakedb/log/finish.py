"""What only the moment of the commit can fill in: version, time, provenance, row ids."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeGuard

import msgspec

from deltalakedb.errors import InvalidCommit
from deltalakedb.log import rows
from deltalakedb.log.base import Commit, TableCommit
from deltalakedb.log.matching import num_records
from deltalakedb.log.version_rows import Place
from deltalakedb.model.actions import (
    Action,
    Add,
    CommitInfo,
    DomainMetadata,
    Metadata,
    Protocol,
)
from deltalakedb.model.protocol import features
from deltalakedb.version import ENGINE_INFO

if TYPE_CHECKING:
    from deltalakedb.sql.base import Session

ICT = "delta.enableInCommitTimestamps"
ROW_TRACKING_DOMAIN = "delta.rowTracking"


def finish(
    part: TableCommit, place: Place, now: int, commit: Commit, session: Session
) -> TableCommit:
    """The part as it will stand in the log."""
    version = place.version + 1
    metadata = _last(part, Metadata) or (part.base.metadata if part.base else None)
    protocol = _last(part, Protocol) or (part.base.protocol if part.base else None)
    assert metadata is not None, "validated before"
    assert protocol is not None, "validated before"
    actions: list[Action] = [a for a in part.actions if not isinstance(a, CommitInfo)]
    in_commit = metadata.configuration.get(ICT) == "true"
    if in_commit and version > 0 and not _had_ict(part):
        actions = [_enabling(a, version, now) if isinstance(a, Metadata) else a for a in actions]
    if "rowTracking" in features(protocol):
        actions = _with_row_ids(actions, part, place, session)
    info = _commit_info(part, commit, now, in_commit)
    return replace(part, actions=(info, *actions))


def _last(part: TableCommit, kind: type[Any]) -> Any:
    return next((a for a in part.actions if isinstance(a, kind)), None)


def _had_ict(part: TableCommit) -> bool:
    return part.base is not None and part.base.metadata.configuration.get(ICT) == "true"


def _enabling(metadata: Metadata, version: int, now: int) -> Metadata:
    """Readers must know from which version on the in-commit timestamps hold."""
    configuration = {
        **metadata.configuration,
        "delta.inCommitTimestampEnablementVersion": str(version),
        "delta.inCommitTimestampEnablementTimestamp": str(now),
    }
    return msgspec.structs.replace(metadata, configuration=configuration)


def _commit_info(part: TableCommit, commit: Commit, now: int, in_commit: bool) -> CommitInfo:
    """Provenance of the commit; what came ready-made is kept and completed."""
    given = _last(part, CommitInfo)
    body: dict[str, Any] = {"inCommitTimestamp": now} if in_commit else {}
    if given is not None:
        rest = given.as_dict()
        rest.pop("inCommitTimestamp", None)
        return CommitInfo(rows.to_text(body | rest)) if body else given
    body |= {
        "timestamp": now,
        "operation": part.operation,
        "operationParameters": _parameters(part.parameters),
    }
    if part.base is not None:
        body["readVersion"] = part.base.version
    body |= {"isolationLevel": part.isolation, "isBlindAppend": part.is_blind_append}
    if part.metrics:
        body["operationMetrics"] = {k: str(v) for k, v in part.metrics.items()}
    if commit.message:
        body["userMetadata"] = commit.message
    body |= {"engineInfo": ENGINE_INFO, "txnId": commit.transaction_id}
    return CommitInfo(rows.to_text(body))


def _parameters(parameters: Mapping[str, Any]) -> dict[str, str]:
    """Values as Delta writes them: strings as they are, everything else as JSON text."""
    return {k: v if isinstance(v, str) else rows.to_text(v) for k, v in parameters.items()}


def _with_row_ids(
    actions: list[Action], part: TableCommit, place: Place, session: Session
) -> list[Action]:
    """Row ids for new files, continuing after the highest one ever given in this table.

    Files that come with ids keep them: their rows are old ones.
    """
    row = session.row(
        "SELECT configuration FROM dl_domain_metadata WHERE table_id = ? AND domain = ?"
        " ORDER BY version DESC LIMIT 1",
        (place.table_id, ROW_TRACKING_DOMAIN),
    )
    domains = [a for a in actions if _is_row_tracking(a)]
    adds = [a for a in actions if isinstance(a, Add)]
    mark = _mark(row[0]) if row else -1
    high = max(
        [
            mark,
            *(_mark(d.configuration) for d in domains),
            *(a.base_row_id + _count(a, part) - 1 for a in adds if a.base_row_id is not None),
        ]
    )
    made: list[Action] = []
    for action in actions:
        if isinstance(action, Add) and action.base_row_id is None:
            first, high = high + 1, high + _count(action, part)
            made.append(
                msgspec.structs.replace(
                    action, base_row_id=first, default_row_commit_version=place.version + 1
                )
            )
        elif not _is_row_tracking(action):
            made.append(action)
    if high > mark or domains:
        text = rows.to_text({"rowIdHighWaterMark": high})
        made.append(DomainMetadata(domain=ROW_TRACKING_DOMAIN, configuration=text))
    return made


def _is_row_tracking(action: Action) -> TypeGuard[DomainMetadata]:
    return isinstance(action, DomainMetadata) and action.domain == ROW_TRACKING_DOMAIN


def _mark(configuration: str) -> int:
    mark: int = rows.from_text(configuration)["rowIdHighWaterMark"]
    return mark


def _count(add: Add, part: TableCommit) -> int:
    count = num_records(add.stats)
    if count is None:
        raise InvalidCommit(
            f"{part.table} has row tracking: {add.path!r} needs numRecords in its stats",
            table=part.table,
            rule="row tracking needs the row count of every file",
        )
    return count
