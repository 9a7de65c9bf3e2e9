"""One table's log, read from the database.

Opening any version reads one row of each of five tables, however many files and versions there
are: totals stand in the version's own row, and it names the metadata and protocol in force.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from deltalakedb.errors import TableNotFound, VersionNotFound
from deltalakedb.log import rows
from deltalakedb.log.base import CommitRecord, Snapshot
from deltalakedb.log.files_schema import FILE_COLUMNS, files_schema
from deltalakedb.log.pruning import prune
from deltalakedb.log.tracking import decode_tracked
from deltalakedb.model.actions import Action, CommitInfo, DomainMetadata, UnknownAction
from deltalakedb.times import iso

if TYPE_CHECKING:
    import pyarrow as pa

    from deltalakedb.model.expr import Expr
    from deltalakedb.sql.base import Database, Session

_PREFIXED = {
    "m": ", ".join(f"m.{c.strip()}" for c in rows.METADATA.split(",")),
    "p": ", ".join(f"p.{c.strip()}" for c in rows.PROTOCOL.split(",")),
}
_SNAPSHOT = f"""
SELECT t.table_id, t.name, t.location, v.version, v.committed_at, v.num_files, v.size_bytes,
       v.num_records, v.num_uncounted, m.stats_columns, {_PREFIXED["m"]}, {_PREFIXED["p"]}
  FROM dl_tables t
  JOIN dl_table_heads h ON h.table_id = t.table_id
  JOIN dl_table_versions v ON v.table_id = t.table_id AND v.version = {{version}}
  JOIN dl_metadata_updates m ON m.table_id = t.table_id AND m.version = v.metadata_version
  JOIN dl_protocol_updates p ON p.table_id = t.table_id AND p.version = v.protocol_version
 WHERE t.name = ? AND t.dropped = 0"""
_LATEST = _SNAPSHOT.format(version="h.version")
_AT_VERSION = _SNAPSHOT.format(version="?")
_TABLE_ID = "(SELECT table_id FROM dl_tables WHERE name = ? AND dropped = 0)"
_LAST_UP_TO = f"""
SELECT version FROM dl_table_versions
 WHERE table_id = {_TABLE_ID} AND {{column}} <= ? ORDER BY {{column}} DESC LIMIT 1"""
"""Times and places in the order grow with the version, so the last one is one step in an index."""
_RANGE = """
SELECT t.table_id, min(v.version), max(v.version), min(v.committed_at), max(v.committed_at)
  FROM dl_tables t LEFT JOIN dl_table_versions v ON v.table_id = t.table_id
 WHERE t.name = ? AND t.dropped = 0 GROUP BY t.table_id"""
_LIVE = (
    " FROM dl_add_files f WHERE f.table_id = ? AND +f.version <= ?"
    " AND (f.removed_version IS NULL OR f.removed_version > ?)"
)
"""The plus keeps SQLite from taking the index on versions, which leads to nearly every file."""
HISTORY = """
SELECT t.name, v.version, v.committed_at, v.operation, v.parameters, v.commit_info,
       x.txn_id, x.committer, x.message, v.read_version, v.isolation_level, v.is_blind_append
  FROM dl_table_versions v
  JOIN dl_tables t ON t.table_id = v.table_id
  LEFT JOIN dl_transactions x ON x.seq = v.seq"""


def snapshot_from(row: Sequence[Any]) -> Snapshot:
    """Of a row of `_SNAPSHOT`."""
    counted = row[8] == 0
    return Snapshot(
        table_id=row[0],
        table=row[1],
        location=row[2],
        version=row[3],
        timestamp=row[4],
        num_files=row[5],
        size_bytes=row[6],
        num_records=row[7] if counted else None,
        tracked=decode_tracked(row[9]),
        metadata=rows.metadata_from(row[10:20]),
        protocol=rows.protocol_from(row[20:25]),
    )


def history_from(row: Sequence[Any]) -> CommitRecord:
    """Of a row of `HISTORY`."""
    return CommitRecord(
        table=row[0],
        version=row[1],
        timestamp=row[2],
        operation=row[3],
        parameters=rows.from_text(row[4]) or {},
        commit_info=rows.from_text(row[5]) or {},
        transaction_id=row[6],
        committer=row[7],
        message=row[8],
        read_version=row[9],
        isolation_level=row[10],
        is_blind_append=None if row[11] is None else bool(row[11]),
    )


class SqlTxnLogReader:
    """Reads one table's log from any of the three databases."""

    def __init__(self, database: Database, table: str) -> None:
        self.database = database
        self.table = table

    def snapshot(
        self, version: int | None = None, timestamp: int | None = None, *, seq: int | None = None
    ) -> Snapshot:
        """The latest version; a given one; or the last at or before a time (ms) or transaction."""
        with self.database.read() as session:
            return read_snapshot(session, self.table, version, timestamp, seq)

    def files(
        self,
        snapshot: Snapshot,
        where: Expr | None = None,
        columns: Sequence[str] = FILE_COLUMNS,
    ) -> pa.RecordBatchReader:
        """Live files as Arrow, pruned inside the database."""
        sql = "SELECT " + ", ".join(f"f.{c}" for c in ("file_id", *columns)) + _LIVE
        params: list[Any] = [snapshot.table_id, snapshot.version, snapshot.version]
        condition, values = (
            ("", []) if where is None else prune(where, snapshot, self.database.dialect)
        )
        schema = files_schema(columns)
        if not condition:
            return self.database.stream(sql, params, schema, key="file_id")
        sql += f" AND {condition} ORDER BY f.file_id"
        return self.database.stream(sql.replace("f.file_id, ", "", 1), params + values, schema)

    def actions(self, version: int) -> list[Action]:
        """Every action of one commit, in the order the mirror writes them."""
        with self.database.read() as session:
            snapshot = read_snapshot(session, self.table, version, None, None)
            return read_actions(session, snapshot.table_id, version)

    def history(self, limit: int | None = None) -> list[CommitRecord]:
        """Commits of the table, newest first."""
        sql = f"{HISTORY} WHERE v.table_id = {_TABLE_ID} ORDER BY v.version DESC"
        params: list[Any] = [self.table]
        if limit is not None:
            sql += " LIMIT ?"
            params.append(limit)
        with self.database.read() as session:
            found = session.rows(sql, params)
            if not found:
                require_table(session, self.table)
        return [history_from(row) for row in found]

    def version_range(self) -> tuple[int, int]:
        """Oldest and newest version."""
        with self.database.read() as session:
            row = require_table(session, self.table)
        return row[1], row[2]

    def txn_version(self, app_id: str, snapshot: Snapshot) -> int | None:
        """How far an application has come."""
        with self.database.read() as session:
            row = session.row(
                "SELECT app_version FROM dl_txn_actions WHERE table_id = ? AND app_id = ?"
                " AND version <= ? ORDER BY version DESC LIMIT 1",
                (snapshot.table_id, app_id, snapshot.version),
            )
        return row[0] if row else None

    def domains(self, snapshot: Snapshot) -> dict[str, DomainMetadata]:
        """Live metadata domains."""
        with self.database.read() as session:
            return read_domains(session, snapshot.table_id, snapshot.version)


class SqliteReader(SqlTxnLogReader):
    """`SqlTxnLogReader` on SQLite."""


class DuckDbReader(SqlTxnLogReader):
    """`SqlTxnLogReader` on DuckDB."""


class PostgresReader(SqlTxnLogReader):
    """`SqlTxnLogReader` on Postgres."""


READERS: dict[str, type[SqlTxnLogReader]] = {
    "sqlite": SqliteReader,
    "duckdb": DuckDbReader,
    "postgres": PostgresReader,
}


def read_snapshot(
    session: Session,
    table: str,
    version: int | None = None,
    timestamp: int | None = None,
    seq: int | None = None,
) -> Snapshot:
    """The snapshot, or an error that says what there is instead."""
    at = version
    if at is None and timestamp is not None:
        at = _last_up_to(session, table, "committed_at", timestamp)
    elif at is None and seq is not None:
        at = _last_up_to(session, table, "seq", seq)
    row = session.row(_LATEST, (table,)) if at is None else session.row(_AT_VERSION, (at, table))
    if row is not None:
        return snapshot_from(row)
    _, first, last, oldest, newest = require_table(session, table)
    asked = f"version {version}" if version is not None else "that moment"
    if timestamp is not None:
        asked = iso(timestamp)
    raise VersionNotFound(
        f"{table} has no {asked}: versions {first} to {last} exist,"
        f" committed {iso(oldest)} to {iso(newest)}",
        table=table,
        version=version,
        timestamp=timestamp,
        earliest=first,
        latest=last,
        earliest_timestamp=oldest,
        latest_timestamp=newest,
    )


def _last_up_to(session: Session, table: str, column: str, value: int) -> int:
    """The last version up to a time or a place in the order; -1 if there is none."""
    row = session.row(_LAST_UP_TO.format(column=column), (table, value))
    return row[0] if row else -1


def require_table(session: Session, table: str) -> tuple[Any, ...]:
    """The table's id and range of versions, or TableNotFound with the names there are."""
    row = session.row(_RANGE, (table,))
    if row is not None:
        return row
    names = [
        r[0] for r in session.rows("SELECT name FROM dl_tables WHERE dropped = 0 ORDER BY name")
    ]
    listed = ", ".join(names[:20]) or "none"
    raise TableNotFound(
        f"no table {table!r} in this catalog; tables: {listed}", table=table, available=names
    )


_BY_VERSION = {
    "protocol": (f"SELECT {rows.PROTOCOL} FROM dl_protocol_updates", rows.protocol_from, ""),
    "metadata": (f"SELECT {rows.METADATA} FROM dl_metadata_updates", rows.metadata_from, ""),
    "txn": (f"SELECT {rows.TXN} FROM dl_txn_actions", rows.txn_from, "app_id"),
    "domain": (f"SELECT {rows.DOMAIN} FROM dl_domain_metadata", rows.domain_from, "domain"),
    "remove": (f"SELECT {rows.REMOVE} FROM dl_remove_files", rows.remove_from, "ordinal"),
    "add": (f"SELECT {rows.ADD} FROM dl_add_files", rows.add_from, "file_id"),
    "cdc": (f"SELECT {rows.CDC} FROM dl_cdc_files", rows.cdc_from, "ordinal"),
    "other": (
        "SELECT kind, body FROM dl_other_actions",
        lambda r: UnknownAction(r[0], r[1]),
        "ordinal",
    ),
}


def read_kind(session: Session, kind: str, table_id: int, version: int) -> list[Any]:
    """Actions of one kind in one commit."""
    sql, build, order = _BY_VERSION[kind]
    sql += " WHERE table_id = ? AND version = ?" + (f" ORDER BY {order}" if order else "")
    return [build(row) for row in session.rows(sql, (table_id, version))]


def read_since(session: Session, kind: str, table_id: int, after: int) -> dict[int, list[Any]]:
    """Actions of one kind after a version, by version."""
    sql, build, _ = _BY_VERSION[kind]
    sql = sql.replace("SELECT ", "SELECT version, ", 1) + " WHERE table_id = ? AND version > ?"
    found: dict[int, list[Any]] = {}
    for version, *row in session.rows(sql, (table_id, after)):
        found.setdefault(version, []).append(build(row))
    return found


def read_actions(session: Session, table_id: int, version: int) -> list[Action]:
    """Every action of one commit: commitInfo first, then as `_BY_VERSION` is ordered."""
    row = session.row(
        "SELECT commit_info FROM dl_table_versions WHERE table_id = ? AND version = ?",
        (table_id, version),
    )
    actions: list[Action] = [CommitInfo(row[0])] if row and row[0] is not None else []
    for kind in _BY_VERSION:
        actions += read_kind(session, kind, table_id, version)
    return actions


def read_domains(session: Session, table_id: int, version: int) -> dict[str, DomainMetadata]:
    """Domains in force at a version."""
    found: dict[str, DomainMetadata] = {}
    sql = (
        f"SELECT {rows.DOMAIN} FROM dl_domain_metadata WHERE table_id = ? AND version <= ?"
        " ORDER BY version"
    )
    for row in session.rows(sql, (table_id, version)):
        domain = rows.domain_from(row)
        found[domain.domain] = domain
    return {name: d for name, d in found.items() if not d.removed}
