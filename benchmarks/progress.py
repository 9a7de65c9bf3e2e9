"""Progress, apart from the results."""

from __future__ import annotations

import sys


def say(text: str) -> None:
    """A line to stderr."""
    print(text, file=sys.stderr, flush=True)
