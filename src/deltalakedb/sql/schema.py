"""Bringing a catalog's schema to the version of this build."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from deltalakedb.errors import CatalogError, MigrationError
from deltalakedb.sql import tables as t
from deltalakedb.sql.migrations import MIGRATIONS

if TYPE_CHECKING:
    from deltalakedb.sql.base import Database, Session
    from deltalakedb.sql.ddl import Migration
    from deltalakedb.times import Clock

SUPPORTED: Final = MIGRATIONS[-1].version
_FOUND: Final = "SELECT max(version) FROM dl_schema_migrations"


def ensure(database: Database, mode: Literal["create_if_missing", "error"], clock: Clock) -> None:
    """Make or upgrade the schema, or refuse to. One small read if there is nothing to do.

    Any number of processes may do this at once: each migration and its record are one
    transaction, and who comes later finds it done.

    Raises:
        MigrationError: the schema is newer than this build, or missing or old in mode ``error``.
    """
    found = version(database)
    if found > SUPPORTED:
        raise MigrationError(
            f"{database.uri}: its schema has version {found}, this build of deltalakedb knows"
            f" {SUPPORTED} at most; upgrade deltalakedb",
            catalog=str(database.uri),
            found=found,
            supported=SUPPORTED,
        )
    if found < SUPPORTED and mode == "error":
        what = f"version {found} of its schema, and this build needs {SUPPORTED}"
        raise MigrationError(
            f"{database.uri} has {what if found else 'no schema yet'}; open it once with schema set"
            " to create_if_missing (DELTALAKEDB_SCHEMA)",
            catalog=str(database.uri),
            found=found,
            supported=SUPPORTED,
        )
    for migration in MIGRATIONS[found:]:
        migrate(database, migration, clock)


def version(database: Database) -> int:
    """The version of the catalog's schema, 0 without one."""
    try:
        with database.read() as session:
            return _recorded(session)
    except MigrationError:
        return 0


def _recorded(session: Session) -> int:
    row = session.row(_FOUND)
    return row[0] or 0 if row else 0


def migrate(database: Database, migration: Migration, clock: Clock) -> None:
    """Apply one migration and record it, unless that has happened."""
    try:
        with database.write() as session:
            database.lock_schema(session)
            found = session.row(database.dialect.count_tables, (t.SCHEMA_MIGRATIONS.name,))
            if found != (0,) and _recorded(session) >= migration.version:
                return
            for sql in migration.render(database.dialect):
                session.send(sql)
            row = (migration.version, migration.name, clock())
            session.insert(t.SCHEMA_MIGRATIONS, [row])
    except CatalogError as e:
        if type(e) is not CatalogError:  # locked, full, read-only: nothing the schema can help
            raise
        raise MigrationError(
            f"{database.uri}: migration {migration.version} ({migration.name}) failed and left"
            f" nothing behind: {e.message}",
            catalog=str(database.uri),
            migration=migration.name,
        ) from e
