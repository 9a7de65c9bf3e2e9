"""Parse, render and redact ``deltasql://`` URIs.

::

    deltasql://sqlite/rel/path.db?table=T           a double slash starts an absolute path
    deltasql://duckdb/:memory:?table=T
    deltasql://postgres/db/schema?table=T           local server, default user
    deltasql://postgres/user:pass@host:5432/db/schema/table

Every component is percent-decoded. ``${VAR}`` takes the variable's value as it is, so a password
from the environment needs no encoding. A host that starts with ``/`` (``%2Fvar%2Frun``) is the
directory of a Unix socket. Without ``@`` there is no host: ``@host/db/schema`` names one without
naming a user.

Nothing here ever shows a password: not `str`, not `repr`, not an error, however broken the URI.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import quote, unquote

import msgspec

from deltalakedb.errors import UriError

SCHEME: Final = "deltasql://"
CREDENTIALS: Final = "[credentials]"
MEMORY: Final = ":memory:"
FILE_SCHEMES: Final = ("file", "memory", "s3", "s3a", "gs", "az", "azure", "abfs", "abfss", "adl")
"""Schemes of locations whose log lies beside the data. A location without a scheme is a path."""


class Options(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a URI may ask of the connection; None leaves it to the driver.

    Names and units are Postgres's own: `statement_timeout` is in milliseconds, the other
    timeouts are in seconds.
    """

    sslmode: str | None = None
    sslcert: str | None = None
    sslkey: str | None = None
    sslrootcert: str | None = None
    pool_size: int | None = None
    pool_timeout: int | None = None
    connect_timeout: int | None = None
    statement_timeout: int | None = None

    def given(self) -> dict[str, str | int]:
        """The options that were set, by name."""
        return msgspec.to_builtins(self)  # type: ignore[no-any-return]


class _Engine(NamedTuple):
    form: str
    server: bool
    options: tuple[str, ...]


_ENGINES: Final = {
    "sqlite": _Engine("deltasql://sqlite/PATH[?table=NAME]", server=False, options=()),
    "duckdb": _Engine("deltasql://duckdb/PATH[?table=NAME]", server=False, options=()),
    "postgres": _Engine(
        "deltasql://postgres/[[USER[:PASSWORD]]@HOST[:PORT]/]DATABASE/SCHEMA[/TABLE]",
        server=True,
        options=Options.__struct_fields__,
    ),
}
ENGINES: Final = tuple(_ENGINES)

_SSL_MODES: Final = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")
_RANGES: Final = {
    "pool_size": (1, 1_000),
    "pool_timeout": (1, 3_600),
    "connect_timeout": (1, 3_600),
    "statement_timeout": (0, 2**31 - 1),
}
_VARIABLE: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


class DeltaSqlUri(msgspec.Struct, frozen=True, kw_only=True):
    """A catalog, or with `table` one table in it.

    An embedded engine has a `path`; a server has `database` and `schema`, and None for what is
    left to the driver's defaults. Values are decoded; `render` encodes them again.
    """

    engine: str
    path: str = ""
    host: str | None = None
    port: int | None = None
    user: str | None = None
    password: str | None = None
    database: str = ""
    schema: str = ""
    table: str | None = None
    options: Options = Options()

    def __post_init__(self) -> None:
        engine = _engine(self.engine)
        for name, text in self._texts():
            if "\0" in text or not _is_unicode(text):
                raise UriError(f"the {name} has a NUL or is not UTF-8", uri=f"{SCHEME}…")
        required = ("database", "schema") if engine.server else ("path",)
        optional = (name for name in ("host", "user", "table") if getattr(self, name) is not None)
        missing = [name for name in (*required, *optional) if not getattr(self, name)]
        if self.password is not None and self.user is None:
            missing.append("user")
        if missing:
            raise UriError(
                f"the {missing[0]} is missing; expected {engine.form}",
                uri=str(self),
                allowed=engine.form,
            )

    @property
    def catalog(self) -> DeltaSqlUri:
        """The same URI without the table."""
        return msgspec.structs.replace(self, table=None)

    @property
    def in_memory(self) -> bool:
        """Whether the catalog lives and dies with its connection."""
        return self.path == MEMORY

    def with_table(self, name: str) -> DeltaSqlUri:
        """A table of the same catalog."""
        return msgspec.structs.replace(self, table=name)

    def render(self) -> str:
        """The complete URI, **with the password**: `parse(uri.render()) == uri`."""
        user = "" if self.user is None else quote(self.user, safe="")
        password = "" if self.password is None else ":" + quote(self.password, safe="")
        return self._text(user + password)

    def __str__(self) -> str:
        return self._text("" if self.user is None else CREDENTIALS)

    def __repr__(self) -> str:
        return f"DeltaSqlUri({str(self)!r})"

    def conninfo(self) -> dict[str, str | int]:
        """Keyword arguments for libpq; what is not there is left to its defaults.

        Pool options are not libpq's and stay in `options`.
        """
        if not _ENGINES[self.engine].server:
            raise UriError(f"{self.engine} has no server to connect to", uri=str(self))
        parts = {
            "host": self.host,
            "port": self.port,
            "user": self.user,
            "password": self.password,
            "dbname": self.database,
            "connect_timeout": self.options.connect_timeout,
            "sslmode": self.options.sslmode,
            "sslcert": self.options.sslcert,
            "sslkey": self.options.sslkey,
            "sslrootcert": self.options.sslrootcert,
        }
        if self.options.statement_timeout is not None:
            parts["options"] = f"-c statement_timeout={self.options.statement_timeout}"
        return {name: value for name, value in parts.items() if value is not None}

    def _text(self, credentials: str) -> str:
        options: dict[str, Any] = self.options.given()
        if not _ENGINES[self.engine].server:
            place = quote(self.path, safe="/:")
            if self.table is not None:
                options = {"table": self.table, **options}
        else:
            parts = (self.database, self.schema, *(() if self.table is None else (self.table,)))
            place = self._authority(credentials) + "/".join(quote(p, safe="") for p in parts)
        query = "&".join(f"{name}={quote(str(value), safe='')}" for name, value in options.items())
        return f"{SCHEME}{self.engine}/{place}" + (f"?{query}" if query else "")

    def _authority(self, credentials: str) -> str:
        if not credentials and self.host is None and self.port is None:
            return ""
        host = self.host or ""
        ipv6 = re.fullmatch(r"[0-9A-Fa-f.]*:[0-9A-Fa-f:.]*", host)
        host = f"[{host}]" if ipv6 else quote(host, safe="")
        port = "" if self.port is None else f":{self.port}"
        return f"{credentials}@{host}{port}/"

    def _texts(self) -> list[tuple[str, str]]:
        fields = {**msgspec.structs.asdict(self), **self.options.given()}
        return [(name, value) for name, value in fields.items() if isinstance(value, str)]


def is_deltasql(location: str) -> bool:
    """Whether a location is a ``deltasql://`` URI (and not a path or an object-store URL).

    A scheme that is neither is an error: guessing would turn a typing mistake into a file.
    """
    if location[:9].lower() == "deltasql:":
        return True
    scheme = _scheme(location)
    if not location or (scheme and scheme not in FILE_SCHEMES):
        allowed = ("deltasql", *FILE_SCHEMES)
        what = f"{scheme}:// is no scheme of a table" if scheme else "the location is empty"
        raise UriError(
            f"{what}; allowed: a path, or one of {', '.join(allowed)}",
            uri=f"{scheme}://…",
            allowed=allowed,
        )
    return False


def parse(text: str, env: Mapping[str, str] | None = None) -> DeltaSqlUri:
    """Read a ``deltasql://`` URI, with ``${VAR}`` taken from `env` (the process's by default).

    Raises:
        UriError: saying what is wrong and what is allowed, without the credentials.
    """
    if text[: len(SCHEME)].lower() != SCHEME:
        scheme = _scheme(text)
        raise UriError(
            f"a catalog is named by a {SCHEME} URI" + (f", not {scheme}://" if scheme else ""),
            uri=f"{scheme}://…" if scheme else "…",
            allowed=[engine.form for engine in _ENGINES.values()],
        )
    return _Parser(text, os.environ if env is None else env).parse()


def redact(text: str) -> str:
    """The text with credentials scrubbed out of URLs, connection strings and key-value pairs.

    Meant for text of others (a driver's message): where it cannot tell how far a secret goes, it
    takes more rather than less.
    """
    text = _URL_SECRET.sub(rf"\g<1>{CREDENTIALS}@", text)
    return _NAMED_SECRET.sub(rf"\g<1>{CREDENTIALS}", text)


# Up to the last @ of the word: an unencoded secret may itself hold an @ or a slash.
_URL_SECRET: Final = re.compile(r"(deltasql://postgres/|://(?=[^\s/@:]*:))\S*@", re.IGNORECASE)
_NAMED_SECRET: Final = re.compile(
    r"""(
        (?:passw(?:or)?d|pwd|secret|signature|[?&]sig|(?:account|access)[_-]?key|[_-]token)[\w-]*
        ["']?\s*[=:]\s*
    )(?!\[credentials\])(?:
        '(?:[^'\\]|\\.)*(?:'|\Z)
      | "(?:[^"\\]|\\.)*(?:"|\Z)
      | (?:\\.|\S)+
    )""",
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)


class _Parser:
    """One URI on its way to components. `shown` is what errors may repeat of it."""

    def __init__(self, text: str, env: Mapping[str, str]) -> None:
        self.env = env
        self.form = f"{SCHEME}ENGINE/… with an engine of {', '.join(ENGINES)}"
        head, _, rest = text[len(SCHEME) :].partition("/")
        self.shown = _shown(head, rest)
        self._check_escapes(text)
        if "@" in head or ":" in head:
            raise self._error("the engine comes first")
        self.name = self._decode(head)
        self.engine = _engine(self.name)
        self.form = self.engine.form
        self.place, _, self.query = rest.partition("?")

    def parse(self) -> DeltaSqlUri:
        fields = self._server() if self.engine.server else {"path": self._decode(self.place)}
        given = self._options()
        table = given.pop("table", None)
        if table is not None:
            if "table" in fields:
                raise self._error("the table is given twice, in the path and as ?table=")
            fields["table"] = table
        return DeltaSqlUri(engine=self.name, options=Options(**given), **fields)

    def _server(self) -> dict[str, Any]:
        first, *others = self.place.split("/")
        if any("@" in part for part in (*others, self.query)):
            raise self._error("'/', '?' and '@' inside a component are written %2F, %3F and %40")
        userinfo, at, address = first.rpartition("@")
        names = others if at else [first, *others]
        if any(":" in part for part in names):
            raise self._error("a host has an '@' before it and ':' in a name is written %3A")
        if len(names) > 3:
            raise self._error("there are too many components")
        fields = self._authority(userinfo, address) if at else {}
        for name, part in zip(("database", "schema", "table"), names, strict=False):
            fields[name] = self._decode(part)
        return fields

    def _authority(self, userinfo: str, address: str) -> dict[str, Any]:
        if userinfo == CREDENTIALS:
            raise self._error("this URI is redacted; put the credentials back")
        fields: dict[str, Any] = {}
        user, colon, password = userinfo.partition(":")
        if userinfo:
            fields["user"] = self._decode(user)
        if colon:
            fields["password"] = self._decode(password)
        match = re.fullmatch(r"(?:\[([^\]]*)\]|([^:\[\]]*))(?::([^:]*))?", address)
        if match is None:
            raise self._error("the host is not understood; IPv6 addresses stand in [brackets]")
        ipv6, host, port = match.groups()
        if host := self._decode(ipv6 or host or ""):
            fields["host"] = host
        if port is not None:
            fields["port"] = self._number("port", self._decode(port), 1, 65_535)
        return fields

    def _options(self) -> dict[str, Any]:
        allowed = ("table", *self.engine.options)
        given: dict[str, Any] = {}
        for piece in filter(None, self.query.split("&")):
            name, _, text = piece.partition("=")
            if name not in allowed:
                what = f"{name!r} is" if name.isidentifier() else "that is"
                names = ", ".join(allowed)
                raise self._error(f"{what} no option of {self.name}; allowed: {names}", allowed)
            if name in given:
                raise self._error(f"option {name} is given twice")
            given[name] = self._option(name, self._decode(text))
        return given

    def _option(self, name: str, value: str) -> str | int:
        if name in _RANGES:
            return self._number(name, value, *_RANGES[name])
        if name == "sslmode" and value not in _SSL_MODES:
            raise self._error(f"sslmode must be one of {', '.join(_SSL_MODES)}", _SSL_MODES)
        if not value:
            raise self._error(f"option {name} is empty")
        return value

    def _number(self, name: str, value: str, low: int, high: int) -> int:
        if not re.fullmatch(r"[0-9]{1,10}", value) or not low <= int(value) <= high:
            allowed = f"{low} to {high}"
            raise self._error(f"{name} must be a whole number from {allowed}", allowed)
        return int(value)

    def _check_escapes(self, text: str) -> None:
        if re.search(r"%(?![0-9A-Fa-f]{2})", text):
            raise self._error("a '%' that starts no escape is written %25")
        if "${" in _VARIABLE.sub("_", text):
            raise self._error("a variable is written ${NAME}, and a literal '$' %24")

    def _decode(self, part: str) -> str:
        """Percent-decode the literal pieces and put variables between them, as they are."""
        pieces = _VARIABLE.split(part)  # every second one is a name
        for name in pieces[1::2]:
            if name not in self.env:
                raise self._error(f"the environment has no variable {name}", variable=name)
        pieces[::2] = [unquote(literal, errors="surrogateescape") for literal in pieces[::2]]
        pieces[1::2] = [self.env[name] for name in pieces[1::2]]
        return "".join(pieces)

    def _error(self, problem: str, allowed: Any = None, **facts: Any) -> UriError:
        hint = "" if allowed else f"; expected {self.form}"
        return UriError(
            f"{self.shown}: {problem}{hint}", uri=self.shown, allowed=allowed or self.form, **facts
        )


def _shown(head: str, rest: str) -> str:
    """What an error may repeat: no query, and nothing before the last @ of a server's URI."""
    engine = _ENGINES.get(head)
    if engine is not None and not engine.server:
        return f"{SCHEME}{head}/{rest.partition('?')[0]}"
    head = head if re.fullmatch(r"\w+", head) else CREDENTIALS
    _, at, tail = rest.rpartition("@")
    tail = tail.partition("?")[0]
    if at:
        return f"{SCHEME}{head}/{CREDENTIALS}@{tail}"
    return f"{SCHEME}{head}/{CREDENTIALS if ':' in tail else tail}"


def _engine(name: str) -> _Engine:
    if name not in _ENGINES:
        shown = repr(name) if re.fullmatch(r"\w*", name) else "that"
        problem = f"{shown} is no engine; allowed: {', '.join(ENGINES)}"
        raise UriError(problem, uri=f"{SCHEME}…", allowed=ENGINES)
    return _ENGINES[name]


def _scheme(text: str) -> str:
    match = re.match(r"([A-Za-z][A-Za-z0-9+.-]*)://", text)
    return match[1].lower() if match else ""


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
