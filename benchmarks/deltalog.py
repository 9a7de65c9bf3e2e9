"""The `_delta_log` that the peers read: the very actions our catalog holds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path


def write(catalog: str, table: str, folder: str, checkpoints: list[int]) -> Callable[[], int]:
    """Writes every version as a commit file, and lets delta-rs make its checkpoints."""
    import deltalake

    import deltalakedb as dl
    from deltalakedb.model.codec import encode_commit

    log = Path(folder) / "_delta_log"
    log.mkdir(parents=True, exist_ok=True)
    opened = dl.Catalog(catalog)
    reader = opened.reader(table)
    last = opened.table(table).version()

    def act() -> int:
        for version in range(last + 1):
            (log / f"{version:020}.json").write_bytes(encode_commit(reader.actions(version)))
        for version in checkpoints:
            deltalake.DeltaTable(folder, version=version).create_checkpoint()
        return last

    return act
