"""Every table of the conformance folder, also those inside a folder of tables."""

from __future__ import annotations

import json
from pathlib import Path

from conformance.expectations import NOT_AS_DELTA_RS, REFUSED
from support.conformance import ROOT, found


def indexed() -> list[str]:
    """The names in the index."""
    return [entry["table"] for entry in json.loads((ROOT / "index.json").read_text())]


def _discover() -> dict[str, Path]:
    if not found():
        return {}
    tables = {name: ROOT / name / "delta" for name in indexed()}
    for log in ROOT.rglob("_delta_log"):
        if log.parent not in tables.values():
            tables[str(log.parent.relative_to(ROOT))] = log.parent
    return dict(sorted(tables.items()))


TABLES = _discover()
OPENED = [name for name in TABLES if name not in REFUSED]
WITH_DELTA_RS = [name for name in OPENED if name not in NOT_AS_DELTA_RS]
