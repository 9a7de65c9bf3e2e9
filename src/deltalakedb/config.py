"""Settings, frozen. The environment is read here and nowhere else.

Every field of `Config` is also a variable: ``max_tables`` is ``DELTALAKEDB_MAX_TABLES``. A variable
that is empty counts as not set. A value out of range is an error, never clamped.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, NamedTuple

import msgspec

from deltalakedb.errors import ConfigError, UriError
from deltalakedb.uri import DeltaSqlUri, parse

PREFIX: Final = "DELTALAKEDB_"
DEFAULT_CATALOG: Final = DeltaSqlUri(engine="sqlite", path="deltalakedb.db")


class Config(msgspec.Struct, frozen=True, kw_only=True):
    """What a catalog, and everything opened through it, goes by."""

    catalog: DeltaSqlUri = DEFAULT_CATALOG
    """The catalog of calls that name none: a file in the current folder unless told otherwise."""

    warehouse: str | None = None
    """Where tables without a location go; if not set, a folder beside an embedded catalog."""

    schema: Literal["create_if_missing", "error"] = "create_if_missing"
    """What opening a catalog does when its tables are missing or old: make them, or refuse."""

    retry_attempts: int = 10
    """How often a commit is tried in all before its conflict or lock is reported."""

    retry_backoff_ms: int = 20
    """The wait before the second attempt; it doubles with every further one, with jitter."""

    retry_max_backoff_ms: int = 2_000
    """The longest wait between two attempts."""

    max_tables: int = 10
    """How many tables a transaction may touch unless `begin` says otherwise."""

    max_files_per_table: int = 1_000
    """How many files a transaction may add to or remove from one table, unless told otherwise."""

    timeout_secs: float = 60.0
    """How long a transaction may live, from `begin` to its commit, unless told otherwise."""

    sqlite_synchronous: Literal["full", "normal"] = "full"
    """``full`` survives a power cut with every commit; ``normal`` may lose the last ones, whole."""

    sqlite_busy_timeout_ms: int = 30_000
    """How long SQLite waits for another writer before the catalog counts as locked."""

    target_file_size: int = 128 * 1024**2
    """Bytes at which a data file being written is full and the next one starts."""

    committer: str = "unknown"
    """Who commits, as recorded with every transaction. From the environment: the user's name."""

    def __post_init__(self) -> None:
        for name, rule in _RULES.items():
            value = getattr(self, name)
            if not rule.accepts(value):
                raise _error(name, value, rule.allowed)
        if self.catalog.table is not None:
            raise _error("catalog", str(self.catalog), "a catalog without a table")
        if self.retry_max_backoff_ms < self.retry_backoff_ms:
            least = f"at least retry_backoff_ms, {self.retry_backoff_ms}"
            raise _error("retry_max_backoff_ms", self.retry_max_backoff_ms, least)

    @classmethod
    def from_env(cls, env: Mapping[str, str] | None = None) -> Config:
        """Settings from `env` (the process's environment by default), defaults for the rest.

        Raises:
            ConfigError: naming the variable and what it may be.
        """
        env = os.environ if env is None else env
        texts = {name: env.get(PREFIX + name.upper()) for name in cls.__struct_fields__}
        texts["committer"] = texts["committer"] or env.get("USER") or env.get("USERNAME")
        return cls(**{name: _read(name, text, env) for name, text in texts.items() if text})


class _Rule(NamedTuple):
    read: Callable[[str], Any]
    accepts: Callable[[Any], bool]
    allowed: str


def _number(kind: type[int | float], low: float, high: float) -> _Rule:
    kinds = {int, kind}
    what = "a whole number" if kind is int else "a number"
    return _Rule(
        kind, lambda v: type(v) in kinds and low <= v <= high, f"{what} from {low} to {high}"
    )


def _one_of(*values: str) -> _Rule:
    return _Rule(str, lambda v: v in values, "one of " + ", ".join(values))


def _is_name(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= 200 and value.isprintable()


_RULES: Final[Mapping[str, _Rule]] = {
    "warehouse": _Rule(str, lambda v: v is None or bool(v), "a folder or an object-store URL"),
    "schema": _one_of("create_if_missing", "error"),
    "retry_attempts": _number(int, 1, 1_000),
    "retry_backoff_ms": _number(int, 0, 60_000),
    "retry_max_backoff_ms": _number(int, 0, 600_000),
    "max_tables": _number(int, 1, 10_000),
    "max_files_per_table": _number(int, 1, 100_000_000),
    "timeout_secs": _number(float, 0.001, 86_400),
    "sqlite_synchronous": _one_of("full", "normal"),
    "sqlite_busy_timeout_ms": _number(int, 0, 3_600_000),
    "target_file_size": _number(int, 1_024, 2**40),
    "committer": _Rule(str, _is_name, "printable text of 1 to 200 characters"),
}


def _read(name: str, text: str, env: Mapping[str, str]) -> Any:
    if name == "catalog":
        try:
            return parse(text, env)
        except UriError as e:
            raise ConfigError(
                f"{PREFIX}CATALOG: {e.message}", setting=name, value=e.uri, allowed=e.allowed
            ) from e
    rule = _RULES[name]
    try:
        return rule.read(text)
    except ValueError:
        raise _error(name, text, rule.allowed) from None


def _error(name: str, value: object, allowed: str) -> ConfigError:
    return ConfigError(
        f"{name} ({PREFIX}{name.upper()}) must be {allowed}, not {value!r}",
        setting=name,
        value=value,
        allowed=allowed,
    )
