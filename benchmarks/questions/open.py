"""Opening a table of 1,000,000 files in a new process, and one of 10,000."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from benchmarks.measure import Side, measure
from benchmarks.ours import import_all
from benchmarks.report import Line

if TYPE_CHECKING:
    from benchmarks.lab import Lab

GOAL = 200
SAME = 0.8
"""As fast as with fewer files, but for noise."""


def ours(uri: str) -> Callable[[], int]:
    import deltalakedb as dl

    import_all(uri)
    return lambda: dl.DeltaTable(uri).version()


def delta_rs(folder: str) -> Callable[[], int]:
    import deltalake

    return lambda: deltalake.DeltaTable(folder).version()


def ask(lab: Lab) -> list[Line]:
    """Both include connecting; neither includes imports."""
    sizes = lab.sizes
    log = lab.log_of_files(sizes.files, sizes.files_per_commit)
    found = measure(
        {**_sides(lab, sizes.files), "delta-rs": Side(delta_rs, {"folder": log})}, sizes.rounds
    )
    few = measure(_sides(lab, sizes.few_files), sizes.rounds)
    note = f"the peer is our own open of {sizes.few_files:,} files"
    return [
        *(Line(engine, found[engine], found["delta-rs"], GOAL) for engine in lab.engines),
        *(Line(engine, found[engine], few[engine], SAME, note) for engine in lab.engines),
    ]


def _sides(lab: Lab, count: int) -> dict[str, Side]:
    chunk = lab.sizes.files_per_commit
    return {
        engine: Side(ours, {"uri": lab.table_of_files(engine, count, chunk).table_uri})
        for engine in lab.engines
    }
