"""Folders for names that people choose."""

from __future__ import annotations

from hashlib import sha256


def folder_name(name: str) -> str:
    """A folder for any name, safe in every file system and URI; plain names stay as they are."""
    plain = "".join(c if (c.isalnum() and c.isascii()) or c in "-_." else "_" for c in name)
    if plain == name and len(name) <= 100 and not name.startswith((".", "_")):
        return name
    return f"{plain.lstrip('._')[:100] or 'table'}-{sha256(name.encode()).hexdigest()[:8]}"
