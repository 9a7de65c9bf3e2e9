"""`python -m benchmarks [NAME ...] [--quick] [--list] [--engine NAME] [--data DIR]`."""

from __future__ import annotations

import argparse
import sys
import time
from importlib import import_module
from pathlib import Path

from benchmarks import report
from benchmarks.lab import open_lab
from benchmarks.measure import BenchmarkFailed
from benchmarks.progress import say
from benchmarks.questions import NAMES
from benchmarks.sizes import ENGINES, FULL, QUICK

QUESTIONS = {name: import_module(f"benchmarks.questions.{name}") for name in NAMES}


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="questions to ask; all of them")
    parser.add_argument("--quick", action="store_true", help="small sizes: does everything run?")
    parser.add_argument("--list", action="store_true", help="name the questions and stop")
    parser.add_argument(
        "--engine", action="append", choices=ENGINES, help="only this one; may be repeated"
    )
    parser.add_argument(
        "--data", type=Path, metavar="DIR", help="keep the prepared tables there and reuse them"
    )
    given = parser.parse_args()
    if unknown := sorted(set(given.names) - set(QUESTIONS)):
        parser.error(f"no question {unknown[0]!r}; questions: {', '.join(QUESTIONS)}")
    return given


def main() -> int:
    """Ask the questions; 1 if one could not be answered."""
    given = _arguments()
    if given.list:
        for name, question in QUESTIONS.items():
            print(f"{name:12}{title(question)}")
        return 0
    sizes = QUICK if given.quick else FULL
    if given.quick:
        say("small sizes: everything runs, but no ratio means anything")
    began, found, failed = time.monotonic(), {}, False
    with open_lab(sizes, given.engine or ENGINES, given.data) as lab:
        for name in given.names or QUESTIONS:
            say(f"--- {name}")
            try:
                found[name] = QUESTIONS[name].ask(lab)
            except BenchmarkFailed as e:
                say(f"{name} failed: {e}")
                failed = True
                continue
            print(f"\n{name}: {title(QUESTIONS[name])}")
            print(report.table(found[name], judged=sizes.judged), flush=True)
    print("\n" + report.FOOTNOTE)
    path = report.write(found, sizes, time.monotonic() - began)
    say(f"\nwritten to {path}")
    return int(failed)


def title(question: object) -> str:
    """First line of the question's module."""
    return str(question.__doc__).splitlines()[0]


if __name__ == "__main__":
    sys.exit(main())
