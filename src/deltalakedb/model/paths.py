"""Paths of files in the log: URIs, relative to the table or absolute.

A path in the log is percent-encoded; the name of the file in storage is the decoded one. The same
file may be spelled in several ways, so files are told apart by `canonical`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, Literal
from urllib.parse import quote, unquote

from deltalakedb.errors import InvalidCommit

_SAFE: Final = "/-_.!~*'()@&=+$,;"
"""Kept as they are, like Hadoop does; `:` is not, so that no name looks like a scheme."""
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(?://([^/]*))?(.*)", re.DOTALL)
_ALIASES: Final = {"s3a": "s3", "s3n": "s3", "abfs": "abfss"}


def encode(path: str) -> str:
    """The name of a file in storage as it goes into the log."""
    return quote(path, safe=_SAFE, errors="surrogateescape")


def decode(path: str) -> str:
    """The name in storage of a path in the log."""
    return unquote(path, errors="surrogateescape") if "%" in path else path


def is_absolute(path: str) -> bool:
    """Whether a path in the log does not start at the table."""
    return path.startswith("/") or _SCHEME.fullmatch(path) is not None


def canonical(path: str, root: str | None = None) -> str:
    """What all spellings of one file have in common; only for comparing.

    Files below `root`, the table's location, come out relative to it, decoded. Others come out as
    an absolute URI. A path with a slash in front and no scheme belongs to the root's file system.
    """
    if path[:1] != "/" and not any(mark in path for mark in ("%", ":", "//", "./", "/.")):
        return path
    if not is_absolute(path):
        return _tidy(decode(path))
    home = _split(root, encoded=_SCHEME.fullmatch(root) is not None) if root else ("file", "", "")
    scheme, authority, body = _split(path, home=home)
    base = home[2].rstrip("/") + "/"
    if root and (scheme, authority) == home[:2] and body.startswith(base):
        return body.removeprefix(base)
    return f"{scheme}://{authority}{body}"


def _split(
    path: str, *, encoded: bool = True, home: tuple[str, str, str] = ("file", "", "")
) -> tuple[str, str, str]:
    """(scheme, authority, decoded body) of an absolute path."""
    found = _SCHEME.fullmatch(path)
    if found is None:
        return home[0], home[1], _tidy(decode(path) if encoded else path)
    scheme = found[1].lower()
    return _ALIASES.get(scheme, scheme), found[2] or "", _tidy(decode(found[3]))


def _tidy(path: str) -> str:
    """Without empty and `.` segments; a slash in front stays."""
    kept = "/".join(part for part in path.split("/") if part not in ("", "."))
    return f"/{kept}" if path.startswith("/") else kept


def spellings(path: str) -> Iterator[str]:
    """Other ways in which writers are known to write the same path, likely ones first."""
    found = _SCHEME.fullmatch(path)
    heads, body = [""], path
    if path.startswith("/") or (found and found[1].lower() == "file" and not found[2]):
        heads, body = ["", "file:", "file://"], found[3] if found else path
    elif found:
        scheme, body = found[1].lower(), found[3]
        same = _ALIASES.get(scheme, scheme)
        family = [same, *(alias for alias, of in _ALIASES.items() if of == same)]
        heads = [f"{name}://{found[2] or ''}" for name in family]
    plain = decode(body)
    # Hadoop leaves characters beyond ASCII as they are.
    hadoop = "".join(c if ord(c) > 127 else encode(c) for c in plain)
    for form in dict.fromkeys(
        head + text for head in heads for text in (body, encode(plain), hadoop, plain)
    ):
        if form != path:
            yield form


def check_inside(path: str, *, absolute: Literal["refuse", "allow"] = "refuse") -> None:
    """Refuse a path that leads out of the table, or into its log.

    Raises:
        InvalidCommit: says what is wrong with the path.
    """
    if path[:1] not in "/_." and not any(mark in path for mark in ("%", ":", "..", "\\", "\0")):
        return
    parts = [part for part in re.split(r"[/\\]", decode(path)) if part not in ("", ".")]
    if not parts:
        reason = "it names no file"
    elif "\0" in decode(path):
        reason = "it holds a NUL character"
    elif ".." in parts:
        reason = "it climbs out of its folder"
    elif is_absolute(path) and absolute == "refuse":
        reason = "it is absolute"
    elif parts[0] == "_delta_log":
        reason = "it lies in the log"
    else:
        return
    raise InvalidCommit(f"path {path!r} is refused: {reason}", rule=reason, path=path)


def join(root: str, path: str) -> str:
    """Where a path in the log leads, for a table at `root`.

    A URI for a root that is one, a plain file name for a root that is a folder's name.
    """
    base, found = root.rstrip("/"), _SCHEME.fullmatch(root)
    if not is_absolute(path):
        return f"{base}/{path if found else decode(path)}"
    if not path.startswith("/"):
        return path
    return f"{found[1]}://{found[2] or ''}{path}" if found else decode(path)
