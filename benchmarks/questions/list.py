"""Open, and list all of 1,000,000 files as Arrow with typed statistics."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from benchmarks.measure import Side, measure
from benchmarks.ours import import_all
from benchmarks.report import Line

if TYPE_CHECKING:
    from benchmarks.lab import Lab

GOAL = 0.95
"""Not slower, but for noise."""


def ours(uri: str) -> Callable[[], int]:
    import deltalakedb as dl

    import_all(uri)
    return lambda: dl.DeltaTable(uri).get_add_actions().num_rows


def delta_rs(folder: str) -> Callable[[], int]:
    import deltalake

    return lambda: deltalake.DeltaTable(folder).get_add_actions().num_rows


def ask(lab: Lab) -> list[Line]:
    """Both give the same columns: path, size, times, partition values and statistics."""
    sizes = lab.sizes
    chunk = sizes.files_per_commit
    tables = {engine: lab.table_of_files(engine, sizes.files, chunk) for engine in lab.engines}
    log = lab.log_of_files(sizes.files, chunk)
    found = measure(
        {
            **{engine: Side(ours, {"uri": made.table_uri}) for engine, made in tables.items()},
            "delta-rs": Side(delta_rs, {"folder": log}),
        },
        sizes.rounds,
    )
    return [Line(engine, found[engine], found["delta-rs"], GOAL) for engine in lab.engines]
