"""Which columns of a table are pruned inside the database, and since when."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from deltalakedb.log.matching import prunable
from deltalakedb.model.actions import Metadata
from deltalakedb.model.keys import key_family
from deltalakedb.model.schema import DataType


class TrackedColumn(msgspec.Struct, frozen=True):
    """A column whose statistics are rows of `dl_column_stats`.

    `path` is the physical one; `since` the version from which on every added file has a
    row. Older files are of unknown content and are never pruned by this column.
    """

    id: int
    path: tuple[str, ...]
    family: str
    since: int


_UNITS: Final = {"date": "days", "timestamp": "microseconds", "timestamp_ntz": "microseconds"}
"""Types whose keys are all integers, but count different things."""

_decoder = msgspec.json.Decoder(tuple[TrackedColumn, ...])


def family(kind: DataType) -> str | None:
    """What the keys of a type count, so that keys of one family can be compared.

    None for a type without order.
    """
    return _UNITS.get(str(kind)) or key_family(kind)


def decode_tracked(text: str | None) -> tuple[TrackedColumn, ...]:
    """Of the text in `dl_metadata_updates.stats_columns`."""
    return _decoder.decode(text) if text else ()


def encode_tracked(columns: Iterable[TrackedColumn]) -> str:
    """Text for `dl_metadata_updates.stats_columns`."""
    return msgspec.json.encode(tuple(columns)).decode()


def track(
    metadata: Metadata, before: tuple[TrackedColumn, ...], version: int
) -> tuple[TrackedColumn, ...]:
    """The columns to track from a version on that has this metadata.

    A column that was tracked already keeps its id and its start, unless its values now have other
    keys; then it starts anew, and older files count as unknown.
    """
    known = {(column.path, column.family): column for column in before}
    last = max((column.id for column in before), default=-1)
    made: list[TrackedColumn] = []
    for column in prunable(metadata)[0]:
        kind = family(column.type) or ""
        found = known.get((column.physical, kind))
        if found is None:
            last += 1
            found = TrackedColumn(last, column.physical, kind, version)
        made.append(found)
    return tuple(made)
