"""Lines of the report, for people and as JSON."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.measure import Measured

RESULTS = Path(__file__).parent / "results"
_PACKAGES = ("deltalakedb", "deltalake", "duckdb", "duckdb_extension_ducklake", "pyarrow")
FOOTNOTE = (
    "Times are medians, ± half the distance between the fastest and the slowest round. Memory is"
    "\nwhat the process took on top of its imports; a Postgres server's own is not in it."
)
_HEADINGS = ("case", "ours", "peer", "", "faster", "goal", "", "memory", "peer's", "note")


@dataclass(frozen=True)
class Line:
    """Ours beside a peer's. `goal` is how many times faster ours has to be."""

    case: str
    ours: Measured
    peer: Measured | None = None
    goal: float | None = None
    note: str = ""

    @property
    def ratio(self) -> float | None:
        return None if self.peer is None else self.peer.median / self.ours.median

    @property
    def met(self) -> bool | None:
        if self.goal is None or self.ratio is None:
            return None
        return self.ratio >= self.goal

    def as_json(self) -> dict[str, Any]:
        def side(found: Measured | None) -> Any:
            return found and {
                "name": found.name,
                "median": found.median,
                "seconds": found.seconds,
                "cpu": found.cpu,
                "memory": found.memory,
            }

        return {
            "case": self.case,
            "ours": side(self.ours),
            "peer": side(self.peer),
            "ratio": self.ratio,
            "goal": self.goal,
            "met": self.met,
            "note": self.note,
        }


def _time(seconds: float) -> str:
    for unit, scale in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if seconds * scale >= 1 or unit == "µs":
            return f"{seconds * scale:.3g} {unit}"
    raise AssertionError


def _spread(found: Measured) -> str:
    """Median, and how far the rounds are apart."""
    half = (max(found.seconds) - min(found.seconds)) / 2 / found.median
    return _time(found.median) + (f" ±{half:.0%}" if len(found.seconds) > 1 else "")


def _times(ratio: float) -> str:
    return f"{ratio:.3g}x" if ratio < 100 else f"{ratio:,.0f}x"


def _memory(found: Measured | None) -> str:
    return "" if found is None else f"{found.memory / 2**20:,.0f} MB"


def _row(line: Line, *, judged: bool) -> tuple[str, ...]:
    verdict = {None: "", True: "met", False: "MISSED"}[line.met if judged else None]
    return (
        line.case,
        _spread(line.ours),
        _spread(line.peer) if line.peer else "",
        line.peer.name if line.peer else "",
        _times(line.ratio) if line.ratio else "",
        _times(line.goal) if line.goal else "",
        verdict,
        _memory(line.ours),
        _memory(line.peer),
        line.note,
    )


def table(lines: Iterable[Line], *, judged: bool) -> str:
    """A plain table with a heading."""
    rows = [_HEADINGS, *(_row(line, judged=judged) for line in lines)]
    widths = [max(len(row[n]) for row in rows) for n in range(len(_HEADINGS))]
    return "\n".join(
        "  " + "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )


def write(found: dict[str, list[Line]], sizes: Any, seconds: float) -> Path:
    """Everything measured, with what it was measured on."""
    now = datetime.now(UTC)
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{now:%Y%m%dT%H%M%SZ}.json"
    body = {
        "at": now.isoformat(),
        "took": seconds,
        "machine": {
            "system": platform.platform(),
            "cpus": os.cpu_count(),
            "python": platform.python_version(),
        },
        "packages": {name: version(name) for name in _PACKAGES},
        "sizes": vars(sizes),
        "questions": {name: [line.as_json() for line in lines] for name, lines in found.items()},
    }
    path.write_text(json.dumps(body, indent=1))
    return path
