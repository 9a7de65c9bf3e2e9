"""DuckLake, on the same kinds of catalogs as ours."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb

_SCANNERS = {"sqlite": "sqlite_scanner", "postgres": "postgres_scanner"}


def missing(engine: str) -> str | None:
    """The package without which DuckLake cannot have its catalog there."""
    scanner = _SCANNERS.get(engine)
    if scanner is None or find_spec(f"duckdb_extension_{scanner}"):
        return None
    return f"duckdb-extension-{scanner.replace('_', '-')}"


def note(package: str | None) -> str:
    """What the report says when the peer's catalog is of another kind."""
    return f"on another kind of catalog: {package} is not installed" if package else ""


def load_extension(connection: duckdb.DuckDBPyConnection, name: str) -> None:
    """Load it from its wheel, leaving nothing in the home folder."""
    package = Path(str(import_module(f"duckdb_extension_{name}").__file__)).parent
    (file,) = package.glob(f"extensions/*/{name}.duckdb_extension")
    connection.execute(f"LOAD '{file}'")


def connect(engine: str, target: str, schema: str, data: str, inline_rows: int):
    """A connection with the lake attached as `lake`."""
    import duckdb

    connection = duckdb.connect()
    load_extension(connection, "ducklake")
    if engine in _SCANNERS:
        load_extension(connection, _SCANNERS[engine])
    place = f", METADATA_SCHEMA '{schema}'" if schema else ""
    connection.execute(
        f"ATTACH 'ducklake:{target}' AS lake"
        f" (DATA_PATH '{data}', DATA_INLINING_ROW_LIMIT {inline_rows}{place})"
    )
    return connection
