"""Lines of the log to actions, and back.

What this build does not know is kept: unknown fields in `extra`, unknown actions and provenance
as the text they are. Encoding is deterministic, with keys in the order Delta Spark writes them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from deltalakedb.errors import CorruptLog
from deltalakedb.model.actions import (
    EXTRA,
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

KINDS: Final[Mapping[str, type[Any]]] = {
    "add": Add,
    "remove": Remove,
    "cdc": Cdc,
    "metaData": Metadata,
    "protocol": Protocol,
    "txn": Txn,
    "domainMetadata": DomainMetadata,
    "checkpointMetadata": CheckpointMetadata,
    "sidecar": Sidecar,
}
"""The actions with fields of their own, by their key in the log."""

_DERIVED: Final = ("stats_parsed", "partitionValues_parsed")
"""Columns of checkpoints that only repeat others."""

_ORDER: Final[Mapping[type[Any], tuple[str, ...]]] = {
    Remove: (
        *("path", "deletion_timestamp", "data_change", "extended_file_metadata"),
        *("partition_values", "size", "tags", "deletion_vector", "base_row_id"),
        *("default_row_commit_version", "stats"),
    ),
    Cdc: ("path", "partition_values", "size", "tags", "data_change"),
    Metadata: (
        *("id", "name", "description", "format", "schema_string", "partition_columns"),
        *("configuration", "created_time"),
    ),
    DeletionVector: (
        *("storage_type", "path_or_inline_dv", "offset", "size_in_bytes", "cardinality"),
    ),
}
"""Where Delta Spark's order is not the one of the fields here."""


def _wire_fields(action: type[Any]) -> tuple[tuple[str, str], ...]:
    """(key in the log, attribute) in the order of writing."""
    keys = {field.name: field.encode_name for field in msgspec.structs.fields(action)}
    order = _ORDER.get(action) or tuple(name for name in keys if name != "extra")
    assert {*order, "extra"} == keys.keys(), action
    return tuple((keys[name], name) for name in order)


def _line_decoder(key: str, kind: type[Any]) -> msgspec.json.Decoder[Any]:
    """Reads a line that holds exactly one action of this kind with known fields only."""
    field = ("action", kind, msgspec.field(name=key))
    line = msgspec.defstruct("Line", [field], forbid_unknown_fields=True)
    return msgspec.json.Decoder(line)


_WIRE: Final = {kind: _wire_fields(kind) for kind in KINDS.values()} | {
    DeletionVector: _wire_fields(DeletionVector)
}
_KEY: Final = {kind: key for key, kind in KINDS.items()}
_FAST: Final = {key.encode(): _line_decoder(key, kind) for key, kind in KINDS.items()}
_LINE: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_encoder: Final = msgspec.json.Encoder(enc_hook=dict)


# -- decoding ----------------------------------------------------------------------------------


def decode_commit(
    data: bytes, *, version: int | None = None, location: str | None = None
) -> list[Action]:
    """The actions of a commit file, or of a checkpoint in JSON, in order.

    Raises:
        CorruptLog: names version, line and field.
    """
    lines = enumerate(data.split(b"\n"), start=1)
    found = (decode_line(line, version=version, number=n, location=location) for n, line in lines)
    return [action for action in found if action is not None]


def decode_line(
    line: bytes | str,
    *,
    version: int | None = None,
    number: int | None = None,
    location: str | None = None,
) -> Action | None:
    """The action on one line of the log; None where the line holds none.

    Raises:
        CorruptLog: names version, line and field.
    """
    data = line.encode() if isinstance(line, str) else line
    if (fast := _FAST.get(data[2 : data.find(b'"', 2)])) is not None:
        try:
            return fast.decode(data).action  # type: ignore[no-any-return]
        except (msgspec.DecodeError, UnicodeDecodeError):
            pass  # null, unknown or broken fields: read it with care
    try:
        return _decode_slowly(data.strip())
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _corrupt(str(error), version=version, number=number, location=location) from error


def _decode_slowly(line: bytes) -> Action | None:
    if not line:
        return None
    # Some versions of Databricks end every line with an x.
    bodies = _LINE.decode(line[:-1] if line.endswith(b"}x") else line)
    found = {key: body for key, body in bodies.items() if bytes(body) != b"null"}
    known = [key for key in found if key in KINDS or key == "commitInfo"] or list(found)
    if not known:
        return None
    if len(known) > 1:
        raise msgspec.DecodeError(f"several actions on one line: {', '.join(known)}")
    key, body = known[0], found[known[0]]
    if key in KINDS:
        return _build(key, msgspec.json.decode(body))
    text = bytes(body).decode()
    if key != "commitInfo":
        return UnknownAction(key, text)
    if not text.startswith("{"):
        raise msgspec.DecodeError("Expected `object` - at `$.commitInfo`")
    return CommitInfo(text)


def from_fields(
    kind: str, fields: Mapping[str, Any], *, version: int | None = None, location: str | None = None
) -> Action:
    """The action of a row of a Parquet checkpoint, where maps are lists of pairs.

    Raises:
        CorruptLog: names version and field.
    """
    if kind not in KINDS:
        body = _encoder.encode(fields).decode()
        return CommitInfo(body) if kind == "commitInfo" else UnknownAction(kind, body)
    try:
        return _build(kind, {k: v for k, v in fields.items() if k not in _DERIVED})
    except msgspec.ValidationError as error:
        raise _corrupt(str(error), version=version, location=location) from error


_MAPS: Final = {"partitionValues", "tags", "configuration"}


def _build(key: str, fields: Any) -> Action:
    try:
        made = msgspec.convert(_known(KINDS[key], fields), KINDS[key])
    except msgspec.ValidationError as error:
        text, _, place = str(error).partition(" - at `$")
        at = f" - at `$.{key}{place or '`'}"
        raise msgspec.ValidationError(text + at) from error
    return made  # type: ignore[no-any-return]


def _known(kind: type[Any], fields: Any) -> Any:
    """Fields ready to be converted: nulls gone, unknown ones put aside, maps made dicts."""
    if not isinstance(fields, Mapping):
        return fields
    names = {key for key, _ in _WIRE[kind]}
    made = {key: value for key, value in fields.items() if key in names and value is not None}
    for key in _MAPS & made.keys():
        made[key] = _mapping(made[key])
    if isinstance(form := made.get("format"), Mapping):
        made["format"] = {k: _mapping(v) for k, v in form.items() if v is not None}
    if (dv := made.get("deletionVector")) is not None:
        made["deletionVector"] = _known(DeletionVector, dv)
    if kind is Metadata:
        made.setdefault("schemaString", "")  # Databricks may write it only with the first data
    made[EXTRA] = {key: value for key, value in fields.items() if key not in names}
    return made


_FIELD: Final = re.compile(r"(?:missing required field `(.*)`)? - at `\$\.(.*)`")


def _mapping(value: Any) -> Any:
    """Parquet's maps are lists of tuples, which JSON does not have."""
    pairs = isinstance(value, list) and all(isinstance(pair, tuple) for pair in value)
    return dict(value) if pairs else value


def _corrupt(
    reason: str,
    *,
    version: int | None = None,
    number: int | None = None,
    location: str | None = None,
) -> CorruptLog:
    found = _FIELD.search(reason)
    field = ".".join(part for part in found.group(2, 1) if part) if found else None
    where = [f"version {version}"] if version is not None else []
    where += [f"line {number}"] if number is not None else []
    return CorruptLog(
        f"the log cannot be read{' at ' if where else ''}{', '.join(where)}: {reason}",
        location=location,
        version=version,
        line=number,
        field=field,
        reason=reason,
    )


# -- encoding ----------------------------------------------------------------------------------


def encode_commit(actions: Iterable[Action]) -> bytes:
    """The bytes of a commit file."""
    return "".join(f"{encode(action)}\n" for action in actions).encode()


def encode(action: Action) -> str:
    """The line of the log for an action. Fields that are null are left out."""
    if isinstance(action, CommitInfo):
        return f'{{"commitInfo":{_one_line(action.body)}}}'
    if isinstance(action, UnknownAction):
        return f"{{{_encoder.encode(action.kind).decode()}:{_one_line(action.body)}}}"
    return _encoder.encode({_KEY[type(action)]: _fields(action)}).decode()


def _one_line(body: str) -> str:
    return msgspec.json.format(body, indent=-1) if "\n" in body or "\r" in body else body


def _fields(action: Any) -> dict[str, Any]:
    wire = _WIRE[type(action)]
    made = {key: value for key, name in wire if (value := getattr(action, name)) is not None}
    if (dv := made.get("deletionVector")) is not None:
        made["deletionVector"] = _fields(dv)
    if made.get("schemaString") == "":
        del made["schemaString"]
    if action.extra:
        made = (
            {**action.extra, **made} if made.keys() & action.extra.keys() else made | action.extra
        )
    return made
