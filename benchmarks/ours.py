"""What the questions share on our side."""

from __future__ import annotations

from importlib import import_module

_DRIVERS = {
    "sqlite": ("sqlite3",),
    "duckdb": ("duckdb",),
    "postgres": ("psycopg", "psycopg_pool", "psycopg_binary"),
}
_OWN = ("table.open", "table.listing", "table.read", "table.write", "model.expr_sql")


def import_all(uri: str) -> None:
    """Import what a table of this URI needs: imports are no part of any time."""
    from deltalakedb.uri import parse

    engine = parse(uri).engine
    for name in _DRIVERS[engine]:
        import_module(name)
    for name in (*_OWN, f"sql.{engine}"):
        import_module(f"deltalakedb.{name}")
