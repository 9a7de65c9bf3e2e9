"""Actions as database rows, and back. The only place that knows both shapes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from deltalakedb.model.actions import (
    Add,
    Cdc,
    DeletionVector,
    DomainMetadata,
    Format,
    Metadata,
    Protocol,
    Remove,
    Txn,
)

Row = tuple[Any, ...]

DV = "dv_storage_type, dv_path, dv_offset, dv_size, dv_cardinality"
ADD = (
    "path, partition_values, size, modification_time, data_change, stats, tags,"
    f" {DV}, base_row_id, default_row_commit_version, clustering_provider, extra"
)
REMOVE = (
    "path, data_change, deletion_timestamp, extended_file_metadata, partition_values, size,"
    f" stats, tags, {DV}, base_row_id, default_row_commit_version, extra"
)
CDC = "path, partition_values, size, tags, extra"
METADATA = (
    "id, name, description, format_provider, format_options, schema_string,"
    " partition_columns, configuration, created_time, extra"
)
PROTOCOL = "min_reader_version, min_writer_version, reader_features, writer_features, extra"
TXN = "app_id, app_version, last_updated, extra"
DOMAIN = "domain, configuration, removed, extra"

_encoder = msgspec.json.Encoder()


def to_text(value: Any) -> str:
    """Compact JSON text, keys in the order given."""
    return _encoder.encode(value).decode()


def to_text_or_none(value: Any) -> str | None:
    """JSON text, or None for None and for nothing."""
    return to_text(value) if value else None


def from_text(text: str | None) -> Any:
    """The parsed JSON, None for None."""
    return None if text is None else msgspec.json.decode(text)


def _tags(tags: Mapping[str, str | None] | None) -> str | None:
    return None if tags is None else to_text(tags)


_NO_DV: Row = (None, None, None, None, None)


def _dv_row(dv: DeletionVector | None) -> Row:
    if dv is None:
        return _NO_DV
    return (dv.storage_type, dv.path_or_inline_dv, dv.offset, dv.size_in_bytes, dv.cardinality)


def _dv(row: Sequence[Any], extra: dict[str, Any]) -> DeletionVector | None:
    if row[0] is None:
        return None
    return DeletionVector(
        storage_type=row[0],
        path_or_inline_dv=row[1],
        offset=row[2],
        size_in_bytes=row[3],
        cardinality=row[4],
        extra=extra.pop(_DV_EXTRA, {}),
    )


_DV_EXTRA = "deletionVector"
"""Where unknown fields of the deletion vector are kept: this key is known, so it is free."""


def _extra(file: Add | Remove) -> str | None:
    dv = file.deletion_vector
    if dv is None or not dv.extra:
        return to_text_or_none(file.extra)
    return to_text({**file.extra, _DV_EXTRA: dv.extra})


def add_row(a: Add) -> Row:
    """Columns `ADD`."""
    return (
        a.path,
        to_text(a.partition_values) if a.partition_values else "{}",
        a.size,
        a.modification_time,
        a.data_change,
        a.stats,
        _tags(a.tags),
        *_dv_row(a.deletion_vector),
        a.base_row_id,
        a.default_row_commit_version,
        a.clustering_provider,
        _extra(a),
    )


def add_from(row: Sequence[Any]) -> Add:
    """Of columns `ADD`."""
    extra = from_text(row[15]) or {}
    return Add(
        path=row[0],
        partition_values=from_text(row[1]),
        size=row[2],
        modification_time=row[3],
        data_change=bool(row[4]),
        stats=row[5],
        tags=from_text(row[6]),
        deletion_vector=_dv(row[7:12], extra),
        base_row_id=row[12],
        default_row_commit_version=row[13],
        clustering_provider=row[14],
        extra=extra,
    )


def remove_row(r: Remove) -> Row:
    """Columns `REMOVE`."""
    return (
        r.path,
        r.data_change,
        r.deletion_timestamp,
        r.extended_file_metadata,
        None if r.partition_values is None else to_text(r.partition_values),
        r.size,
        r.stats,
        _tags(r.tags),
        *_dv_row(r.deletion_vector),
        r.base_row_id,
        r.default_row_commit_version,
        _extra(r),
    )


def remove_from(row: Sequence[Any]) -> Remove:
    """Of columns `REMOVE`."""
    extra = from_text(row[15]) or {}
    return Remove(
        path=row[0],
        data_change=bool(row[1]),
        deletion_timestamp=row[2],
        extended_file_metadata=None if row[3] is None else bool(row[3]),
        partition_values=from_text(row[4]),
        size=row[5],
        stats=row[6],
        tags=from_text(row[7]),
        deletion_vector=_dv(row[8:13], extra),
        base_row_id=row[13],
        default_row_commit_version=row[14],
        extra=extra,
    )


def cdc_row(c: Cdc) -> Row:
    """Columns `CDC`."""
    return (c.path, to_text(c.partition_values), c.size, _tags(c.tags), to_text_or_none(c.extra))


def cdc_from(row: Sequence[Any]) -> Cdc:
    """Of columns `CDC`."""
    return Cdc(
        path=row[0],
        partition_values=from_text(row[1]),
        size=row[2],
        tags=from_text(row[3]),
        extra=from_text(row[4]) or {},
    )


def metadata_row(m: Metadata) -> Row:
    """Columns `METADATA`."""
    return (
        m.id,
        m.name,
        m.description,
        m.format.provider,
        to_text(m.format.options),
        m.schema_string,
        to_text(m.partition_columns),
        to_text(m.configuration),
        m.created_time,
        to_text_or_none(m.extra),
    )


def metadata_from(row: Sequence[Any]) -> Metadata:
    """Of columns `METADATA`."""
    return Metadata(
        id=row[0],
        name=row[1],
        description=row[2],
        format=Format(provider=row[3], options=from_text(row[4])),
        schema_string=row[5],
        partition_columns=tuple(from_text(row[6])),
        configuration=from_text(row[7]),
        created_time=row[8],
        extra=from_text(row[9]) or {},
    )


def protocol_row(p: Protocol) -> Row:
    """Columns `PROTOCOL`."""
    return (
        p.min_reader_version,
        p.min_writer_version,
        None if p.reader_features is None else to_text(p.reader_features),
        None if p.writer_features is None else to_text(p.writer_features),
        to_text_or_none(p.extra),
    )


def protocol_from(row: Sequence[Any]) -> Protocol:
    """Of columns `PROTOCOL`."""
    readers, writers = from_text(row[2]), from_text(row[3])
    return Protocol(
        min_reader_version=row[0],
        min_writer_version=row[1],
        reader_features=None if readers is None else tuple(readers),
        writer_features=None if writers is None else tuple(writers),
        extra=from_text(row[4]) or {},
    )


def txn_row(t: Txn) -> Row:
    """Columns `TXN`."""
    return (t.app_id, t.version, t.last_updated, to_text_or_none(t.extra))


def txn_from(row: Sequence[Any]) -> Txn:
    """Of columns `TXN`."""
    return Txn(app_id=row[0], version=row[1], last_updated=row[2], extra=from_text(row[3]) or {})


def domain_row(d: DomainMetadata) -> Row:
    """Columns `DOMAIN`."""
    return (d.domain, d.configuration, d.removed, to_text_or_none(d.extra))


def domain_from(row: Sequence[Any]) -> DomainMetadata:
    """Of columns `DOMAIN`."""
    return DomainMetadata(
        domain=row[0],
        configuration=row[1],
        removed=bool(row[2]),
        extra=from_text(row[3]) or {},
    )
