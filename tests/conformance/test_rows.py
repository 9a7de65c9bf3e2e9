"""Counts and pruning against the rows themselves, where the tables come with them."""

from __future__ import annotations

import json
import math
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from conformance.tables import OPENED, TABLES
from deltalakedb.log.base import Snapshot
from deltalakedb.log.files import FileTxnLogReader
from deltalakedb.model.expr import parse
from deltalakedb.model.paths import decode
from deltalakedb.model.schema import PrimitiveType, mapping_mode

pytestmark = pytest.mark.conformance


def _expected() -> list[tuple[str, int | None, Path]]:
    """(table, version or None for the newest, folder of Parquet files)."""
    found: list[tuple[str, int | None, Path]] = []
    for name in OPENED:
        folder = TABLES[name].parent / "expected"
        if (folder / "latest").is_dir():
            for version in folder.iterdir():
                facts = json.loads((version / "table_version_metadata.json").read_text())
                found.append((name, facts["version"], version / "table_content"))
        elif folder.is_dir():
            found.append((name, None, folder))
    return found


@pytest.mark.parametrize(("name", "version", "folder"), _expected())
def test_as_many_rows_as_expected(name, version, folder):
    snapshot = FileTxnLogReader(str(TABLES[name])).snapshot(version)
    rows = sum(pq.read_metadata(f).num_rows for f in folder.rglob("*.parquet"))
    if snapshot.num_records is not None:
        assert snapshot.num_records == rows


@pytest.mark.parametrize("name", OPENED)
def test_a_file_is_kept_for_the_values_in_it(name):
    reader = FileTxnLogReader(str(TABLES[name]))
    snapshot = reader.snapshot()
    for file in _some_files(reader, snapshot):
        for column, value in _values(TABLES[name] / decode(file), snapshot):
            where = parse(f"`{column}` is null" if value is None else [(column, "=", value)])
            kept = reader.files(snapshot, where, columns=["path"]).read_all()
            assert file in kept["path"].to_pylist(), (column, value)


def _some_files(reader: FileTxnLogReader, snapshot: Snapshot) -> list[str]:
    return reader.files(snapshot, columns=["path"]).read_all()["path"].to_pylist()[:8]


def _values(path: Path, snapshot: Snapshot) -> list[tuple[str, Any]]:
    """Values of the first and last row of a data file, for columns whose type it has."""
    if not path.is_file():
        return []
    file = pq.ParquetFile(path, coerce_int96_timestamp_unit="us")
    mode = mapping_mode(snapshot.metadata.configuration)
    found = []
    for field in snapshot.schema.fields:
        physical = field.physical_name(mode)
        if not isinstance(field.type, PrimitiveType) or field.type.name == "variant":
            continue
        if physical not in file.schema_arrow.names:
            continue
        values = file.read([physical]).column(0)
        if field.type.name == "timestamp" and values.type.tz is None:
            values = values.cast(pa.timestamp("us", "UTC"))
        try:
            found += [(field.name, v.as_py()) for v in (values[0], values[-1])] if values else []
        except (ValueError, OverflowError):
            continue  # a moment that Python cannot hold
    return [(name, value) for name, value in found if not _is_beside_statistics(value)]


def _is_beside_statistics(value: Any) -> bool:
    """NaN is in no statistics, and Spark 2 counted early days by another calendar than they do."""
    if isinstance(value, date):
        return value.year < 1583
    return isinstance(value, float) and math.isnan(value)
