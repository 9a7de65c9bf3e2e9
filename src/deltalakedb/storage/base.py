"""The one seam to object stores.

A location is a plain path, ``file://``, ``s3://``, ``gs://``, ``abfss://`` or ``memory://``. Small
files of the log go through `Store`; Parquet data goes through `filesystem`. Everything that fails
is a `StorageError` that names the place without credentials.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote, urlsplit

from deltalakedb.errors import ObjectNotFound, StorageError, UnsupportedByBackend, UriError
from deltalakedb.uri import is_deltasql, redact

if TYPE_CHECKING:
    import obstore.store
    import pyarrow.fs

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_memory: dict[str, obstore.store.MemoryStore] = {}


class Entry(NamedTuple):
    """A file as a listing shows it; `modified` is in milliseconds since the epoch."""

    path: str
    size: int
    modified: int


class Store:
    """The files below one location. Paths are relative to it and not percent-encoded."""

    def __init__(self, location: str) -> None:
        self.location = resolve(location)
        with _translated(self.location):
            self._store, self._root = _open(self.location)

    def __repr__(self) -> str:
        return f"Store({redact(self.location)!r})"

    def get(self, path: str) -> bytes:
        """The whole file.

        Raises:
            ObjectNotFound: there is none.
        """
        import obstore

        with _translated(self._show(path)):
            return bytes(obstore.get(self._store, self._root + path).bytes())

    def list(self, prefix: str = "", start_after: str | None = None) -> list[Entry]:
        """All files in the folder `prefix` and below it, by path, and none if there is no folder.

        With `start_after` only those whose path sorts behind it; object stores do not even look
        at the others.
        """
        import obstore

        offset = None if start_after is None else self._root + start_after
        with _translated(self._show(prefix)):
            found = obstore.list(self._store, self._root + prefix or None, offset=offset).collect()
        skip = len(self._root)
        return sorted(
            Entry(f["path"][skip:], f["size"], (f["last_modified"] - _EPOCH) // _MILLISECOND)
            for f in found
        )

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """Write the file in one piece, unless there is one already. Whether it was written."""
        import obstore

        with _translated(self._show(path)):
            try:
                obstore.put(self._store, self._root + path, data, mode="create")
            except obstore.exceptions.AlreadyExistsError:
                return False
        return True

    def delete(self, paths: Sequence[str]) -> None:
        """Remove files; those that do not exist are passed over."""
        import obstore

        for path in paths:
            with _translated(self._show(path)), suppress(FileNotFoundError):
                obstore.delete(self._store, self._root + path)

    def exists(self, path: str) -> bool:
        """Whether there is such a file."""
        import obstore

        with _translated(self._show(path)):
            try:
                obstore.head(self._store, self._root + path)
            except FileNotFoundError:
                return False
        return True

    def _show(self, path: str) -> str:
        return f"{self.location}/{path}".rstrip("/")


def resolve(location: str | os.PathLike[str]) -> str:
    """The location as an absolute URI without a trailing slash; equal for all ways to write it.

    Raises:
        UriError: the scheme is not one of an object store.
    """
    text = os.fspath(location)
    if is_deltasql(text):
        raise UriError("a deltasql:// URI names a catalog, not a place for files", uri=redact(text))
    if _SCHEME.match(text) and not text.lower().startswith("file://"):
        return text.rstrip("/")
    return Path(os.path.abspath(local_path(text))).as_uri()


def local_path(location: str) -> str:
    """The path on this machine's disk that a path or a ``file://`` URI names."""
    if not location.lower().startswith("file://"):
        return location
    parts = urlsplit(location)
    if parts.netloc not in ("", "localhost"):
        raise StorageError(f"{location} names a file of another machine", path=location)
    return unquote(location[7:].removeprefix(parts.netloc))


def filesystem(location: str) -> tuple[pyarrow.fs.FileSystem, str]:
    """The Arrow file system of a location, and the location's path in it."""
    import pyarrow.fs as pafs

    uri = resolve(location)
    if uri.startswith("memory://"):
        raise UnsupportedByBackend(
            "data files cannot be kept in memory:// ; use a folder",
            backend="memory",
            operation="data files",
        )
    with _translated(uri):
        if uri.startswith("file://"):
            return pafs.LocalFileSystem(), local_path(uri)
        found: tuple[pafs.FileSystem, str] = pafs.FileSystem.from_uri(_arrow_uri(uri))
        return found


def remove_uris(uris: Iterable[str]) -> None:
    """Delete files given by full URI or path. Missing ones are passed over.

    On a local disk, folders that become empty by it are removed too: those named for a partition,
    and the one above them.
    """
    for uri in uris:
        folder, _, name = resolve(uri).rpartition("/")
        Store(folder).delete([unquote(name) if folder.startswith("file://") else name])
        if folder.startswith("file://"):
            _remove_empty(Path(local_path(folder)))


def _remove_empty(folder: Path) -> None:
    with suppress(OSError):  # not empty, or already gone with another file
        while "=" in folder.name:
            folder.rmdir()
            folder = folder.parent
        folder.rmdir()


def _open(location: str) -> tuple[obstore.store.ObjectStore, str]:
    """The store, and what stands before every path in it."""
    from obstore.store import LocalStore, MemoryStore, from_url

    if location.startswith("file://"):
        # Not rooted at the folder itself, which need not exist yet.
        return LocalStore(), local_path(location).strip("/") + "/"
    if location.startswith("memory://"):
        name, _, path = location[9:].partition("/")
        return _memory.setdefault(name, MemoryStore()), f"{path}/" if path else ""
    return from_url(location), ""


def _arrow_uri(uri: str) -> str:
    scheme, _, rest = uri.partition("://")
    known = {"s3a": "s3", "az": "abfs", "azure": "abfs", "adl": "abfs"}
    return f"{known.get(scheme.lower(), scheme)}://{rest}"


@contextmanager
def _translated(place: str) -> Iterator[None]:
    """Errors of the libraries below become ours; one that quotes a secret is not chained."""
    from obstore.exceptions import BaseError

    try:
        yield
    except (BaseError, OSError, ValueError) as error:
        place, told = redact(place), str(error).partition("\n")[0]
        missing = isinstance(error, FileNotFoundError)
        kind = ObjectNotFound if missing else StorageError
        text = f"{place} does not exist" if missing else f"{place}: {redact(told)}"
        cause = error if redact(str(error)) == str(error) else None
        raise kind(text, path=place) from cause
