"""How much of everything a run takes."""

from __future__ import annotations

from dataclasses import dataclass

ENGINES = ("sqlite", "duckdb", "postgres")


@dataclass(frozen=True)
class Sizes:
    """The sizes the goals are set for; `QUICK` only shows that every question runs."""

    files: int = 1_000_000
    few_files: int = 10_000
    files_per_commit: int = 100_000
    big_commit: int = 10_000
    commits: int = 300
    warm_up: int = 20
    appends: int = 150
    append_rows: int = 100
    history: int = 50_000
    rows: int = 10_000_000
    rows_per_file: int = 250_000
    rounds: int = 6
    extras: bool = True
    """Cases beyond those without which a question would not be answered."""

    judged: bool = True


FULL = Sizes()
QUICK = Sizes(
    files=10_000,
    few_files=1_000,
    files_per_commit=5_000,
    big_commit=500,
    commits=20,
    warm_up=2,
    appends=5,
    history=200,
    rows=100_000,
    rows_per_file=10_000,
    rounds=1,
    extras=False,
    judged=False,
)
