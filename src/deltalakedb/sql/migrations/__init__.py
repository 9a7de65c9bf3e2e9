"""The schema's versions, in order. One that was released is never changed again."""

from __future__ import annotations

from typing import Final

from deltalakedb.sql.ddl import Migration
from deltalakedb.sql.migrations import m0001_log, m0002_column_stats, m0003_mirror_ledger

MIGRATIONS: Final[tuple[Migration, ...]] = (
    m0001_log.MIGRATION,
    m0002_column_stats.MIGRATION,
    m0003_mirror_ledger.MIGRATION,
)
