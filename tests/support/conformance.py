"""Where the Delta tables are that other people's software wrote."""

from __future__ import annotations

import os
from pathlib import Path

VARIABLE = "DELTALAKEDB_CONFORMANCE"
REPOSITORY = Path(__file__).parents[2]
ROOT = Path(os.environ.get(VARIABLE) or REPOSITORY.parent / "shared" / "conformance").resolve()


def found() -> bool:
    """Whether the tables are there."""
    return (ROOT / "index.json").is_file()
