"""What lies in a `_delta_log`: commits, checkpoints, and which of them make a version.

The listing alone decides. `_last_checkpoint` is a hint that may be missing, stale or broken, and
log compaction files only repeat commits: neither is needed to be right, so neither is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from deltalakedb.errors import CorruptLog, ObjectNotFound, TableNotFound
from deltalakedb.storage.base import Entry, Store

FOLDER: Final = "_delta_log"
SIDECARS: Final = f"{FOLDER}/_sidecars"

_COMMIT: Final = re.compile(r"(\d{20})\.json")
_CHECKPOINT: Final = re.compile(
    r"(?P<version>\d{20})\.checkpoint"
    r"(?:\.(?P<part>\d{10})\.(?P<parts>\d{10})|\.(?P<uuid>[0-9A-Za-z-]{36}))?"
    r"\.(?P<format>parquet|json)"
)


def commit_path(version: int) -> str:
    """Where the commit of a version is written."""
    return f"{FOLDER}/{version:020}.json"


@dataclass(frozen=True)
class Checkpoint:
    """One complete checkpoint: a file, or all parts of a multi-part one."""

    version: int
    files: tuple[Entry, ...]


@dataclass(frozen=True)
class Segment:
    """The files that make a version: a checkpoint, and the commits after it."""

    version: int
    checkpoint: Checkpoint | None
    commits: range


@dataclass(frozen=True)
class LogListing:
    """The files of one log at one moment."""

    location: str
    commits: Mapping[int, Entry]
    checkpoints: tuple[Checkpoint, ...]
    """By version; of those of one version any may be used."""

    @cached_property
    def last(self) -> int:
        """The newest version."""
        return max([*self.commits, *(c.version for c in self.checkpoints)])

    @cached_property
    def oldest_commit(self) -> int:
        """The first of the commits that lead to the newest version without a gap.

        One more than the newest version if that has only a checkpoint.
        """
        version = self.last + 1
        while version - 1 in self.commits:
            version -= 1
        return version

    @cached_property
    def first(self) -> int:
        """The oldest version from which all up to the newest can be read.

        Older files may be there: what an interrupted cleanup has left of versions that are gone.
        """
        if self.oldest_commit == 0:
            return 0
        usable = [c.version for c in self.checkpoints if c.version >= self.oldest_commit - 1]
        if not usable:
            raise self._gap(self.oldest_commit - 1)
        return min(usable)

    def segment(self, version: int) -> Segment:
        """The files that make a version between `first` and `last`."""
        before = [c for c in self.checkpoints if c.version <= version]
        checkpoint = before[-1] if before else None
        start = checkpoint.version + 1 if checkpoint else 0
        for needed in range(start, version + 1):
            if needed not in self.commits:
                raise self._gap(needed)
        return Segment(version, checkpoint, range(start, version + 1))

    @cached_property
    def times(self) -> Mapping[int, int]:
        """When each version was written, by the store's clock (ms).

        A clock that was set back, or is too coarse, is put right: each version is later than the
        one before it.
        """
        made: dict[int, int] = {}
        before = -1
        for version in range(min(self.first, self.oldest_commit), self.last + 1):
            before = made[version] = max(self._modified(version), before + 1)
        return made

    def _modified(self, version: int) -> int:
        if (commit := self.commits.get(version)) is not None:
            return commit.modified
        return min(f.modified for c in self.checkpoints if c.version == version for f in c.files)

    def _gap(self, version: int) -> CorruptLog:
        reason = "it is missing, and no checkpoint makes up for it"
        return corrupt(self.location, version, commit_path(version), reason)


def corrupt(location: str, version: int, path: str, reason: str) -> CorruptLog:
    """The error for a file of the log that is not what it must be."""
    return CorruptLog(
        f"{location} is corrupt at version {version}: {path}: {reason}",
        location=location,
        version=version,
        file=path,
        reason=reason,
    )


@contextmanager
def blaming(location: str, version: int, path: str | None = None) -> Iterator[None]:
    """Whatever cannot be understood inside is the fault of this file of the log.

    Without a path it is the commit of the version, or of the one the error names.
    """
    try:
        yield
    except ObjectNotFound as error:
        raise corrupt(location, version, path or commit_path(version), "it is missing") from error
    except CorruptLog as error:
        if "file" in error.facts:
            raise
        version = version if error.facts.get("version") is None else error.version
        raise corrupt(location, version, path or commit_path(version), error.message) from error


def list_log(store: Store) -> LogListing:
    """The log below a store's location.

    Raises:
        TableNotFound: there is neither a commit nor a complete checkpoint.
    """
    entries = {e.path.removeprefix(f"{FOLDER}/"): e for e in store.list(FOLDER)}
    commits = {int(m[1]): e for name, e in entries.items() if (m := _COMMIT.fullmatch(name))}
    listing = LogListing(store.location, commits, tuple(_checkpoints(entries)))
    if not listing.commits and not listing.checkpoints:
        raise TableNotFound(
            f"no Delta table at {store.location}: {FOLDER} holds no commit and no checkpoint",
            table=store.location,
        )
    return listing


def _checkpoints(entries: Mapping[str, Entry]) -> Iterable[Checkpoint]:
    """Complete ones by version. Single files come last, so that they are preferred."""
    single: list[Checkpoint] = []
    parts: dict[tuple[int, int], dict[int, Entry]] = {}
    for name, entry in entries.items():
        found = _CHECKPOINT.fullmatch(name)
        if found is None:
            continue
        version = int(found["version"])
        if found["part"]:
            parts.setdefault((version, int(found["parts"])), {})[int(found["part"])] = entry
        elif found["uuid"] or found["format"] == "parquet":
            single.append(Checkpoint(version, (entry,)))
    whole = [
        Checkpoint(version, tuple(files[n] for n in range(1, count + 1)))
        for (version, count), files in parts.items()
        if files.keys() == set(range(1, count + 1))
    ]
    return sorted([*whole, *single], key=lambda c: c.version)
