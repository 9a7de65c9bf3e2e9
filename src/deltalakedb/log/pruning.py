"""Data skipping as SQL: which files may match, answered by an index of the database.

Each probe is a set of file ids from `dl_column_stats`. Files older than a column's tracking have
no row there and are kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deltalakedb.log.tracking import family
from deltalakedb.model.keys import MAX, MIN, probe_ranges
from deltalakedb.model.schema import mapping_mode
from deltalakedb.model.skipping import All, Always, Never, Probe, Skip, skipping
from deltalakedb.model.skipping import Any as Either

if TYPE_CHECKING:
    from deltalakedb.log.base import Snapshot
    from deltalakedb.log.tracking import TrackedColumn
    from deltalakedb.model.expr import Expr
    from deltalakedb.sql.base import Dialect

Condition = tuple[str, list[Any]]
"""SQL over `dl_add_files f`, and its parameters. Empty SQL keeps every file."""

_KEEP: Condition = ("", [])
_ROWS = "SELECT s.file_id FROM dl_column_stats s WHERE s.table_id = ? AND s.column_id = ?"


def prune(where: Expr, snapshot: Snapshot, dialect: Dialect) -> Condition:
    """The condition that a file of the snapshot may hold a matching row."""
    return _Renderer(snapshot, dialect).render(skipping(where, snapshot.schema))


class _Renderer:
    def __init__(self, snapshot: Snapshot, dialect: Dialect) -> None:
        self._snapshot = snapshot
        self._dialect = dialect
        self._mode = mapping_mode(snapshot.metadata.configuration)
        self._tracked = {column.path: column for column in snapshot.tracked}

    def render(self, skip: Skip) -> Condition:
        match skip:
            case Probe():
                return self._probe(skip)
            case All(terms):
                kept = [c for c in map(self.render, terms) if c[0]]
                return _joined(kept, " AND ") if kept else _KEEP
            case Either(terms):
                parts = [self.render(term) for term in terms]
                return _joined(parts, " OR ") if all(sql for sql, _ in parts) else _KEEP
            case Never():
                return "1 = 0", []
            case Always():
                return _KEEP

    def _probe(self, probe: Probe) -> Condition:
        column = self._column(probe)
        if column is None:
            return _KEEP
        sql, params = self._files(probe, column)
        if column.since > 0:
            return f"(f.version < ? OR {sql})", [column.since, *params]
        return sql, params

    def _column(self, probe: Probe) -> TrackedColumn | None:
        fields = self._snapshot.schema.at(probe.column)
        if fields is None:
            return None
        found = self._tracked.get(tuple(f.physical_name(self._mode) for f in fields))
        # A transaction may have changed the type already, and not the rows that are there.
        return found if found and found.family == family(fields[-1].type) else None

    def _files(self, probe: Probe, column: TrackedColumn) -> Condition:
        key = [self._snapshot.table_id, column.id]
        if probe.want == "null":
            return f"f.file_id IN ({_ROWS} AND s.nulls <> 0)", key
        if probe.want == "not_null":
            return f"f.file_id IN ({_ROWS} AND s.nulls <> 2)", key
        texts, bounds = self._texts(probe)
        params = [*key, probe.hi, probe.lo, *bounds]
        if not self._dialect.indexes or (probe.lo, probe.hi) == (MIN, MAX):
            overlap = f"s.span >= 0 AND s.lo <= ? AND s.hi >= ?{texts}"
            return f"f.file_id IN ({_ROWS} AND {overlap})", params
        classes = ", ".join(f"({s}, {low})" for s, low, _ in probe_ranges(probe.lo, probe.hi))
        seek = (
            "s.table_id = ? AND s.column_id = ? AND s.span = r.span"
            f" AND s.lo >= r.low AND s.lo <= ? AND s.hi >= ?{texts}"
        )
        found = (
            f"WITH r (span, low) AS (VALUES {classes}) SELECT s.file_id FROM r "
            + self._dialect.each.format("dl_column_stats", seek)
        )
        return self._dialect.among.format("f.file_id", found), params

    def _texts(self, probe: Probe) -> Condition:
        """The exact test of strings, whose keys are only their first bytes."""
        sql, params, collate = "", [], self._dialect.binary_text
        if probe.hi_string is not None:
            op = "<" if probe.hi_open else "<="
            sql += f" AND (s.min_string IS NULL OR s.min_string{collate} {op} ?)"
            params.append(probe.hi_string)
        if probe.lo_string is not None:
            op = ">" if probe.lo_open else ">="
            sql += f" AND (s.max_string IS NULL OR s.max_string{collate} {op} ?)"
            params.append(probe.lo_string)
        return sql, params


def _joined(parts: list[Condition], operator: str) -> Condition:
    sql = operator.join(sql for sql, _ in parts)
    params = [value for _, values in parts for value in values]
    return (f"({sql})", params) if len(parts) > 1 else (sql, params)
