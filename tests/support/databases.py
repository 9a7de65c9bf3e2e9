"""Rows for the catalog's own tables, and processes to work on them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from deltalakedb.sql import Database, Row, connect
from deltalakedb.sql import tables as t
from deltalakedb.uri import DeltaSqlUri

NASTY = (
    "",
    " ",
    "plain",
    "NULL",
    "null",
    "\\N",
    "\\.",
    "a\n\\.\nb",
    "'single'",
    '"double"',
    '"',
    "back\\slash",
    "tab\tnewline\r\n",
    "comma,semi;colon",
    "%s %% ? :x $1 {}",
    "ümläut ✓ 漢字 🦆",
    "\x1e",
    "\x1f",
    "a\x1fb\x1ec",
    "x" * 5000,
)
BIG, SMALL = 2**63 - 1, -(2**63)


def file_row(n: int, **given: Any) -> Row:
    values = {
        "table_id": 1,
        "file_id": n,
        "version": n // 10,
        "dv_id": "",
        "path": f"part-{n:06}.parquet",
        "partition_values": "{}",
        "size": n,
        "modification_time": 1_700_000_000_000 + n,
        "data_change": True,
        **given,
    }
    return tuple(values.get(column.name) for column in t.ADD_FILES.columns)


def nasty_rows(count: int) -> list[Row]:
    """Rows with every kind of text, with and without nulls, and the ends of the integers."""
    return [
        file_row(
            n,
            dv_id=f"{n}{NASTY[n % len(NASTY)]}",
            partition_values=NASTY[(n + 1) % len(NASTY)],
            stats=None if n % 3 == 0 else NASTY[(n + 2) % len(NASTY)],
            tags=None if n % 7 else NASTY[(n + 3) % len(NASTY)],
            size=(0, 1, BIG)[n % 3],
            modification_time=(SMALL, -1, BIG)[n % 3],
            data_change=n % 2 == 0,
            num_records=None if n < 1000 else n,
        )
        for n in range(count)
    ]


SCHEMA = pa.schema(
    [
        pa.field("path", pa.string(), nullable=False),
        ("stats", pa.string()),
        ("size", pa.int64()),
        ("modification_time", pa.int64()),
        ("data_change", pa.bool_()),
        ("tags", pa.string()),
        ("num_records", pa.int64()),
        ("clustering_provider", pa.string()),
        ("dv_id", pa.string()),
        ("partition_values", pa.string()),
    ]
)
COLUMNS = ", ".join(SCHEMA.names)


def fill(database: Database, rows: list[Row]) -> None:
    with database.write() as session:
        session.insert(t.ADD_FILES, rows)


def count(database: Database, table: str = "dl_add_files") -> int:
    with database.read() as session:
        (found,) = session.row(f"SELECT count(*) FROM {table}") or (None,)
    return found


def wait_for(condition: Callable[[], bool], secs: float = 10) -> None:
    """Wait until it holds, but not for ever."""
    end = time.monotonic() + secs
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)


def python(code: str, *args: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Run code in a new process."""
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, *args],
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, **env},
    )


AS_NOBODY = """
import os, sys
from deltalakedb.errors import CatalogError
from deltalakedb.sql import connect, tables as t
from deltalakedb.uri import DeltaSqlUri, parse
uri = parse(sys.argv[1])
connect(DeltaSqlUri(engine=uri.engine, path=":memory:")).close()  # everything is imported now
if os.geteuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
try:
    database = connect(uri)
    with database.read() as session:
        assert session.row("SELECT count(*) FROM dl_table_heads") == (0,)
    print("read")
    with database.write() as session:
        session.insert(t.TABLE_HEADS, [(1, 0, 0)])
    print("written")
except CatalogError as e:
    print(type(e).__name__)
"""
"""Open the catalog, read and write it, as a user without rights; print how far that goes."""


@contextmanager
def read_only_catalog(engine: str, *, keep_open: bool) -> Iterator[DeltaSqlUri]:
    """A catalog that others may read but not write, open in this process or not."""
    folder = Path(tempfile.mkdtemp(prefix="dl-"))  # pytest's own is closed to others
    uri = DeltaSqlUri(engine=engine, path=str(folder / "catalog"))
    database = connect(uri)
    if not keep_open:
        database.close()
    for path in folder.iterdir():
        path.chmod(0o444)
    folder.chmod(0o555)
    try:
        yield uri
    finally:
        folder.chmod(0o755)
        database.close()
        shutil.rmtree(folder)
