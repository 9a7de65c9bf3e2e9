"""Sides of a question measured in turn, each time in a fresh process."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
_TIMEOUT = 3600


class BenchmarkFailed(Exception):
    """A side did not finish, or the sides do not agree."""


@dataclass(frozen=True)
class Side:
    """What one side does: a function of a benchmark's module, and its arguments.

    `each` is how many operations one call does; times are given for one of them.
    """

    call: Callable[..., Callable[[], Any]]
    args: Mapping[str, Any]
    each: int = 1


@dataclass(frozen=True)
class Measured:
    """Seconds of every round, the most memory of any, and the answer.

    `cpu` is what our process computed: it tells waiting, and a busy machine, from work.
    """

    name: str
    seconds: list[float]
    memory: int = 0
    answer: Any = None
    cpu: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)


def once(side: Side) -> dict[str, Any]:
    """Run one side in a fresh process."""
    call = f"{side.call.__module__}:{side.call.__name__}"
    spec = json.dumps({"call": call, "args": dict(side.args)})
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.child"],
        input=spec,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=_TIMEOUT,
        check=False,
    )
    if done.returncode:
        raise BenchmarkFailed(f"{call}\n{done.stderr.strip()}")
    made: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return {**made, "seconds": made["seconds"] / side.each, "cpu": made["cpu"] / side.each}


def measure(
    sides: Mapping[str, Side | Callable[[], Side]],
    rounds: int,
    *,
    agree: bool = True,
) -> dict[str, Measured]:
    """Every side in turn, round after round; the first of several does not count.

    A side that leaves something behind is given as a function that makes it anew for every round.
    """
    samples: dict[str, list[dict[str, Any]]] = {name: [] for name in sides}
    for _ in range(rounds):
        for name, side in sides.items():
            samples[name].append(once(side if isinstance(side, Side) else side()))
    found = {
        name: Measured(
            name,
            [s["seconds"] for s in every[1:] or every],
            max(s["memory"] for s in every),
            every[-1]["answer"],
            [s["cpu"] for s in every[1:] or every],
        )
        for name, every in samples.items()
    }
    answers = {name: one.answer for name, one in found.items()}
    if agree and len({json.dumps(answer) for answer in answers.values()}) > 1:
        raise BenchmarkFailed(f"the sides do not agree: {answers}")
    return found
