"""What each conformance table is to us, where that is not simply "opens, and everyone agrees".

Tests hold this in both directions: a table named here must behave as it says, and any other table
must open and agree with delta-rs and with the naive replay.
"""

from __future__ import annotations

from dataclasses import dataclass

from deltalakedb.errors import CorruptLog, ProtocolError, TableNotFound, TxnLogError


@dataclass(frozen=True)
class Refusal:
    """Opening the newest version raises `error`, whose text holds `says`."""

    error: type[TxnLogError]
    says: str
    why: str


_CATALOG = Refusal(
    CorruptLog,
    "catalogOwned needs inCommitTimestamp",
    "the protocol requires in-commit timestamps of every catalog-managed table, since publishing a"
    " commit may happen long after it (catalogOwned is the feature's first name); these tables"
    " have the one without the other. They could not be read in any case: only their catalog"
    " knows which commits count",
)
_NO_PROTOCOL = Refusal(
    CorruptLog,
    "no protocol action",
    "a log cut down to what a statistics test needs; the first version of a table must hold a"
    " protocol, and a reader may not guess one",
)

REFUSED = {
    "broken/table_d": _CATALOG,
    "broken/table_e": _CATALOG,
    "broken/table_h": _CATALOG,
    "deltars/simple_table_features": Refusal(
        ProtocolError, "blahabl", "reader version 5 and a feature nobody knows"
    ),
    "golden/data-reader-absolute-paths-escaped-chars": Refusal(
        CorruptLog, "no metaData action", "the first version of a table must hold its metadata"
    ),
    "golden/deltalog-invalid-protocol-version": Refusal(
        ProtocolError, "reader version 99", "a version of the protocol that does not exist"
    ),
    "golden/deltalog-state-reconstruction-from-checkpoint-missing-protocol": Refusal(
        CorruptLog,
        "10.checkpoint.parquet: version 10 has no protocol action",
        "a checkpoint must hold the protocol. The commits would tell it, but a checkpoint that"
        " lacks one thing may lack others, so that going around it could give a wrong table",
    ),
    "golden/deltalog-state-reconstruction-without-metadata": Refusal(
        CorruptLog, "no metaData action", "the first version of a table must hold its metadata"
    ),
    "golden/hive": Refusal(TableNotFound, "no Delta table", "a folder of tables, not a table"),
    "golden/no-delta-log-folder": Refusal(TableNotFound, "no Delta table", "there is no log"),
    "kernelrs/crc-malformed": Refusal(
        TableNotFound, "no commit", "a log that holds a checksum file only"
    ),
    "trino/statistics/extended_stats_with_data_size": Refusal(
        TableNotFound, "no commit", "a log that holds Trino's own statistics only"
    ),
    "trino/statistics/extended_stats_without_data_size": Refusal(
        TableNotFound, "no commit", "a log that holds Trino's own statistics only"
    ),
    **{
        f"trino/statistics/{name}": _NO_PROTOCOL
        for name in (
            "basic_multi_file",
            "infinity_nan",
            "nan",
            "nan_multi_file",
            "negative_infinity",
            "negative_infinity_nan",
            "negative_zero",
            "positive_infinity",
            "zero_infinity",
            "zero_nan",
            "zero_negative_infinity",
        )
    },
}

GAPS_BEFORE_A_CHECKPOINT = {
    "broken/table_g": (
        9999,
        (
            "commits 0 to 13, then a checkpoint and a commit of version 9999. The protocol lets"
            " metadata cleanup delete everything before a checkpoint, says nothing about the order"
            " in which it does, and gives the state of version 9999 wholly to its checkpoint: so"
            " that version opens. Versions 0 to 13 are what an interrupted cleanup leaves; no"
            " unbroken line leads from them to the table of today, so they are not part of the"
            " range"
        ),
    ),
}
"""table: (the only version left, why)"""

CHECKPOINT_TELLS_OTHERWISE = {
    "kernelrs/parquet_row_group_skipping": (
        "a checkpoint made by hand, with one more column than the commits it stands for; the"
        " protocol says that a checkpoint may be used in place of its commits, and delta-rs uses"
        " it too"
    ),
}

_ANY_SPELLING = "delta-rs compares paths as text; a remove with another spelling misses its add"
_NO_SCHEMA = "metaData without schemaString, which some Databricks versions write before any data"
_X = "an x behind every line, as some old Databricks version wrote; Trino and we pass over it"

NOT_AS_DELTA_RS = {
    "deltars/delta-live-table": _NO_SCHEMA,
    "golden/canonicalized-paths-normal-a": _ANY_SPELLING,
    "golden/canonicalized-paths-normal-b": _ANY_SPELLING,
    "golden/canonicalized-paths-special-a": _ANY_SPELLING,
    "golden/corrupted-last-checkpoint": _NO_SCHEMA,
    "golden/deltalog-commit-info": _NO_SCHEMA,
    "kernelrs/table-with-geo": "delta-rs has no geometry type",
    "trino/databricks73/person": _X,
    "trino/databricks73/person_test_pruning": _X,
    "trino/databricks73/person_without_checkpoints": _X,
    "trino/databricks73/person_without_last_checkpoint": _X,
    "trino/databricks73/person_without_old_jsons": _X,
    "trino/databricks73/read_timestamps": "a partition value in the year 10000",
}
"""Tables that delta-rs cannot open at some version, or of which it has another opinion."""
