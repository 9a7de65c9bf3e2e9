"""Tables, transactions, versions, and a table for each kind of action.

There are no foreign keys: every row is written under the lock of its table's head, and a check for
each would cost every commit. Times are milliseconds since the epoch; JSON is text, verbatim.
"""

from __future__ import annotations

from typing import Final

from deltalakedb.sql.ddl import CreateIndex, CreateSequence, CreateTable, Execute, Migration

_DV: Final = """
    dv_storage_type TEXT,
    dv_path TEXT,
    dv_offset BIGINT,
    dv_size BIGINT,
    dv_cardinality BIGINT CHECK (dv_cardinality >= 0)"""

MIGRATION: Final = Migration(
    1,
    "log",
    (
        CreateTable(
            "dl_schema_migrations",
            """
            version BIGINT NOT NULL,
            name TEXT NOT NULL,
            applied_at BIGINT NOT NULL""",
            key="version",
        ),
        CreateTable("dl_counters", "name TEXT NOT NULL, value BIGINT NOT NULL", key="name"),
        Execute("INSERT INTO dl_counters (name, value) VALUES ('table_id', 0)"),
        CreateSequence("dl_commit_order"),
        CreateTable(
            "dl_tables",
            """
            table_id BIGINT NOT NULL,
            name TEXT NOT NULL CHECK (name <> ''),
            location TEXT NOT NULL CHECK (location <> ''),
            created_at BIGINT NOT NULL,
            status TEXT NOT NULL
                CHECK (status IN ('active', 'importing', 'diverged', 'dropped')),
            properties TEXT NOT NULL,
            dropped BIGINT NOT NULL""",  # 0 while it is there, else its own id: names come free
            key="table_id",
            unique=("name, dropped", "location, dropped"),
        ),
        CreateTable(
            "dl_table_heads",
            """
            table_id BIGINT NOT NULL,
            version BIGINT NOT NULL CHECK (version >= -1),
            next_file_id BIGINT NOT NULL CHECK (next_file_id >= 0)""",
            key="table_id",
        ),
        CreateTable(
            "dl_transactions",
            """
            seq BIGINT NOT NULL,
            txn_id TEXT NOT NULL,
            committed_at BIGINT NOT NULL,
            committer TEXT,
            message TEXT,
            run_id TEXT,
            result TEXT NOT NULL""",
            key="seq",
            unique=("txn_id",),
        ),
        CreateTable(
            "dl_table_versions",
            """
            table_id BIGINT NOT NULL,
            version BIGINT NOT NULL CHECK (version >= 0),
            seq BIGINT NOT NULL,
            committed_at BIGINT NOT NULL,
            operation TEXT NOT NULL,
            parameters TEXT NOT NULL,
            commit_info TEXT,
            read_version BIGINT,
            isolation_level TEXT,
            is_blind_append BOOLEAN,
            num_added BIGINT NOT NULL CHECK (num_added >= 0),
            num_removed BIGINT NOT NULL CHECK (num_removed >= 0),
            bytes_added BIGINT NOT NULL CHECK (bytes_added >= 0),
            bytes_removed BIGINT NOT NULL CHECK (bytes_removed >= 0),
            num_files BIGINT NOT NULL CHECK (num_files >= 0),
            size_bytes BIGINT NOT NULL CHECK (size_bytes >= 0),
            num_records BIGINT NOT NULL,
            num_uncounted BIGINT NOT NULL CHECK (num_uncounted >= 0),
            metadata_version BIGINT NOT NULL CHECK (metadata_version >= 0),
            protocol_version BIGINT NOT NULL CHECK (protocol_version >= 0)""",
            key="table_id, version",
        ),
        CreateIndex("dl_table_versions_time", "dl_table_versions", "table_id, committed_at"),
        CreateIndex("dl_table_versions_seq", "dl_table_versions", "table_id, seq"),
        CreateIndex("dl_table_versions_order", "dl_table_versions", "seq"),
        CreateTable(
            "dl_add_files",
            f"""
            table_id BIGINT NOT NULL,
            file_id BIGINT NOT NULL CHECK (file_id >= 0),
            version BIGINT NOT NULL CHECK (version >= 0),
            removed_version BIGINT CHECK (removed_version > version),
            dv_id TEXT NOT NULL,
            num_records BIGINT CHECK (num_records >= 0),
            path TEXT NOT NULL CHECK (path <> ''),
            partition_values TEXT NOT NULL,
            size BIGINT NOT NULL CHECK (size >= 0),
            modification_time BIGINT NOT NULL,
            data_change BOOLEAN NOT NULL,
            stats TEXT,
            tags TEXT,{_DV},
            base_row_id BIGINT,
            default_row_commit_version BIGINT,
            clustering_provider TEXT,
            extra TEXT""",
            key="table_id, file_id",
            clustered=False,
            per_file=True,
        ),
        CreateIndex(
            "dl_add_files_live",
            "dl_add_files",
            "table_id, path, dv_id",
            unique=True,
            where="removed_version IS NULL",
        ),
        CreateIndex("dl_add_files_version", "dl_add_files", "table_id, version, file_id"),
        CreateIndex(
            "dl_add_files_removed",
            "dl_add_files",
            "table_id, removed_version",
            where="removed_version IS NOT NULL",
        ),
        CreateTable(
            "dl_remove_files",
            f"""
            table_id BIGINT NOT NULL,
            version BIGINT NOT NULL CHECK (version >= 0),
            ordinal BIGINT NOT NULL CHECK (ordinal >= 0),
            file_id BIGINT NOT NULL,
            dv_id TEXT NOT NULL,
            path TEXT NOT NULL CHECK (path <> ''),
            data_change BOOLEAN NOT NULL,
            deletion_timestamp BIGINT,
            extended_file_metadata BOOLEAN,
            partition_values TEXT,
            size BIGINT CHECK (size >= 0),
            stats TEXT,
            tags TEXT,{_DV},
            base_row_id BIGINT,
            default_row_commit_version BIGINT,
            extra TEXT""",
            key="table_id, version, ordinal",
            clustered=False,
            per_file=True,
        ),
        CreateTable(
            "dl_cdc_files",
            """
            table_id BIGINT NOT NULL,
            version BIGINT NOT NULL CHECK (version >= 0),
            ordinal BIGINT NOT NULL CHECK (ordinal >= 0),
            path TEXT NOT NULL CHECK (path <> ''),
            partition_values TEXT NOT NULL,
            size BIGINT NOT NULL CHECK (size >= 0),
            tags TEXT,
            extra TEXT""",
            key="table_id, version, ordinal",
            per_file=True,
        ),
        CreateTable(
            "dl_metadata_updates",
            """
            table_id BIGINT NOT NULL,
            version BIGINT NOT NULL CHECK (version >= 0),
            id TEXT NOT NULL,
            name TEXT,
            description TEXT,
            format_provider TEXT NOT NULL,
            format_options TEXT NOT NULL,
            schema_string TEXT NOT NULL,
            partition_columns TEXT NOT NULL,
            configuration TEXT NOT NULL,
            created_time BIGINT,
            extra TEXT""",
            key="table_id, version",
        ),
        CreateTable(
            "dl_protocol_updates",
            """
            table_id BIGINT NOT NULL,
            version BIGINT NOT NULL CHECK (version >= 0),
            min_reader_version SMALLINT NOT NULL CHECK (min_reader_version >= 1),
            min_writer_version SMALLINT NOT NULL CHECK (min_writer_version >= 1),
            reader_features TEXT,
            writer_features TEXT,
            extra TEXT""",
            key="table_id, version",
        ),
        CreateTable(
            "dl_txn_actions",
            """
            table_id BIGINT NOT NULL,
            version BIGINT NOT NULL CHECK (version >= 0),
            app_id TEXT NOT NULL,
            app_version BIGINT NOT NULL,
            last_updated BIGINT,
            extra TEXT""",
            key="table_id, app_id, version",
            clustered=False,  # or SQLite would read the whole table in the order of the key
        ),
        CreateIndex("dl_txn_actions_version", "dl_txn_actions", "table_id, version, app_id"),
        CreateTable(
            "dl_domain_metadata",
            """
            table_id BIGINT NOT NULL,
            version BIGINT NOT NULL CHECK (version >= 0),
            domain TEXT NOT NULL,
            configuration TEXT NOT NULL,
            removed BOOLEAN NOT NULL,
            extra TEXT""",
            key="table_id, domain, version",
            clustered=False,
        ),
        CreateIndex(
            "dl_domain_metadata_version", "dl_domain_metadata", "table_id, version, domain"
        ),
        CreateTable(
            "dl_other_actions",
            """
            table_id BIGINT NOT NULL,
            version BIGINT NOT NULL CHECK (version >= 0),
            ordinal BIGINT NOT NULL CHECK (ordinal >= 0),
            kind TEXT NOT NULL,
            body TEXT NOT NULL""",
            key="table_id, version, ordinal",
        ),
    ),
)
