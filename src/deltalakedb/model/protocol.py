"""Table features: what there is, what a table uses, what this build can do with it.

`FEATURES` is the one place that says what is supported. Of a feature this build may be able to
read the log only, or the rows too; a feature that is not listed is refused by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, Literal, TypeAlias

import msgspec

from deltalakedb.errors import CorruptLog, ProtocolError
from deltalakedb.model.actions import Metadata, Protocol
from deltalakedb.model.schema import (
    COLLATIONS,
    DEFAULT,
    GENERATION,
    INVARIANTS,
    TYPE_CHANGES,
    mapping_mode,
    parse_schema,
    primitives,
    walk,
)

Reads: TypeAlias = Literal["nothing", "log", "rows"]

MAX_READER: Final = 3
MAX_WRITER: Final = 7


class Feature(msgspec.Struct, frozen=True):
    """One table feature.

    Attributes:
        name: As it stands in the protocol action.
        meaning: For people, in errors.
        reader: Lowest reader version that has it, 0 if readers need not know it.
        writer: Lowest writer version that has it; below 7 it is a legacy feature.
        reads: How far this build reads tables with it.
        writes: Whether this build writes tables with it.
        if_used: Writing is only affected while a column or property makes use of it.
        requires: Features that must be there too.
        stands_for: The final name, if this is a preview's.
    """

    name: str
    meaning: str
    reader: int = 0
    writer: int = MAX_WRITER
    reads: Reads = "rows"
    writes: bool = True
    if_used: bool = False
    requires: tuple[str, ...] = ()
    stands_for: str | None = None


_DOMAINS: Final = ("domainMetadata",)

_FINAL: Final = (
    Feature("appendOnly", "rows are never changed or removed", writer=2),
    Feature("invariants", "SQL conditions on columns", writer=2),
    Feature("checkConstraints", "CHECK constraints", writer=3),
    Feature("changeDataFeed", "row-level changes are recorded", writer=4),
    Feature("generatedColumns", "columns computed from others", writer=4),
    Feature("columnMapping", "columns have physical names and ids", reader=2, writer=5),
    Feature("identityColumns", "columns that number rows", writer=6, writes=False, if_used=True),
    # From here on only with feature lists. First those that concern writers alone.
    Feature("allowColumnDefaults", "columns with default values", writes=False, if_used=True),
    Feature("domainMetadata", "named metadata domains"),
    Feature("inCommitTimestamp", "commits carry their own time"),
    Feature("rowTracking", "rows keep an id across versions", requires=_DOMAINS),
    Feature("clustering", "files are clustered by columns", writes=False, requires=_DOMAINS),
    Feature("collations", "strings compare by a collation", writes=False, requires=_DOMAINS),
    Feature("materializePartitionColumns", "files hold partition columns", writes=False),
    Feature("checkpointProtection", "checkpoints before a version must stay"),
    Feature("redirectWriterOnly-preview", "writers are sent to another place", writes=False),
    Feature("icebergCompatV1", "fits Iceberg", writes=False, requires=("columnMapping",)),
    Feature("icebergCompatV2", "fits Iceberg", writes=False, requires=("columnMapping",)),
    Feature(
        "icebergCompatV3", "fits Iceberg", writes=False, requires=("columnMapping", "rowTracking")
    ),
    Feature(
        "icebergWriterCompatV1", "written as Iceberg", writes=False, requires=("icebergCompatV2",)
    ),
    Feature(
        "icebergWriterCompatV3", "written as Iceberg", writes=False, requires=("icebergCompatV3",)
    ),
    # And those that readers must know too.
    Feature("deletionVectors", "rows deleted by bitmaps", reader=3, reads="log", writes=False),
    Feature("timestampNtz", "timestamps without time zone", reader=3),
    Feature("v2Checkpoint", "checkpoints with sidecars", reader=3),
    Feature("vacuumProtocolCheck", "VACUUM checks the writer protocol", reader=3),
    Feature("typeWidening", "columns that got a wider type", reader=3),
    Feature("variantType", "semi-structured values", reader=3),
    Feature(
        "variantShredding",
        "parts of variants in columns of their own",
        reader=3,
        reads="log",
        writes=False,
        requires=("variantType",),
    ),
    Feature("geospatial", "geometry and geography", reader=3, reads="log", writes=False),
    # The files of these do not tell the table's state.
    Feature(
        "catalogManaged",
        "a catalog decides on commits",
        reader=3,
        reads="nothing",
        writes=False,
        requires=("inCommitTimestamp",),
    ),
    Feature(
        "coordinatedCommits-preview",
        "a coordinator decides on commits",
        reader=3,
        reads="nothing",
        writes=False,
        requires=("inCommitTimestamp",),
    ),
    Feature(
        "redirectReaderWriter-preview",
        "the table is at another place",
        reader=3,
        reads="nothing",
        writes=False,
    ),
)
_PREVIEWS: Final = {
    "inCommitTimestamp-preview": "inCommitTimestamp",
    "collations-preview": "collations",
    "typeWidening-preview": "typeWidening",
    "variantType-preview": "variantType",
    "variantShredding-preview": "variantShredding",
    "catalogOwned-preview": "catalogManaged",
    "catalogOwned": "catalogManaged",
}
_ALL: Final = (
    *_FINAL,
    *(
        msgspec.structs.replace(feature, name=preview, stands_for=final)
        for preview, final in _PREVIEWS.items()
        for feature in _FINAL
        if feature.name == final
    ),
)
FEATURES: Final[Mapping[str, Feature]] = {feature.name: feature for feature in _ALL}
_BY_LOWER: Final = {name.lower(): name for name in FEATURES}
NEW_TABLE: Final = Protocol(min_reader_version=1, min_writer_version=2)
"""What a table without any wishes gets."""


# -- what a protocol says ----------------------------------------------------------------------


def features(protocol: Protocol) -> frozenset[str]:
    """Every feature the table supports; legacy versions count as the features they stand for."""
    reader, writer = protocol.min_reader_version, protocol.min_writer_version
    if writer >= MAX_WRITER:
        return frozenset(protocol.writer_features or ()) | reader_features(protocol)
    return frozenset(f.name for f in _ALL if f.writer <= writer and f.reader <= reader)


def reader_features(protocol: Protocol) -> frozenset[str]:
    """The features a reader must know."""
    if protocol.min_reader_version >= MAX_READER:
        return frozenset(protocol.reader_features or ())
    return frozenset(f.name for f in _ALL if 0 < f.reader <= protocol.min_reader_version)


def supports(protocol: Protocol, name: str) -> bool:
    """Whether the table has a feature, by its name or by a preview's."""
    return any(name in (f, _final_name(f)) for f in features(protocol))


def _final_name(name: str) -> str:
    known = FEATURES.get(name)
    return (known.stands_for if known else None) or name


def validate_protocol(
    protocol: Protocol, *, version: int | None = None, location: str | None = None
) -> None:
    """Refuse a protocol action that contradicts itself.

    Versions beyond this build's are not judged here: `check_read` refuses them.

    Raises:
        CorruptLog: says what is wrong.
    """
    reader, writer = protocol.min_reader_version, protocol.min_writer_version
    if reader > MAX_READER or writer > MAX_WRITER:
        return
    listed = set(protocol.reader_features or ())
    if reader < 1 or writer < 1:
        reason = f"versions start at 1, not {reader} and {writer}"
    elif reader == MAX_READER and writer < MAX_WRITER:
        reason = f"reader version 3 needs writer version 7, not {writer}"
    elif reader == MAX_READER and protocol.reader_features is None:
        reason = "reader version 3 needs readerFeatures"
    elif writer == MAX_WRITER and protocol.writer_features is None:
        reason = "writer version 7 needs writerFeatures"
    elif reader < MAX_READER and listed:
        reason = f"readerFeatures at reader version {reader}; they exist at 3 only"
    elif writer < MAX_WRITER and protocol.writer_features:
        reason = f"writerFeatures at writer version {writer}; they exist at 7 only"
    elif alone := sorted(listed - set(protocol.writer_features or ())):
        reason = f"reader features that are not writer features: {', '.join(alone)}"
    elif lacking := [f"{name} needs {other}" for name, other in _unmet(protocol)]:
        reason = ", ".join(lacking)
    else:
        return
    message = f"the protocol contradicts itself: {reason}"
    raise CorruptLog(message, reason=reason, version=version, location=location)


def _unmet(protocol: Protocol) -> list[tuple[str, str]]:
    """Features for readers, each with one it requires and the table does not have."""
    known = (FEATURES[name] for name in sorted(reader_features(protocol)) if name in FEATURES)
    return [(f.name, other) for f in known for other in f.requires if not supports(protocol, other)]


def check_read(
    protocol: Protocol, *, level: Literal["log", "rows"] = "rows", table: str | None = None
) -> None:
    """Refuse a table whose log, or whose rows, this build cannot read.

    Raises:
        ProtocolError: lists every missing feature and what it means.
    """
    enough = ("rows",) if level == "rows" else ("log", "rows")
    missing = [
        name
        for name in sorted(reader_features(protocol))
        if name not in FEATURES or FEATURES[name].reads not in enough
    ]
    _refuse("read", _too_new("reader", protocol.min_reader_version, MAX_READER) + missing, table)


def check_write(
    protocol: Protocol, *, metadata: Metadata | None = None, table: str | None = None
) -> None:
    """Refuse a table this build cannot write.

    With `metadata`, features that matter only where they are used are passed over if they are not.

    Raises:
        ProtocolError: lists every missing feature and what it means.
    """
    check_read(protocol, table=table)
    used = required_for(metadata) if metadata is not None else None

    def lacking(name: str) -> bool:
        known = FEATURES.get(name)
        idle = known is not None and known.if_used and used is not None and name not in used
        return not idle and (known is None or not known.writes)

    missing = [name for name in sorted(features(protocol)) if lacking(name)]
    _refuse("write", _too_new("writer", protocol.min_writer_version, MAX_WRITER) + missing, table)


def _too_new(side: str, version: int, known: int) -> list[str]:
    return [f"{side} version {version}"] if version > known else []


def _refuse(operation: str, missing: list[str], table: str | None) -> None:
    if not missing:
        return
    text = ", ".join(
        f"{name} ({FEATURES[name].meaning if name in FEATURES else 'unknown to this build'})"
        for name in missing
    )
    subject = "the table" if table is None else table
    raise ProtocolError(
        f"cannot {operation} {subject}: it needs {text}",
        table=table,
        missing=tuple(missing),
        operation=operation,
    )


# -- what a table needs ------------------------------------------------------------------------

_BY_PROPERTY: Final = {
    "delta.appendOnly": "appendOnly",
    "delta.enableChangeDataFeed": "changeDataFeed",
    "delta.enableDeletionVectors": "deletionVectors",
    "delta.enableRowTracking": "rowTracking",
    "delta.enableInCommitTimestamps": "inCommitTimestamp",
    "delta.enableTypeWidening": "typeWidening",
    "delta.enableVariantShredding": "variantShredding",
    "delta.enableIcebergCompatV1": "icebergCompatV1",
    "delta.enableIcebergCompatV2": "icebergCompatV2",
    "delta.enableIcebergCompatV3": "icebergCompatV3",
    "delta.enableIcebergWriterCompatV1": "icebergWriterCompatV1",
    "delta.enableIcebergWriterCompatV3": "icebergWriterCompatV3",
}
_BY_COLUMN_METADATA: Final = {
    INVARIANTS: "invariants",
    GENERATION: "generatedColumns",
    DEFAULT: "allowColumnDefaults",
    TYPE_CHANGES: "typeWidening",
    COLLATIONS: "collations",
    "delta.identity.start": "identityColumns",
}
_BY_TYPE: Final = {
    "timestamp_ntz": "timestampNtz",
    "variant": "variantType",
    "geometry": "geospatial",
    "geography": "geospatial",
}
FEATURE_PROPERTY: Final = "delta.feature."
"""`delta.feature.NAME = supported` asks for a feature; such properties are not stored."""


def required_for(metadata: Metadata) -> frozenset[str]:
    """The features that schema and properties make necessary, with what those require.

    Columns and properties mean nothing where the protocol does not support them, and tables that
    carry such leftovers exist: when metadata changes, add what the new one requires and the old
    one did not.
    """
    schema, given = parse_schema(metadata.schema_string), metadata.configuration
    found = {name for key, name in _BY_PROPERTY.items() if given.get(key, "").lower() == "true"}
    keys = {key for _, field in walk(schema) for key in field.metadata}
    found |= {name for key, name in _BY_COLUMN_METADATA.items() if key in keys}
    types = {kind.name.partition("(")[0] for kind in primitives(schema)}
    found |= {name for kind, name in _BY_TYPE.items() if kind in types}
    if any(key.startswith("delta.constraints.") for key in given):
        found.add("checkConstraints")
    if mapping_mode(given) != "none":
        found.add("columnMapping")
    if given.get("delta.checkpointPolicy", "").lower() == "v2":
        found.add("v2Checkpoint")
    for key, value in given.items():
        if key.startswith(FEATURE_PROPERTY) and value.lower() in ("supported", "enabled"):
            name = key.removeprefix(FEATURE_PROPERTY)
            found.add(_BY_LOWER.get(name.lower(), name))
    return _with_required(found)


def _with_required(names: Iterable[str]) -> frozenset[str]:
    found, todo = set[str](), list(names)
    while todo:
        if (name := todo.pop()) not in found:
            found.add(name)
            todo += FEATURES[name].requires if name in FEATURES else ()
    return frozenset(found)


def minimal(metadata: Metadata) -> Protocol:
    """The lowest protocol for a new table: legacy versions as long as they can express it."""
    return upgrade(NEW_TABLE, required_for(metadata))


def upgrade(protocol: Protocol, names: Iterable[str]) -> Protocol:
    """The protocol with more features, and what those require; nothing is ever taken away.

    Legacy versions are kept where they can express the result. Where they cannot, every feature
    the old versions implied is listed, since earlier commits may have used it.

    Raises:
        ProtocolError: for a feature this build does not know.
    """
    wanted = _with_required(names)
    _refuse("add features to", sorted(wanted - FEATURES.keys()), None)
    new = sorted(name for name in wanted if not supports(protocol, name))
    if not new:
        return protocol
    added = [FEATURES[name] for name in new]
    reader = max(protocol.min_reader_version, *(f.reader for f in added))
    writer = max(protocol.min_writer_version, *(f.writer for f in added))
    if writer < MAX_WRITER:
        return msgspec.structs.replace(
            protocol, min_reader_version=reader, min_writer_version=writer
        )
    listed = protocol.writer_features
    old = sorted(features(protocol)) if listed is None else listed
    everything = (*old, *new)
    concerned = tuple(n for n in everything if n in FEATURES and FEATURES[n].reader > 0)
    kept = protocol.reader_features or ()
    return msgspec.structs.replace(
        protocol,
        min_reader_version=reader,
        min_writer_version=MAX_WRITER,
        reader_features=tuple(dict.fromkeys((*kept, *concerned))) if reader == MAX_READER else None,
        writer_features=everything,
    )
