"""What an engine cannot do, declared once.

A test that needs such a thing says so with ``@pytest.mark.needs("...")``. On an engine with the
gap it must fail, with exactly this error: a gap that closes, or changes its face, is noticed.
"""

from __future__ import annotations

from deltalakedb.errors import CatalogLocked, TxnLogError

SEVERAL_PROCESSES = "several processes"
"""More than one process has the catalog open, and one of them writes."""

GAPS: dict[str, dict[str, type[TxnLogError]]] = {
    "sqlite": {},
    "duckdb": {SEVERAL_PROCESSES: CatalogLocked},
    "postgres": {},
}
