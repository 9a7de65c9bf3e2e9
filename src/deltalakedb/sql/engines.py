"""From a URI to its database."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from deltalakedb.config import Config
from deltalakedb.errors import MigrationError
from deltalakedb.sql import schema
from deltalakedb.times import Clock, system_clock

if TYPE_CHECKING:
    from deltalakedb.sql.base import Database
    from deltalakedb.uri import DeltaSqlUri


def _sqlite(uri: DeltaSqlUri, config: Config) -> Database:
    from deltalakedb.sql.sqlite import SqliteDatabase

    return SqliteDatabase(uri, config)


def _duckdb(uri: DeltaSqlUri, _: Config) -> Database:
    from deltalakedb.sql.duckdb import DuckDbDatabase

    return DuckDbDatabase(uri)


def _postgres(uri: DeltaSqlUri, _: Config) -> Database:
    from deltalakedb.sql.postgres import PostgresDatabase

    return PostgresDatabase(uri)


_ENGINES: Final = {"sqlite": _sqlite, "duckdb": _duckdb, "postgres": _postgres}


def connect(
    uri: DeltaSqlUri, config: Config | None = None, *, clock: Clock = system_clock
) -> Database:
    """Open a catalog's database and see to its schema, as `Config.schema` says.

    Raises:
        MigrationError: the schema is newer than this build; or missing, and not to be made.
        CatalogError: the database is down, locked, read-only or full.
        ConfigError: the engine's extra is not installed.
    """
    config = config or Config()
    if config.schema == "error" and uri.path and not uri.in_memory and not os.path.exists(uri.path):
        # Opening an embedded database would make the file.
        raise MigrationError(
            f"{uri} does not exist; set schema to create_if_missing (DELTALAKEDB_SCHEMA) to"
            " make it",
            catalog=str(uri),
            found=0,
            supported=schema.SUPPORTED,
        )
    database = unprepared(uri, config)
    try:
        schema.ensure(database, config.schema, clock)
    except BaseException:
        database.close()
        raise
    return database


def unprepared(uri: DeltaSqlUri, config: Config | None = None) -> Database:
    """The database whatever its schema is: for tools that inspect or repair it."""
    return _ENGINES[uri.engine](uri.catalog, config or Config())
