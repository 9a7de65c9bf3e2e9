"""Optional libraries, loaded when they are needed and named when they are missing."""

from __future__ import annotations

import importlib
from types import ModuleType

from deltalakedb.errors import ConfigError


def require(module: str, extra: str) -> ModuleType:
    """The module, or an error that says which extra brings it."""
    try:
        return importlib.import_module(module)
    except ImportError as e:
        raise ConfigError(
            f"{module} is not installed: pip install 'deltalakedb[{extra}]'",
            setting=f"extra {extra}",
            allowed=f"deltalakedb[{extra}]",
        ) from e
