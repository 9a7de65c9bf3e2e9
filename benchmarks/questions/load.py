"""Committing 1,000,000 files, 100,000 at a time (time for one file; no peer)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.measure import Measured
from benchmarks.report import Line

if TYPE_CHECKING:
    from benchmarks.lab import Lab


def ask(lab: Lab) -> list[Line]:
    """It has to be done once anyway, for the questions that follow."""
    sizes, lines = lab.sizes, []
    for engine in lab.engines:
        made = lab.table_of_files(engine, sizes.files, sizes.files_per_commit)
        each = made.seconds / sizes.files
        note = f"{1 / each:,.0f} files/s, {made.seconds:.1f} s in all"
        lines.append(Line(engine, Measured(engine, [each], made.memory), note=note))
    return lines
