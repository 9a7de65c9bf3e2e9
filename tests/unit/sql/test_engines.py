"""Drivers load late, and the error for a missing one says what to install."""

from __future__ import annotations

import pytest

from support.databases import python


@pytest.mark.parametrize(
    ("driver", "uri", "extra"),
    [
        ("psycopg", "deltasql://postgres/d/s", "deltalakedb[postgres]"),
        ("duckdb", "deltasql://duckdb/:memory:", "deltalakedb[duckdb]"),
    ],
)
def test_a_missing_driver_is_named(driver: str, uri: str, extra: str) -> None:
    code = """
import sys
sys.modules[sys.argv[1]] = None
from deltalakedb.errors import ConfigError
from deltalakedb.sql import connect
from deltalakedb.uri import parse
try:
    connect(parse(sys.argv[2]))
except ConfigError as e:
    print(e)
"""
    done = python(code, driver, uri)
    assert f"pip install '{extra}'" in done.stdout, done.stderr


def test_a_sqlite_catalog_loads_no_other_driver() -> None:
    code = """
import sys
from deltalakedb.sql import connect
from deltalakedb.uri import parse
connect(parse("deltasql://sqlite/:memory:"))
print(*[name for name in ("duckdb", "psycopg", "pyarrow") if name in sys.modules])
"""
    done = python(code)
    assert done.stdout.strip() == "", done.stdout + done.stderr
