"""Typed statistics as intervals of 64-bit keys, clustered so that a probe is a short seek."""

from __future__ import annotations

from typing import Final

from deltalakedb.sql.ddl import AddColumn, CreateTable, Migration

MIGRATION: Final = Migration(
    2,
    "column_stats",
    (
        CreateTable(
            "dl_column_stats",
            """
            table_id BIGINT NOT NULL,
            column_id BIGINT NOT NULL,
            span SMALLINT NOT NULL CHECK (span BETWEEN -1 AND 64),
            lo BIGINT NOT NULL,
            hi BIGINT NOT NULL,
            file_id BIGINT NOT NULL,
            nulls SMALLINT NOT NULL CHECK (nulls BETWEEN 0 AND 2),
            min_string TEXT,
            max_string TEXT""",
            key="table_id, column_id, span, lo, file_id",
            per_file=True,
        ),
        # Which columns are tracked, and since when; null: none.
        AddColumn("dl_metadata_updates", "stats_columns TEXT"),
    ),
)
