"""Metadata and protocol of a table: new ones, and how they change."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence

import msgspec

from deltalakedb.errors import InvalidArgument, SchemaMismatch
from deltalakedb.model.actions import Action, Metadata, Protocol
from deltalakedb.model.evolve import assign_column_mapping, merge, side_by_side, validate_schema
from deltalakedb.model.expr import parse, parse_scalar
from deltalakedb.model.protocol import (
    FEATURE_PROPERTY,
    NEW_TABLE,
    check_write,
    features,
    required_for,
    upgrade,
)
from deltalakedb.model.schema import VOID, StructType, mapping_mode, parse_schema, to_json, walk
from deltalakedb.table.properties import checked

_VERSIONS = ("delta.minReaderVersion", "delta.minWriterVersion")
CONSTRAINT = "delta.constraints."
ROW_TRACKING = "delta.enableRowTracking"
_ROW_ID = "delta.rowTracking.materializedRowIdColumnName"
_ROW_VERSION = "delta.rowTracking.materializedRowCommitVersionColumnName"
MAX_COLUMN_ID = "delta.columnMapping.maxColumnId"
SCHEMA_MODES = (None, "merge", "overwrite")


def _fresh_name(_: str) -> str:
    return f"col-{uuid.uuid4()}"


def new_table(
    schema: StructType,
    *,
    partition_by: Sequence[str] = (),
    properties: Mapping[str, object] | None = None,
    name: str | None = None,
    description: str | None = None,
    now: int,
) -> tuple[Metadata, Protocol]:
    """Metadata and the lowest protocol that can express it."""
    configuration = _completed(checked(properties or {}))
    mode = mapping_mode(configuration)
    validate_schema(schema, partition_columns=partition_by, mode=mode)
    schema, max_id = assign_column_mapping(schema, mode=mode, max_id=0, new_name=_fresh_name)
    if mode != "none":
        configuration[MAX_COLUMN_ID] = str(max_id)
    metadata = Metadata(
        id=str(uuid.uuid4()),
        name=name,
        description=description,
        schema_string=to_json(schema),
        partition_columns=tuple(partition_by),
        configuration=configuration,
        created_time=now,
    )
    protocol = _raised(NEW_TABLE, required_for(metadata), configuration)
    check_write(protocol, metadata=metadata, table=name)
    require_readable_expressions(metadata)
    return _stored(metadata), protocol


def _completed(configuration: Mapping[str, str]) -> dict[str, str]:
    """With the properties that others require: row tracking needs names for its columns."""
    made = dict(configuration)
    if made.get(ROW_TRACKING, "").lower() == "true":
        made.setdefault(_ROW_ID, f"_row-id-col-{uuid.uuid4()}")
        made.setdefault(_ROW_VERSION, f"_row-commit-version-col-{uuid.uuid4()}")
    return made


def require_readable_expressions(metadata: Metadata) -> None:
    """Refuse constraints and generated columns that no row could ever be held against.

    Raises:
        ExpressionError: names what is not understood.
    """
    schema = parse_schema(metadata.schema_string)
    for _, text in conditions(metadata):
        parse(text, schema, double_quotes="string")
    for field in schema.fields:
        if field.generation_expression:
            parse_scalar(field.generation_expression, schema, double_quotes="string")


def conditions(metadata: Metadata) -> list[tuple[str, str]]:
    """CHECK constraints and invariants of columns, each with its name."""
    found = [
        (key.removeprefix(CONSTRAINT), text)
        for key, text in metadata.configuration.items()
        if key.startswith(CONSTRAINT)
    ]
    columns = walk(parse_schema(metadata.schema_string))
    return found + [(".".join(path), f.invariant) for path, f in columns if f.invariant]


def _raised(
    protocol: Protocol, needed: frozenset[str], configuration: Mapping[str, str]
) -> Protocol:
    """The protocol with the features that are needed and the versions that are asked for."""
    reader, writer = (int(configuration.get(name, "1")) for name in _VERSIONS)
    asked = Protocol(min_reader_version=reader, min_writer_version=writer)
    raised = upgrade(protocol, needed | features(asked))
    if raised.writer_features is not None:
        return raised
    return msgspec.structs.replace(
        raised,
        min_reader_version=max(raised.min_reader_version, reader),
        min_writer_version=max(raised.min_writer_version, writer),
    )


def _stored(metadata: Metadata) -> Metadata:
    """Without the properties that only ask for something."""
    asked = (FEATURE_PROPERTY, *_VERSIONS)
    kept = {k: v for k, v in metadata.configuration.items() if not k.startswith(asked)}
    return msgspec.structs.replace(metadata, configuration=kept)


def changed(table: str, old: Metadata, protocol: Protocol, new: Metadata) -> list[Action]:
    """The actions that turn one metadata into another, the protocol raised where it must be."""
    schema = parse_schema(new.schema_string)
    mode = mapping_mode(new.configuration)
    if mode != mapping_mode(old.configuration):
        raise InvalidArgument(
            "delta.columnMapping.mode can only be chosen when the table is created",
            argument="delta.columnMapping.mode",
        )
    validate_schema(schema, partition_columns=new.partition_columns, mode=mode)
    new = msgspec.structs.replace(new, configuration=_completed(new.configuration))
    if mode != "none":
        last = int(new.configuration.get(MAX_COLUMN_ID, "0"))
        schema, max_id = assign_column_mapping(schema, mode=mode, max_id=last, new_name=_fresh_name)
        new = msgspec.structs.replace(
            new,
            schema_string=to_json(schema),
            configuration={**new.configuration, MAX_COLUMN_ID: str(max_id)},
        )
    # What the old metadata asked for without effect stays without effect.
    raised = _raised(protocol, required_for(new) - required_for(old), new.configuration)
    check_write(raised, metadata=new, table=table)
    stored = _stored(new)
    actions: list[Action] = []
    if raised != protocol:
        actions.append(raised)
    if stored != old:
        actions.append(stored)
    return actions


def with_schema(metadata: Metadata, schema: StructType) -> Metadata:
    """The same metadata with another schema."""
    return msgspec.structs.replace(metadata, schema_string=to_json(schema))


def evolved(
    table: str, metadata: Metadata, incoming: StructType, schema_mode: str | None
) -> Metadata:
    """The table's metadata once data of this schema is written to it.

    Without a mode the schema stays, and data with unknown columns is refused. `merge` adds
    columns, and widens types where the table allows it. `overwrite` replaces the schema.
    """
    if schema_mode not in SCHEMA_MODES:
        raise InvalidArgument(
            f"schema_mode {schema_mode!r}: it takes 'merge' or 'overwrite'",
            argument="schema_mode",
            allowed=SCHEMA_MODES,
        )
    current = parse_schema(metadata.schema_string)
    if schema_mode == "overwrite":
        return with_schema(metadata, without_void(incoming))
    widen = metadata.configuration.get("delta.enableTypeWidening") == "true"
    types = "widen" if widen and schema_mode == "merge" else "keep"
    merged = merge(current, incoming, types=types)  # type: ignore[arg-type]
    if schema_mode is None:
        known = {path for path, _ in walk(current)}
        if unknown := [".".join(path) for path, _ in walk(merged) if path not in known]:
            raise SchemaMismatch(
                f"{table}: the table has no column {', '.join(unknown)};"
                f" schema_mode='merge' adds it\n{side_by_side(current, incoming)}",
                table=table,
                expected=current,
                found=incoming,
                columns=tuple(unknown),
            )
        return metadata
    return metadata if merged == current else with_schema(metadata, merged)


def without_void(schema: StructType) -> StructType:
    """Columns that hold nothing but nulls have no type; they cannot be stored."""
    if void := [f.name for f in schema.fields if f.type == VOID]:
        raise SchemaMismatch(
            f"the type of {', '.join(void)} is not known: all values are null."
            " Cast the column to the type it should have",
            columns=tuple(void),
        )
    return schema
