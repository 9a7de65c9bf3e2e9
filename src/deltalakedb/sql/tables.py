"""The columns of every table, in the order in which rows are inserted.

Migrations make the tables; a test proves that both agree.
"""

from __future__ import annotations

from typing import Final

from deltalakedb.sql.base import Column, Table


def _table(name: str, *columns: str, key: str = "") -> Table:
    """Of texts like "a b bigint": names and the type they share."""
    made = [
        Column(column, kind)
        for *names, kind in (group.split() for group in columns)
        for column in names
    ]
    return Table(name, tuple(made), tuple(key.split()))


_DV: Final = (
    "dv_storage_type dv_path text",
    "dv_offset dv_size dv_cardinality bigint",
)

TABLES: Final = _table(
    "dl_tables",
    "table_id bigint",
    "name location text",
    "created_at bigint",
    "status properties text",
    "dropped bigint",
)
TABLE_HEADS: Final = _table("dl_table_heads", "table_id version next_file_id bigint")
TRANSACTIONS: Final = _table(
    "dl_transactions",
    "seq bigint",
    "txn_id text",
    "committed_at bigint",
    "committer message run_id result text",
)
TABLE_VERSIONS: Final = _table(
    "dl_table_versions",
    "table_id version seq committed_at bigint",
    "operation parameters commit_info text",
    "read_version bigint",
    "isolation_level text",
    "is_blind_append boolean",
    "num_added num_removed bytes_added bytes_removed bigint",
    "num_files size_bytes num_records num_uncounted bigint",
    "metadata_version protocol_version bigint",
)
ADD_FILES: Final = _table(
    "dl_add_files",
    "table_id file_id version removed_version bigint",
    "dv_id text",
    "num_records bigint",
    "path partition_values text",
    "size modification_time bigint",
    "data_change boolean",
    "stats tags text",
    *_DV,
    "base_row_id default_row_commit_version bigint",
    "clustering_provider extra text",
)
REMOVE_FILES: Final = _table(
    "dl_remove_files",
    "table_id version ordinal file_id bigint",
    "dv_id path text",
    "data_change boolean",
    "deletion_timestamp bigint",
    "extended_file_metadata boolean",
    "partition_values text",
    "size bigint",
    "stats tags text",
    *_DV,
    "base_row_id default_row_commit_version bigint",
    "extra text",
)
CDC_FILES: Final = _table(
    "dl_cdc_files",
    "table_id version ordinal bigint",
    "path partition_values text",
    "size bigint",
    "tags extra text",
)
METADATA_UPDATES: Final = _table(
    "dl_metadata_updates",
    "table_id version bigint",
    "id name description format_provider format_options text",
    "schema_string partition_columns configuration text",
    "created_time bigint",
    "extra stats_columns text",
)
PROTOCOL_UPDATES: Final = _table(
    "dl_protocol_updates",
    "table_id version bigint",
    "min_reader_version min_writer_version smallint",
    "reader_features writer_features extra text",
)
TXN_ACTIONS: Final = _table(
    "dl_txn_actions",
    "table_id version bigint",
    "app_id text",
    "app_version last_updated bigint",
    "extra text",
)
DOMAIN_METADATA: Final = _table(
    "dl_domain_metadata",
    "table_id version bigint",
    "domain configuration text",
    "removed boolean",
    "extra text",
)
OTHER_ACTIONS: Final = _table(
    "dl_other_actions", "table_id version ordinal bigint", "kind body text"
)
COLUMN_STATS: Final = _table(
    "dl_column_stats",
    "table_id column_id bigint",
    "span smallint",
    "lo hi file_id bigint",
    "nulls smallint",
    "min_string max_string text",
    key="table_id column_id span lo file_id",
)
MIRROR_STATUS: Final = _table(
    "dl_mirror_status",
    "table_id version bigint",
    "target status text",
    "attempts next_attempt_at bigint",
    "lease_owner text",
    "lease_until bigint",
    "last_error digest text",
    "updated_at bigint",
)
SCHEMA_MIGRATIONS: Final = _table(
    "dl_schema_migrations", "version bigint", "name text", "applied_at bigint"
)
COUNTERS: Final = _table("dl_counters", "name text", "value bigint")

ALL: Final = tuple(found for found in globals().values() if isinstance(found, Table))
