"""A second opinion on a Delta log, as plain as possible, sharing no code with the package.

It reads commits from version 0 on and looks at a checkpoint only where commits are gone, and then
at the oldest one. The package does the opposite, so the two rarely read the same files.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow.parquet as pq

COLUMNS = ["path", "partitionValues", "size", "modificationTime", "stats", "deletionVector"]
OTHERS = ["protocol", "metaData", "txn", "domainMetadata", "sidecar"]


@dataclass
class Replayed:
    protocol: dict[str, Any] = field(default_factory=dict)
    metadata: dict[str, Any] = field(default_factory=dict)
    files: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    txns: dict[str, int] = field(default_factory=dict)
    domains: dict[str, str] = field(default_factory=dict)

    def apply(self, actions: list[dict[str, Any]], root: Path) -> None:
        for action in actions:
            for kind, body in action.items():
                if body is None:
                    continue
                if kind == "protocol":
                    self.protocol = body
                elif kind == "metaData":
                    self.metadata = body
                elif kind == "add":
                    self.files[key(body, root)] = body
                elif kind == "remove":
                    self.files.pop(key(body, root), None)
                elif kind == "txn":
                    self.txns[body["appId"]] = body["version"]
                elif kind == "domainMetadata":
                    self.domains[body["domain"]] = body["configuration"]
                    if body.get("removed"):
                        del self.domains[body["domain"]]


def key(action: dict[str, Any], root: Path) -> tuple[str, str]:
    path = re.sub(r"^file:/+", "/", unquote(action["path"]))
    vector = action.get("deletionVector")
    if not vector:
        return path, ""
    offset = vector.get("offset")
    identity = vector["storageType"] + vector["pathOrInlineDv"]
    return path, identity if offset is None else f"{identity}@{offset}"


def replay_all(table: Path, *, trust_checkpoints: bool = False) -> dict[int, Replayed]:
    """The table at every version that its log still has, as far as it is whole at the end.

    With `trust_checkpoints` a checkpoint overrules the commits before it.
    """
    log = table / "_delta_log"
    commits = {int(f.stem): f for f in log.glob("*.json") if re.fullmatch(r"\d{20}", f.stem)}
    checkpoints = _complete_checkpoints(log)
    last = max([*commits, *checkpoints])
    start = last
    while start in commits and start > 0:
        start -= 1
    if 0 not in commits or start > 0:
        start = min(v for v in checkpoints if v >= start)

    states: dict[int, Replayed] = {}
    for version in range(start, last + 1):
        state = Replayed()
        if (version == start and version > 0) or (trust_checkpoints and version in checkpoints):
            state.apply(_read_checkpoint(checkpoints[version], log), table)
        else:
            if version > start:
                before = states[version - 1]
                state = Replayed(
                    before.protocol,
                    before.metadata,
                    dict(before.files),
                    dict(before.txns),
                    dict(before.domains),
                )
            state.apply(_removes_first(_read_lines(commits[version])), table)
        states[version] = state
    return states


def _removes_first(actions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(actions, key=lambda a: "remove" not in a)


def _complete_checkpoints(log: Path) -> dict[int, list[Path]]:
    found: dict[int, list[Path]] = {}
    parts: dict[tuple[int, int], list[Path]] = {}
    for file in sorted(log.iterdir()):
        name = file.name.split(".")
        if len(name) < 3 or name[1] != "checkpoint" or not name[0].isdigit():
            continue
        if len(name) == 5:
            parts.setdefault((int(name[0]), int(name[3])), []).append(file)
        else:
            found[int(name[0])] = [file]
    for (version, count), files in parts.items():
        if len(files) == count:
            found.setdefault(version, files)
    return found


def _read_lines(file: Path) -> list[dict[str, Any]]:
    decoder = json.JSONDecoder()  # raw_decode: some old Databricks logs have an x behind each line
    lines = [line.strip() for line in file.read_text("utf-8").split("\n")]
    return [decoder.raw_decode(line)[0] for line in lines if line]


def _read_checkpoint(files: list[Path], log: Path) -> list[dict[str, Any]]:
    actions: list[dict[str, Any]] = []
    for file in files:
        actions += _read_lines(file) if file.suffix == ".json" else _read_rows(file)
    for action in list(actions):
        if action.get("sidecar"):
            name = unquote(action["sidecar"]["path"]).split("/")[-1]
            actions += _read_rows(log / "_sidecars" / name)
    return actions


def _read_rows(file: Path) -> list[dict[str, Any]]:
    rows = pq.ParquetFile(file).read([*OTHERS, *(f"add.{c}" for c in COLUMNS)]).to_pylist()
    for row in rows:
        if row.get("add"):
            row["add"]["partitionValues"] = dict(row["add"]["partitionValues"])
        if row.get("metaData"):
            row["metaData"]["configuration"] = dict(row["metaData"]["configuration"])
    return rows
