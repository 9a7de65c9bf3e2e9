"""Table properties: which exist, and what they may be set to."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from deltalakedb.errors import InvalidArgument
from deltalakedb.table import arguments

Read = Callable[[str], str | None]
"""The value as it is stored, None for one that is not allowed."""


def _one_of(*allowed: str) -> Read:
    """Words in any case, stored in the one that readers compare with."""
    stored = {word.lower(): word for word in allowed}
    return lambda text: stored.get(text.lower())


_boolean = _one_of("true", "false")


def _integer(low: int) -> Read:
    return lambda text: text if re.fullmatch(r"-?\d+", text) and int(text) >= low else None


_INTERVAL = re.compile(
    r"(interval\s+)?\d+\s*(week|day|hour|minute|second|millisecond|microsecond)s?"
    r"(\s+\d+\s*(week|day|hour|minute|second|millisecond|microsecond)s?)*",
    re.IGNORECASE,
)


def _interval(text: str) -> str | None:
    return text if _INTERVAL.fullmatch(text.strip()) else None


def _anything(text: str) -> str | None:
    return text or None


CODECS: Final = ("none", "uncompressed", "snappy", "gzip", "zstd", "lz4", "brotli")

KNOWN: Final[Mapping[str, tuple[Read, str]]] = {
    "delta.appendOnly": (_boolean, "true or false"),
    "delta.autoOptimize.autoCompact": (_anything, "true, false, auto or legacy"),
    "delta.autoOptimize.optimizeWrite": (_boolean, "true or false"),
    "delta.checkpointInterval": (_integer(1), "a whole number from 1"),
    "delta.checkpointPolicy": (_one_of("classic", "v2"), "classic or v2"),
    "delta.checkpoint.writeStatsAsJson": (_boolean, "true or false"),
    "delta.checkpoint.writeStatsAsStruct": (_boolean, "true or false"),
    "delta.columnMapping.mode": (_one_of("none", "name", "id"), "none, name or id"),
    "delta.columnMapping.maxColumnId": (_integer(0), "a whole number"),
    "delta.dataSkippingNumIndexedCols": (_integer(-1), "a whole number from -1 (all columns)"),
    "delta.dataSkippingStatsColumns": (_anything, "column names, separated by commas"),
    "delta.deletedFileRetentionDuration": (_interval, "an interval such as 'interval 7 days'"),
    "delta.enableChangeDataFeed": (_boolean, "true or false"),
    "delta.enableDeletionVectors": (_boolean, "true or false"),
    "delta.enableExpiredLogCleanup": (_boolean, "true or false"),
    "delta.enableInCommitTimestamps": (_boolean, "true or false"),
    "delta.enableRowTracking": (_boolean, "true or false"),
    "delta.enableTypeWidening": (_boolean, "true or false"),
    "delta.inCommitTimestampEnablementTimestamp": (_integer(0), "set by the commit itself"),
    "delta.inCommitTimestampEnablementVersion": (_integer(0), "set by the commit itself"),
    "delta.isolationLevel": (
        _one_of("Serializable", "WriteSerializable"),
        "Serializable or WriteSerializable",
    ),
    "delta.logRetentionDuration": (_interval, "an interval such as 'interval 30 days'"),
    "delta.minReaderVersion": (_one_of("1", "2"), "1 or 2; beyond, delta.feature.NAME = supported"),
    "delta.minWriterVersion": (
        _one_of("1", "2", "3", "4", "5", "6"),
        "1 to 6; beyond, delta.feature.NAME = supported",
    ),
    "delta.parquet.compression.codec": (_one_of(*CODECS), f"one of {', '.join(CODECS)}"),
    "delta.randomizeFilePrefixes": (_boolean, "true or false"),
    "delta.randomPrefixLength": (_integer(1), "a whole number from 1"),
    "delta.rowTracking.materializedRowIdColumnName": (_anything, "a column name"),
    "delta.rowTracking.materializedRowCommitVersionColumnName": (_anything, "a column name"),
    "delta.setTransactionRetentionDuration": (_interval, "an interval such as 'interval 7 days'"),
    "delta.targetFileSize": (_anything, "a size such as 134217728 or 128mb"),
    "delta.tuneFileSizesForRewrites": (_boolean, "true or false"),
}
_PREFIXES: Final = ("delta.constraints.", "delta.feature.", "delta.universalFormat.")


def checked(properties: Mapping[str, object]) -> dict[str, str]:
    """The properties as text, every `delta.*` one known and sensible.

    Raises:
        InvalidArgument: names the property and what it may be.
    """
    made: dict[str, str] = {}
    for key, value in arguments.mapping("properties", properties).items():
        plain = str(value).lower() if isinstance(value, bool) else str(value)
        text = arguments.text(arguments.name("the name of a property", key), plain)
        known = KNOWN.get(key)
        if known is not None:
            read, allowed = known
            stored = read(text)
            if stored is None:
                raise InvalidArgument(
                    f"{key} = {text!r}: it takes {allowed}", argument=key, allowed=allowed
                )
            text = stored
        elif key.startswith(("delta.", "deltalakedb.")) and not key.startswith(_PREFIXES):
            raise InvalidArgument(
                f"there is no property {key!r}; known are {', '.join(KNOWN)}",
                argument=key,
                allowed=tuple(KNOWN),
            )
        made[key] = text.lower() if known is not None and known[0] is _boolean else text
    return made
