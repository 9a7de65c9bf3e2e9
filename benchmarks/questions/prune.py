"""Open, and find the files for a selective predicate among 1,000,000."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any

from benchmarks import synthetic
from benchmarks.measure import Side, measure
from benchmarks.ours import import_all
from benchmarks.report import Line

if TYPE_CHECKING:
    from benchmarks.lab import Lab

GOAL = 50


def ours(uri: str, predicate: str) -> Callable[[], int]:
    import deltalakedb as dl

    import_all(uri)
    return lambda: len(dl.DeltaTable(uri).file_uris(predicate))


def delta_rs(folder: str, test: list[tuple[str, str, Any]]) -> Callable[[], int]:
    """Its fastest way: list all files with their statistics, and filter that by hand in Arrow.

    `file_uris(file_pruning_predicate=...)` takes a third longer, fragments of a dataset twice as
    long and more.
    """
    import deltalake
    import pyarrow as pa
    from pyarrow.parquet import filters_to_expression

    typed = [
        (name, op, date.fromisoformat(value) if name == "partition.day" else value)
        for name, op, value in test
    ]
    condition = filters_to_expression(typed)

    def act() -> int:
        files = pa.table(deltalake.DeltaTable(folder).get_add_actions(flatten=True))
        return len(files.filter(condition)["path"].to_pylist())

    return act


@dataclass(frozen=True)
class Case:
    """A predicate, and the same as a test of a file's partition values and statistics."""

    predicate: str
    test: list[tuple[str, str, Any]]


def cases(files: int) -> dict[str, Case]:
    """By what they are about; each matches few files."""
    middle = files // 2 + 7
    low = middle * synthetic.ROWS + 300
    high = low + 2_200
    day, customer = synthetic.day(middle, files), synthetic.customer(middle)
    session = f"{synthetic.session(middle)}-a000-0000"

    def equals(column: str, value: str) -> Case:
        test = [(f"min.{column}", "<=", value), (f"max.{column}", ">=", value)]
        return Case(f"{column} = '{value}'", test)

    return {
        "partition": Case(f"day = '{day}'", [("partition.day", "=", day)]),
        "clustered": Case(
            f"id >= {low} AND id < {high}", [("max.id", ">=", low), ("min.id", "<", high)]
        ),
        "text": equals("session", session),
        "text, one prefix": equals("customer", customer),
    }


def ask(lab: Lab) -> list[Line]:
    """Every side must find the same number of files."""
    sizes, lines = lab.sizes, []
    chunk = sizes.files_per_commit
    tables = {engine: lab.table_of_files(engine, sizes.files, chunk) for engine in lab.engines}
    log = lab.log_of_files(sizes.files, chunk)
    asked = list(cases(sizes.files).items())
    for what, case in asked if sizes.extras else asked[:2]:
        found = measure(
            {
                **{
                    engine: Side(ours, {"uri": made.table_uri, "predicate": case.predicate})
                    for engine, made in tables.items()
                },
                "delta-rs": Side(delta_rs, {"folder": log, "test": case.test}),
            },
            sizes.rounds,
        )
        for engine in lab.engines:
            note = f"{found[engine].answer:,} files"
            lines.append(
                Line(f"{what}, {engine}", found[engine], found["delta-rs"], GOAL, note=note)
            )
    return lines
