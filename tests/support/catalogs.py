"""What a test holds a catalog against: its rows, and the files below its tables."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import deltalakedb as dl
from deltalakedb.sql import tables
from deltalakedb.sql.base import Table

DATABASE = tuple(
    table
    for table in vars(tables).values()
    if isinstance(table, Table) and table not in (tables.COUNTERS, tables.SCHEMA_MIGRATIONS)
)
"""Tables that hold something of a user's. A number that was drawn and not used is no trace."""


START = 1_767_225_600_000  # 2026-01-01


class Clock:
    """A clock that stands still until a test moves it."""

    ms = START

    def __call__(self) -> int:
        return self.ms

    def advance(self, ms: int) -> int:
        """Move on, and tell the new time."""
        self.ms += ms
        return self.ms


def database_rows(catalog: dl.Catalog) -> Mapping[str, list[tuple[Any, ...]]]:
    """Every row of every table of the catalog's schema."""
    with catalog.database.read() as session:
        return {
            table.name: sorted(session.rows(f"SELECT * FROM {table.name}"), key=repr)
            for table in DATABASE
        }


def files_below(folder: Path) -> set[str]:
    """Every file in the folder and below it, none if it is not there."""
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def wipe(catalog: dl.Catalog) -> None:
    """Make a catalog as good as new: no row, no file, the clock at its start."""
    with catalog.database.write() as session:
        for table in DATABASE:
            session.run(f"DELETE FROM {table.name}")
        session.run("UPDATE dl_counters SET value = 0")
    shutil.rmtree(str(catalog.config.warehouse), ignore_errors=True)
    assert isinstance(catalog.clock, Clock)
    catalog.clock.ms = START


@contextmanager
def nothing_changes(catalog: dl.Catalog, *folders: Path) -> Iterator[None]:
    """The block may fail or not: rows of the catalog and files of the folders stay as they are."""
    rows, files = database_rows(catalog), [files_below(folder) for folder in folders]
    yield
    after = database_rows(catalog)
    for name, before in rows.items():
        assert after[name] == before, f"{name} has changed"
    for folder, before in zip(folders, files, strict=True):
        assert files_below(folder) == before, f"files below {folder} have changed"


def put(catalog: dl.Catalog, table: str, data: Any, **options: Any) -> dl.DeltaTable:
    """Write rows in a transaction of their own; the table as it then is."""
    with catalog.begin() as tx:
        tx.write(table, data, **options)
    return catalog.table(table)


def rows(table: dl.DeltaTable, **options: Any) -> list[dict[str, Any]]:
    """The rows in an order that does not depend on files."""
    return sorted(table.to_arrow(**options).to_pylist(), key=repr)
