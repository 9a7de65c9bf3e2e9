"""The package as a whole: what importing it costs, and what it claims."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path

import pytest

import deltalakedb
from deltalakedb.version import __version__

HEAVY = (
    "deltalake", "duckdb", "numpy", "obstore", "pandas", "polars", "psycopg", "pyarrow", "pyspark",
    "sqlglot",
)  # fmt: skip
"""What a user who only imports the package must not wait for."""


def _imported_by(statement: str) -> set[str]:
    """Top-level modules loaded by a statement in a fresh interpreter."""
    program = (
        f"import sys\n{statement}\nprint(*sorted({{m.partition('.')[0] for m in sys.modules}}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    return set(done.stdout.split())


@pytest.mark.parametrize("module", ["deltalakedb", "deltalakedb.uri", "deltalakedb.config"])
def test_importing_loads_nothing_heavy(module):
    assert _imported_by(f"import {module}").isdisjoint(HEAVY)


def test_the_version_is_the_one_installed():
    assert version("deltalakedb") == __version__


def test_it_is_typed():
    assert files("deltalakedb").joinpath("py.typed").is_file()


PUBLIC = """
    Catalog CommitRecord CommitResult Config DeltaTable DuckDbReader FileTxnLogReader PostgresReader
    Snapshot SqlTxnLogReader SqlTxnLogWriter SqliteReader Transaction TxnLogError TxnLogReader
    TxnLogWriter __version__ begin errors write_deltalake
"""


def test_the_public_names_are_these():
    assert deltalakedb.__all__ == PUBLIC.split()
    for name in deltalakedb.__all__:
        assert getattr(deltalakedb, name) is not None


def test_every_pin_is_a_version():
    """Constraints name versions, never hosts, paths or options."""
    for line in _text("constraints.txt").splitlines():
        assert re.match(r"[a-z0-9-]+==[0-9a-z.]+( ; .*)?$", line), line


def test_all_holds_every_extra():
    extras = tomllib.loads(_text("pyproject.toml"))["project"]["optional-dependencies"]
    (everything,) = extras["all"]
    named = set(everything.removeprefix("deltalakedb[").removesuffix("]").split(","))
    assert named == set(extras) - {"all", "dev"}


def _text(name: str) -> str:
    return (Path(__file__).parents[2] / name).read_text()
