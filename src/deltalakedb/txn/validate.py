"""What a stage must be before it may be committed. Pure."""

from __future__ import annotations

from typing import TypeVar

from deltalakedb.errors import InvalidCommit
from deltalakedb.model.actions import Action, Add, Metadata, Protocol, Remove
from deltalakedb.model.evolve import validate_schema
from deltalakedb.model.protocol import check_read, required_for, supports, validate_protocol
from deltalakedb.model.replay import validate_commit
from deltalakedb.model.schema import MappingMode, StructType, mapping_mode, parse_schema
from deltalakedb.txn.staged import Stage


def validate(stage: Stage) -> None:
    """Refuse changes that Delta's rules, or the table's own, forbid.

    Raises:
        InvalidCommit, ProtocolError, InvalidSchema: naming the table and the rule.
    """
    actions = stage.actions
    metadata = _last(actions, Metadata) or (stage.base.metadata if stage.base else None)
    protocol = _last(actions, Protocol) or (stage.base.protocol if stage.base else None)
    if metadata is None or protocol is None:
        raise InvalidCommit(
            f"{stage.table} is new: its first commit needs metaData and protocol",
            table=stage.table,
            rule="version 0 has metaData and protocol",
        )
    schema = parse_schema(metadata.schema_string)
    mode = mapping_mode(metadata.configuration)
    validate_protocol(protocol)
    check_read(protocol, level="log", table=stage.table)
    if _last(actions, Metadata):
        validate_schema(schema, partition_columns=metadata.partition_columns, mode=mode)
    _require_features(stage, metadata, protocol)
    physical = _physical(schema, metadata, mode)
    validate_commit(
        actions,
        partition_columns=None if _repartitions(stage, metadata) else physical,
        absolute_paths="allow",
        table=stage.table,
    )
    if _repartitions(stage, metadata):
        adds = [a for a in actions if isinstance(a, Add)]
        validate_commit(adds, partition_columns=physical, absolute_paths="allow", table=stage.table)
    append_only = metadata.configuration.get("delta.appendOnly", "").lower() == "true"
    if append_only and any(isinstance(a, Remove) and a.data_change for a in actions):
        raise InvalidCommit(
            f"{stage.table} is append-only (delta.appendOnly): rows cannot be removed",
            table=stage.table,
            rule="delta.appendOnly",
        )


T = TypeVar("T")


def _last(actions: tuple[Action, ...], kind: type[T]) -> T | None:
    return next((a for a in actions if isinstance(a, kind)), None)


def _require_features(stage: Stage, metadata: Metadata, protocol: Protocol) -> None:
    """A protocol must name what schema and properties make use of.

    What they asked for without effect before stays without effect.
    """
    base = stage.base
    if base and (metadata, protocol) == (base.metadata, base.protocol):
        return
    idle = _unsupported(base.metadata, base.protocol) if base else set()
    if missing := sorted(_unsupported(metadata, protocol) - idle):
        raise InvalidCommit(
            f"{stage.table}: schema or properties use {', '.join(missing)}, which the protocol"
            " does not list; stage a protocol that does",
            table=stage.table,
            rule="the protocol lists every feature in use",
            missing=tuple(missing),
        )


def _unsupported(metadata: Metadata, protocol: Protocol) -> set[str]:
    return {name for name in required_for(metadata) if not supports(protocol, name)}


def _physical(schema: StructType, metadata: Metadata, mode: MappingMode) -> list[str]:
    fields = [schema.field(name) for name in metadata.partition_columns]
    return [f.physical_name(mode) for f in fields if f is not None]


def _repartitions(stage: Stage, metadata: Metadata) -> bool:
    """Files that leave were partitioned the old way, files that come the new way."""
    base = stage.base
    return base is not None and base.metadata.partition_columns != metadata.partition_columns
