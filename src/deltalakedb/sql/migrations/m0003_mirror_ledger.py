"""What is still to be written to `_delta_log`: a row for each version and target."""

from __future__ import annotations

from typing import Final

from deltalakedb.sql.ddl import CreateIndex, CreateTable, Execute, Migration

MIGRATION: Final = Migration(
    3,
    "mirror_ledger",
    (
        CreateTable(
            "dl_mirror_status",
            """
            table_id BIGINT NOT NULL,
            version BIGINT NOT NULL CHECK (version >= 0),
            target TEXT NOT NULL,
            status TEXT NOT NULL
                CHECK (status IN ('PENDING', 'IN_FLIGHT', 'FAILED', 'SUCCEEDED')),
            attempts BIGINT NOT NULL CHECK (attempts >= 0),
            next_attempt_at BIGINT NOT NULL,
            lease_owner TEXT,
            lease_until BIGINT,
            last_error TEXT,
            digest TEXT,
            updated_at BIGINT NOT NULL""",
            key="table_id, version, target",
        ),
        CreateIndex(
            "dl_mirror_status_open",
            "dl_mirror_status",
            "target, table_id, version",
            where="status <> 'SUCCEEDED'",
        ),
        # Versions from before the ledger were mirrored by nobody.
        Execute(
            """
INSERT INTO dl_mirror_status
       (table_id, version, target, status, attempts, next_attempt_at, updated_at)
SELECT table_id, version, 'delta', 'PENDING', 0, committed_at, committed_at
  FROM dl_table_versions"""
        ),
    ),
)
