"""Open the middle of 50,000 commits in a new process."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from benchmarks.measure import Side, measure
from benchmarks.ours import import_all
from benchmarks.report import Line

if TYPE_CHECKING:
    from benchmarks.lab import Lab

_INTERVAL = 100
"""Commits between two checkpoints of delta-rs, by default."""


def ours(uri: str, version: int) -> Callable[[], object]:
    import deltalakedb as dl

    import_all(uri)

    def act() -> object:
        table = dl.DeltaTable(uri, version)
        return lambda: [table.version(), len(table.files())]

    return act


def delta_rs(folder: str, version: int) -> Callable[[], object]:
    """Faster than opening the latest version first and `load_as_version` after it."""
    import deltalake

    def act() -> object:
        table = deltalake.DeltaTable(folder, version=version)
        return lambda: [table.version(), len(table.file_uris())]

    return act


def ask(lab: Lab) -> list[Line]:
    """The version lies as far from a checkpoint as versions do on average.

    The commits are made in SQLite, and its rows copied to the other engines. Of the peer's
    checkpoints only those that it reads are made: the last, and the one before the version.
    """
    sizes = lab.sizes
    made = lab.table_of_files("sqlite", sizes.history, 1)
    tables = {engine: lab.copy_of_files(engine, sizes.history, 1) for engine in lab.engines}
    middle = sizes.history // 2 // _INTERVAL * _INTERVAL
    last = sizes.history // _INTERVAL * _INTERVAL
    log = lab.log_of_files(sizes.history, 1, [middle, last])
    version = middle + _INTERVAL // 2
    found = measure(
        {
            **{
                engine: Side(ours, {"uri": table.table_uri, "version": version})
                for engine, table in tables.items()
            },
            "delta-rs": Side(delta_rs, {"folder": log, "version": version}),
        },
        sizes.rounds,
    )
    note = f"they were made in SQLite, {sizes.history / made.seconds:,.0f} commits/s"
    return [Line(engine, found[engine], found["delta-rs"], note=note) for engine in lab.engines]
