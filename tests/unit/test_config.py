"""Settings: defaults, the environment, and what is refused."""

from __future__ import annotations

import pytest

from deltalakedb.config import PREFIX, Config
from deltalakedb.errors import ConfigError, UriError
from deltalakedb.uri import parse


def test_defaults():
    config = Config()
    assert str(config.catalog) == "deltasql://sqlite/deltalakedb.db"
    assert config.schema == "create_if_missing"
    assert (config.max_tables, config.max_files_per_table, config.timeout_secs) == (10, 1_000, 60)
    assert config.sqlite_synchronous == "full"
    assert config.target_file_size == 128 * 1024 * 1024


def test_an_empty_environment_gives_the_defaults():
    assert Config.from_env({}) == Config()
    assert Config.from_env(dict.fromkeys(_variables(), "")) == Config()


def test_the_environment_is_read_when_asked(monkeypatch):
    monkeypatch.setenv("DELTALAKEDB_MAX_TABLES", "3")
    assert Config.from_env().max_tables == 3
    assert Config().max_tables == 10


def test_every_setting_has_a_variable():
    env = {
        "DELTALAKEDB_CATALOG": "deltasql://postgres/me:${PW}@h/db/s",
        "PW": "p/w",
        "DELTALAKEDB_WAREHOUSE": "s3://bucket/tables",
        "DELTALAKEDB_SCHEMA": "error",
        "DELTALAKEDB_RETRY_ATTEMPTS": "3",
        "DELTALAKEDB_RETRY_BACKOFF_MS": "5",
        "DELTALAKEDB_RETRY_MAX_BACKOFF_MS": "50",
        "DELTALAKEDB_MAX_TABLES": "4",
        "DELTALAKEDB_MAX_FILES_PER_TABLE": "5",
        "DELTALAKEDB_TIMEOUT_SECS": "1.5",
        "DELTALAKEDB_SQLITE_SYNCHRONOUS": "normal",
        "DELTALAKEDB_SQLITE_BUSY_TIMEOUT_MS": "0",
        "DELTALAKEDB_TARGET_FILE_SIZE": "1048576",
        "DELTALAKEDB_COMMITTER": "nightly job",
    }
    assert _variables() == {name for name in env if name.startswith(PREFIX)}
    assert Config.from_env(env) == Config(
        catalog=parse("deltasql://postgres/me:p%2Fw@h/db/s"),
        warehouse="s3://bucket/tables",
        schema="error",
        retry_attempts=3,
        retry_backoff_ms=5,
        retry_max_backoff_ms=50,
        max_tables=4,
        max_files_per_table=5,
        timeout_secs=1.5,
        sqlite_synchronous="normal",
        sqlite_busy_timeout_ms=0,
        target_file_size=1024**2,
        committer="nightly job",
    )


@pytest.mark.parametrize(
    ("env", "committer"),
    [
        ({"USER": "ann"}, "ann"),
        ({"USERNAME": "ben"}, "ben"),
        ({"USER": "ann", "DELTALAKEDB_COMMITTER": "job"}, "job"),
    ],
)
def test_the_committer_is_the_user_unless_named(env, committer):
    assert Config.from_env(env).committer == committer


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("schema", "create", "one of create_if_missing, error"),
        ("retry_attempts", "0", "a whole number from 1 to 1000"),
        ("retry_backoff_ms", "-1", "a whole number from 0 to 60000"),
        ("max_tables", "0", "a whole number from 1 to 10000"),
        ("max_tables", "many", "a whole number"),
        ("max_tables", "1.5", "a whole number"),
        ("max_files_per_table", "1e9", "a whole number"),
        ("timeout_secs", "0", "a number from 0.001 to 86400"),
        ("timeout_secs", "nan", "a number"),
        ("timeout_secs", "inf", "a number"),
        ("sqlite_synchronous", "off", "one of full, normal"),
        ("sqlite_busy_timeout_ms", "3600001", "a whole number"),
        ("target_file_size", "128MB", "a whole number from 1024"),
        ("committer", "a\nb", "printable text"),
        ("committer", "x" * 201, "printable text"),
        ("retry_max_backoff_ms", "1", "at least retry_backoff_ms, 20"),
        ("catalog", "deltasql://sqlite/l.db?table=T", "a catalog without a table"),
    ],
)
def test_what_is_refused(name, value, allowed):
    with pytest.raises(ConfigError) as caught:
        Config.from_env({PREFIX + name.upper(): value})
    assert PREFIX + name.upper() in str(caught.value)
    assert allowed in str(caught.value)
    assert allowed in caught.value.allowed
    assert caught.value.setting == name


@pytest.mark.parametrize(
    "given",
    [
        {"max_tables": 0},
        {"max_tables": True},
        {"max_tables": "3"},
        {"max_tables": 2.0},
        {"timeout_secs": None},
        {"schema": "maybe"},
        {"committer": ""},
    ],
)
def test_settings_made_by_hand_are_checked_too(given):
    with pytest.raises(ConfigError):
        Config(**given)


def test_a_bad_catalog_is_named_without_its_password():
    with pytest.raises(ConfigError, match=r"DELTALAKEDB_CATALOG: .*too many components") as caught:
        Config.from_env({"DELTALAKEDB_CATALOG": "deltasql://postgres/me:hunter2@h/a/b/c/d"})
    assert "hunter2" not in f"{caught.value} {caught.value.facts}"
    assert isinstance(caught.value.__cause__, UriError)


def test_no_setting_shows_a_password():
    config = Config(catalog=parse("deltasql://postgres/me:hunter2@h/db/s"))
    assert "hunter2" not in f"{config} {config!r}"


def _variables() -> set[str]:
    return {PREFIX + name.upper() for name in Config.__struct_fields__}
