"""Delta's actions, with every field of the protocol, as frozen values.

Field names are Python's; `codec` maps them to the log's camelCase. `extra` holds fields this
build does not know, so that reading and writing an action loses nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import msgspec

Extra: TypeAlias = Mapping[str, Any]


EXTRA = " extra"
"""`extra` is ours: no field of the log may be taken for it, hence the space."""


def _wire_name(name: str) -> str:
    first, *rest = name.split("_")
    return EXTRA if name == "extra" else first + "".join(map(str.capitalize, rest))


class _Action(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    rename=_wire_name,
    forbid_unknown_fields=True,
    gc=False,
):
    """Common shape of all actions."""


class DeletionVector(_Action, frozen=True, kw_only=True):
    """Where the deleted rows of a file are recorded. `storage_type` is u, i or p."""

    storage_type: str
    path_or_inline_dv: str
    size_in_bytes: int
    cardinality: int
    offset: int | None = None
    extra: Extra = {}

    @property
    def unique_id(self) -> str:
        """Identity inside a table: storage type, path, and the offset if there is one."""
        suffix = "" if self.offset is None else f"@{self.offset}"
        return f"{self.storage_type}{self.path_or_inline_dv}{suffix}"


def _dv_id(dv: DeletionVector | None) -> str:
    return "" if dv is None else dv.unique_id


class Add(_Action, frozen=True, kw_only=True):
    """A file becomes part of the table. `stats` is the text as written, never reformatted."""

    path: str
    partition_values: Mapping[str, str | None]
    size: int
    modification_time: int
    data_change: bool
    stats: str | None = None
    tags: Mapping[str, str | None] | None = None
    deletion_vector: DeletionVector | None = None
    base_row_id: int | None = None
    default_row_commit_version: int | None = None
    clustering_provider: str | None = None
    extra: Extra = {}

    @property
    def dv_id(self) -> str:
        """Unique id of the deletion vector, empty without one."""
        return _dv_id(self.deletion_vector)


class Remove(_Action, frozen=True, kw_only=True):
    """A file leaves the table."""

    path: str
    data_change: bool
    deletion_timestamp: int | None = None
    extended_file_metadata: bool | None = None
    partition_values: Mapping[str, str | None] | None = None
    size: int | None = None
    stats: str | None = None
    tags: Mapping[str, str | None] | None = None
    deletion_vector: DeletionVector | None = None
    base_row_id: int | None = None
    default_row_commit_version: int | None = None
    extra: Extra = {}

    @property
    def dv_id(self) -> str:
        """Unique id of the deletion vector, empty without one."""
        return _dv_id(self.deletion_vector)


class Cdc(_Action, frozen=True, kw_only=True):
    """A file of row-level changes of one version."""

    path: str
    partition_values: Mapping[str, str | None]
    size: int
    data_change: bool = False
    tags: Mapping[str, str | None] | None = None
    extra: Extra = {}


class Format(_Action, frozen=True, kw_only=True, forbid_unknown_fields=False):
    """Encoding of the data files; always Parquet in practice."""

    provider: str = "parquet"
    options: Mapping[str, str] = {}


class Metadata(_Action, frozen=True, kw_only=True):
    """Schema, partitioning and properties of a table. `schema_string` is verbatim."""

    id: str
    schema_string: str
    partition_columns: tuple[str, ...] = ()
    configuration: Mapping[str, str] = {}
    format: Format = Format()
    name: str | None = None
    description: str | None = None
    created_time: int | None = None
    extra: Extra = {}


class Protocol(_Action, frozen=True, kw_only=True):
    """What a reader and a writer must understand. Feature lists exist only at 3 and 7."""

    min_reader_version: int
    min_writer_version: int
    reader_features: tuple[str, ...] | None = None
    writer_features: tuple[str, ...] | None = None
    extra: Extra = {}


class Txn(_Action, frozen=True, kw_only=True):
    """How far an application has come: what makes a writer exactly-once."""

    app_id: str
    version: int
    last_updated: int | None = None
    extra: Extra = {}


class DomainMetadata(_Action, frozen=True, kw_only=True):
    """Configuration of a named domain; `removed` is its tombstone."""

    domain: str
    configuration: str
    removed: bool = False
    extra: Extra = {}


class CommitInfo(msgspec.Struct, frozen=True):
    """Provenance of a commit: free JSON, kept as the text it is written as."""

    body: str

    def as_dict(self) -> dict[str, Any]:
        """The parsed JSON object."""
        return msgspec.json.decode(self.body.encode(), type=dict[str, Any])


class CheckpointMetadata(_Action, frozen=True, kw_only=True):
    """First action of a V2 checkpoint."""

    version: int
    tags: Mapping[str, str | None] | None = None
    extra: Extra = {}


class Sidecar(_Action, frozen=True, kw_only=True):
    """A file that carries file actions of a V2 checkpoint."""

    path: str
    size_in_bytes: int
    modification_time: int
    tags: Mapping[str, str | None] | None = None
    extra: Extra = {}


class UnknownAction(msgspec.Struct, frozen=True):
    """An action this build does not know, kept whole."""

    kind: str
    body: str


Action: TypeAlias = (
    Add
    | Remove
    | Cdc
    | Metadata
    | Protocol
    | Txn
    | DomainMetadata
    | CommitInfo
    | CheckpointMetadata
    | Sidecar
    | UnknownAction
)
