"""URIs: every form, every refusal, and no secret in anything they print."""

from __future__ import annotations

import pickle
import traceback

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from deltalakedb import uri as module
from deltalakedb.errors import TxnLogError, UriError
from deltalakedb.uri import ENGINES, DeltaSqlUri, Options, is_deltasql, parse, redact


def sqlite(path: str, table: str | None = None) -> DeltaSqlUri:
    return DeltaSqlUri(engine="sqlite", path=path, table=table)


def duckdb(path: str, table: str | None = None) -> DeltaSqlUri:
    return DeltaSqlUri(engine="duckdb", path=path, table=table)


def postgres(**fields: object) -> DeltaSqlUri:
    return DeltaSqlUri(engine="postgres", **{"database": "db", "schema": "s", **fields})


class TestForms:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("deltasql://sqlite/lake.db", sqlite("lake.db")),
            ("deltasql://sqlite/rel/path.db", sqlite("rel/path.db")),
            ("deltasql://sqlite//abs/path.db?table=T", sqlite("/abs/path.db", "T")),
            ("deltasql://sqlite/:memory:", sqlite(":memory:")),
            ("deltasql://sqlite/lake.db?", sqlite("lake.db")),
            ("DeltaSQL://sqlite/lake.db", sqlite("lake.db")),
            ("deltasql://sqlite/a@b:c.db", sqlite("a@b:c.db")),
            ("deltasql://duckdb/:memory:?table=T", duckdb(":memory:", "T")),
            ("deltasql://duckdb/../lake.duckdb", duckdb("../lake.duckdb")),
            ("deltasql://postgres/db/s", postgres()),
            ("deltasql://postgres/db/s?table=T", postgres(table="T")),
            ("deltasql://postgres/db/s/T", postgres(table="T")),
            ("deltasql://postgres/me@host/db/s", postgres(user="me", host="host")),
            ("deltasql://postgres/@host/db/s", postgres(host="host")),
            ("deltasql://postgres/me@/db/s", postgres(user="me")),
            ("deltasql://postgres/me:@host/db/s", postgres(user="me", password="", host="host")),
            ("deltasql://postgres/@[::1]:5433/db/s", postgres(host="::1", port=5433)),
            (
                "deltasql://postgres/user:pass@host:5432/db/s/table",
                postgres(user="user", password="pass", host="host", port=5432, table="table"),
            ),
            (
                "deltasql://postgres/user@%2Ftmp%2Fsock/db/s",
                postgres(user="user", host="/tmp/sock"),
            ),
            (
                "deltasql://postgres/u:p@ss:word@host/db/s",
                postgres(user="u", password="p@ss:word", host="host"),
            ),
        ],
    )  # fmt: skip
    def test_parses_and_comes_back(self, text, expected):
        assert parse(text) == expected
        assert parse(expected.render()) == expected

    def test_every_component_is_percent_decoded(self):
        found = parse("deltasql://postgres/%C3%A9:%2F%3F%40%25@h%6Fst:5%34/d%2Fb/%22s%22/t%3Fb")
        assert found == postgres(
            user="é",
            password="/?@%",
            host="host",
            port=54,
            database="d/b",
            schema='"s"',
            table="t?b",
        )
        assert parse("deltasql://sqlite/my%20lake.db?table=a%26b") == sqlite("my lake.db", "a&b")

    def test_a_plus_is_a_plus(self):
        assert parse("deltasql://sqlite/a+b.db?table=c+d") == sqlite("a+b.db", "c+d")

    def test_options(self):
        found = parse(
            "deltasql://postgres/db/s?sslmode=verify-full&sslcert=/c.pem&sslkey=/k.pem"
            "&sslrootcert=/r.pem&pool_size=4&pool_timeout=5&connect_timeout=6&statement_timeout=700"
            "&table=T"
        )
        assert found.table == "T"
        assert found.options == Options(
            sslmode="verify-full",
            sslcert="/c.pem",
            sslkey="/k.pem",
            sslrootcert="/r.pem",
            pool_size=4,
            pool_timeout=5,
            connect_timeout=6,
            statement_timeout=700,
        )
        assert parse(found.render()) == found

    def test_catalog_and_table(self):
        found = parse("deltasql://postgres/u:p@h/db/s/T")
        assert found.catalog == parse("deltasql://postgres/u:p@h/db/s")
        assert found.catalog.with_table("T") == found
        assert len({found, found.catalog, parse(found.render())}) == 2

    def test_in_memory(self):
        assert parse("deltasql://sqlite/:memory:").in_memory
        assert not parse("deltasql://sqlite/memory.db").in_memory
        assert not postgres(database=":memory:").in_memory

    def test_survives_pickling(self):
        found = parse("deltasql://postgres/u:p@h/db/s/T")
        assert pickle.loads(pickle.dumps(found)) == found


class TestConninfo:
    def test_only_what_is_given(self):
        assert parse("deltasql://postgres/db/s").conninfo() == {"dbname": "db"}

    def test_everything(self):
        found = parse(
            "deltasql://postgres/u:p@%2Frun:5433/db/s"
            "?sslmode=require&connect_timeout=3&statement_timeout=900&pool_size=2"
        )
        assert found.conninfo() == {
            "host": "/run",
            "port": 5433,
            "user": "u",
            "password": "p",
            "dbname": "db",
            "connect_timeout": 3,
            "sslmode": "require",
            "options": "-c statement_timeout=900",
        }

    def test_embedded_engines_have_none(self):
        with pytest.raises(UriError, match="sqlite has no server"):
            sqlite("a.db").conninfo()


class TestVariables:
    def test_are_taken_as_they_are(self):
        env = {"USER_": "me", "PW": "p/@?%41${USER_}", "PORT": "5433", "T": "a b"}
        found = parse("deltasql://postgres/${USER_}:x${PW}%21@h:${PORT}/db/s?table=${T}", env)
        assert found == postgres(
            user="me", password="xp/@?%41${USER_}!", host="h", port=5433, table="a b"
        )

    def test_may_hold_the_root_of_a_path(self):
        assert parse("deltasql://sqlite/${HOME}/l.db", {"HOME": "/home/me"}) == sqlite(
            "/home/me/l.db"
        )

    def test_come_from_the_process_by_default(self, monkeypatch):
        monkeypatch.setenv("DELTALAKEDB_TEST_TABLE", "sales")
        assert parse("deltasql://sqlite/l.db?table=${DELTALAKEDB_TEST_TABLE}").table == "sales"

    def test_an_encoded_dollar_is_a_dollar(self):
        assert parse("deltasql://sqlite/%24%7BHOME%7D", {}) == sqlite("${HOME}")
        assert parse("deltasql://sqlite/$HOME", {}) == sqlite("$HOME")
        assert parse("deltasql://sqlite/$${A}{", {"A": "a"}) == sqlite("$a{")

    def test_a_missing_one_is_named(self):
        with pytest.raises(UriError, match="no variable NOT_THERE") as caught:
            parse("deltasql://postgres/me:${NOT_THERE}@h/db/s", {})
        assert caught.value.variable == "NOT_THERE"

    @pytest.mark.parametrize("bad", ["${", "${}", "${A-B}", "${A:-b}", "${1A}"])
    def test_a_malformed_one_is_refused(self, bad):
        with pytest.raises(UriError, match=r"a variable is written \$\{NAME\}"):
            parse(f"deltasql://sqlite/{bad}", {"A": "a"})

    def test_an_empty_one_is_a_missing_component(self):
        with pytest.raises(UriError, match="the schema is missing"):
            parse("deltasql://postgres/db/${S}", {"S": ""})


class TestRefusals:
    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("", "a catalog is named by a deltasql:// URI"),
            ("lake.db", "a catalog is named by a deltasql:// URI"),
            ("s3://bucket/table", "not s3://"),
            ("deltasql:sqlite/lake.db", "a catalog is named by a deltasql:// URI"),
            ("deltasql://", "'' is no engine; allowed: sqlite, duckdb, postgres"),
            ("deltasql://mysql/db", "'mysql' is no engine; allowed: sqlite, duckdb, postgres"),
            ("deltasql://SQLite/lake.db", "'SQLite' is no engine"),
            ("deltasql://host:5432/db/s", "the engine comes first"),
            ("deltasql://sqlite", "the path is missing; expected deltasql://sqlite/PATH"),
            ("deltasql://sqlite/", "the path is missing"),
            ("deltasql://sqlite/?table=T", "the path is missing"),
            ("deltasql://duckdb/", "the path is missing; expected deltasql://duckdb/PATH"),
            ("deltasql://sqlite/l.db?table=", "option table is empty"),
            ("deltasql://sqlite/l.db?table", "option table is empty"),
            ("deltasql://sqlite/l.db?table=a&table=b", "option table is given twice"),
            ("deltasql://sqlite/l.db?mode=ro", "'mode' is no option of sqlite; allowed: table"),
            ("deltasql://sqlite/l.db?sslmode=require", "'sslmode' is no option of sqlite"),
            ("deltasql://sqlite/l.db?a%20b=1", "that is no option of sqlite"),
            ("deltasql://sqlite/100%.db", "'%' that starts no escape is written %25"),
            ("deltasql://sqlite/%ff.db", "the path has a NUL or is not UTF-8"),
            ("deltasql://sqlite/a%00b.db", "the path has a NUL or is not UTF-8"),
            ("deltasql://postgres", "the database is missing"),
            ("deltasql://postgres/", "the database is missing"),
            ("deltasql://postgres/db", "the schema is missing"),
            ("deltasql://postgres/u:p@h", "the database is missing"),
            ("deltasql://postgres/u:p@h/db", "the schema is missing"),
            ("deltasql://postgres/db//T", "the schema is missing"),
            ("deltasql://postgres/db/s/", "the table is missing"),
            ("deltasql://postgres/db/s/t/u", "too many components"),
            ("deltasql://postgres/db/s/t?table=t", "the table is given twice"),
            ("deltasql://postgres/localhost:5432/db/s", "a host has an '@' before it"),
            ("deltasql://postgres/:p@h/db/s", "the user is missing"),
            ("deltasql://postgres/@h:0/db/s", "port must be a whole number from 1 to 65535"),
            ("deltasql://postgres/@h:70000/db/s", "port must be"),
            ("deltasql://postgres/@h:x/db/s", "port must be"),
            ("deltasql://postgres/@h:/db/s", "port must be"),
            ("deltasql://postgres/@::1/db/s", "IPv6 addresses stand in"),
            ("deltasql://postgres/[credentials]@h/db/s", "this URI is redacted"),
            ("deltasql://postgres/db/s?sslmode=on", "sslmode must be one of disable, allow"),
            ("deltasql://postgres/db/s?sslcert=", "option sslcert is empty"),
            ("deltasql://postgres/db/s?pool_size=0", "pool_size must be a whole number from 1 to"),
            ("deltasql://postgres/db/s?pool_size=-1", "pool_size must be"),
            ("deltasql://postgres/db/s?pool_size=1.5", "pool_size must be"),
            ("deltasql://postgres/db/s?pool_timeout=soon", "pool_timeout must be"),
            ("deltasql://postgres/db/s?connect_timeout=", "connect_timeout must be"),
            ("deltasql://postgres/db/s?statement_timeout=99999999999", "statement_timeout must be"),
            ("deltasql://postgres/db/s?pool_size=1&pool_size=1", "option pool_size is given twice"),
            ("deltasql://postgres/db/s?application=x", "allowed: table, sslmode, sslcert, sslkey"),
        ],
    )
    def test_say_what_is_wrong_and_allowed(self, text, message):
        with pytest.raises(UriError) as caught:
            parse(text, {})
        assert message in str(caught.value)
        assert isinstance(caught.value, TxnLogError)
        assert caught.value.uri

    def test_carry_their_facts(self):
        with pytest.raises(UriError) as caught:
            parse("deltasql://oracle/x")
        assert caught.value.allowed == ENGINES
        with pytest.raises(UriError) as caught:
            parse("deltasql://postgres/u:p@h/db/s?sslmode=on")
        assert caught.value.uri == "deltasql://postgres/[credentials]@h/db/s"
        assert "require" in caught.value.allowed

    @pytest.mark.parametrize(
        "fields",
        [
            {"host": ""},
            {"user": ""},
            {"password": "p"},
            {"table": ""},
            {"database": ""},
            {"schema": ""},
            {"table": "a\0b"},
            {"user": "\ud800"},
        ],
    )
    def test_a_value_made_by_hand_is_checked_too(self, fields):
        with pytest.raises(UriError):
            postgres(**fields)


class TestLocations:
    @pytest.mark.parametrize("text", ["deltasql://sqlite/l.db", "DELTASQL://x", "deltasql:x"])
    def test_ours(self, text):
        assert is_deltasql(text)

    @pytest.mark.parametrize(
        "text",
        [
            "table", "/abs/table", "./rel", "C:\\lake\\table", "C:/lake", "deltasql", "a b/c:d",
            "file:///abs/table", "s3://b/t", "s3a://b/t", "gs://b/t", "az://c/t", "memory:///t",
            "abfss://container@account.dfs.core.windows.net/t", "ABFSS://c@a/t",
        ],
    )  # fmt: skip
    def test_file_backed(self, text):
        assert not is_deltasql(text)

    @pytest.mark.parametrize(
        "text", ["", "postgresql://u:hunter2@h/db", "https://h/t", "sqlite://x"]
    )
    def test_neither(self, text):
        with pytest.raises(UriError, match="deltasql, file, memory, s3") as caught:
            is_deltasql(text)
        assert "hunter2" not in f"{caught.value} {caught.value.facts}"


class TestShown:
    @pytest.mark.parametrize(
        ("text", "shown"),
        [
            (
                "deltasql://postgres/user:pass@host:5432/db/schema/table",
                "deltasql://postgres/[credentials]@host:5432/db/schema/table",
            ),
            ("deltasql://postgres/me@h/db/s", "deltasql://postgres/[credentials]@h/db/s"),
            ("deltasql://postgres/@h/db/s?table=T", "deltasql://postgres/@h/db/s/T"),
            ("deltasql://postgres/db/s?table=T", "deltasql://postgres/db/s/T"),
            ("deltasql://postgres/@[::1]/db/s", "deltasql://postgres/@[::1]/db/s"),
            ("deltasql://postgres/@%2Frun/db/s", "deltasql://postgres/@%2Frun/db/s"),
            ("deltasql://sqlite//a/l.db?table=T", "deltasql://sqlite//a/l.db?table=T"),
        ],
    )
    def test_str_and_repr(self, text, shown):
        assert str(parse(text)) == shown
        assert repr(parse(text)) == f"DeltaSqlUri({shown!r})"
        assert f"{parse(text)}" == shown


class TestRedact:
    @pytest.mark.parametrize(
        "text",
        [
            "could not connect to postgresql://me:hunter2@host:5432/db",
            "postgresql://me:hunter2@host/db, then s3://b/x@y",
            "postgres://me:a/b?c#hunter2@host",
            "postgres://me:a@hunter2@host",
            "redis://:hunter2@host",
            "deltasql://postgres/me:hunter2@host/db/s",
            "DELTASQL://postgres/hunter2@host/db/s",
            "deltasql://postgres/me:a/hunter2@host/db/s",
            "host=h password=hunter2 user=me",
            "host=h password = 'a \\' hunter2 b' user=me",
            "host=h password='a hunter2",
            "host=h password=a\\ hunter2 user=me",
            "PGPASSWORD=hunter2 psql",
            "postgresql://h/db?user=me&password=hunter2",
            "{'user': 'me', 'password': 'hunter2'}",
            '{"sslpassword": "hunter2"}',
            "passwd=hunter2",
            "pwd: hunter2",
            "aws_secret_access_key=hunter2",
            "AZURE_STORAGE_ACCOUNT_KEY=hunter2",
            "aws_session_token='hunter2'",
            "https://a.blob.core.windows.net/c/f?sv=1&sig=hunter2",
            "X-Amz-Signature=hunter2",
        ],
    )
    def test_scrubs(self, text):
        assert "hunter2" not in redact(text)
        assert "[credentials]" in redact(text)
        assert redact(redact(text)) == redact(text)

    @pytest.mark.parametrize(
        "text",
        [
            "",
            'FATAL: password authentication failed for user "me"',
            "relation dl_tables does not exist",
            "abfss://container@account.dfs.core.windows.net/t not found",
            "s3://bucket/path and someone@example.org",
            "deltasql://sqlite//home/me/lake.db is locked",
            "postgresql://host:5432/db",
            "syntax error at token: SELECT",
        ],
    )
    def test_leaves_the_rest(self, text):
        assert redact(text) == text

    def test_is_quick_on_long_text(self):
        redact("a-" * 500_000 + "://" * 1_000 + "x" * 500_000)


NAME = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1)
OPTIONAL = st.none() | NAME
PORTS = st.none() | st.integers(1, 65_535)
OPTIONS = st.builds(
    Options,
    sslmode=st.none() | st.sampled_from(module._SSL_MODES),
    sslcert=OPTIONAL,
    sslrootcert=OPTIONAL,
    pool_size=st.none() | st.integers(1, 1_000),
    pool_timeout=st.none() | st.integers(1, 3_600),
    connect_timeout=st.none() | st.integers(1, 3_600),
    statement_timeout=st.none() | st.integers(0, 2**31 - 1),
)
EMBEDDED = st.builds(
    DeltaSqlUri, engine=st.sampled_from(["sqlite", "duckdb"]), path=NAME, table=OPTIONAL
)
LOGINS = st.just({}) | st.fixed_dictionaries(
    {"user": NAME}, optional={"password": st.just("") | NAME}
)
SERVERS = st.builds(
    lambda login, **fields: DeltaSqlUri(engine="postgres", **login, **fields),
    LOGINS,
    host=OPTIONAL,
    port=PORTS,
    database=NAME,
    schema=NAME,
    table=OPTIONAL,
    options=OPTIONS,
)
SECRET = "Hunter2Secret"
AROUND = st.text(max_size=6) | st.text("@:/?#%&=[]$ \\'\"+;,", max_size=6)


@given(EMBEDDED | SERVERS)
def test_rendering_and_parsing_is_the_identity(found):
    assert parse(found.render(), {}) == found


@given(SERVERS, AROUND, AROUND)
def test_a_password_shows_nowhere(found, before, after):
    assume("\0" not in before + after)
    found = postgres(
        user="me", password=before + SECRET + after, host=found.host, table=found.table
    )
    for text in (str(found), repr(found), f"{found}", redact(found.render())):
        assert SECRET not in text


@given(
    st.sampled_from(["postgres/", "", "mysql/", "Postgres/", "sqlite:", "postgres"]),
    AROUND,
    AROUND,
    st.sampled_from(["/db/s/t", "/db", "", "/db/s?x=1", "/db/s?sslmode=1", "/db/s/t/u", "/a:b/c"]),
)
@example("postgres/", "a/b", "", "/db/s")
@example("postgres/", "a?b=", "", "/db/s")
@example("postgres/", "%", "", "/db/s")
@example("postgres/", "${", "", "/db/s")
@example("postgres/", "@/", "", "/db/s")
def test_a_password_put_in_raw_shows_in_no_error(engine, before, after, rest):
    """Whatever the user forgot to encode, and whatever else is wrong with the URI."""
    assume("${" not in before or not after.startswith("}"))  # a variable of that name: named
    text = f"deltasql://{engine}me:{before}{SECRET}{after}@host{rest}"
    try:
        shown = str(parse(text, {}))
    except UriError as e:
        shown = f"{e} {e!r} {e.facts} {''.join(traceback.format_exception(e))}"
    assert SECRET not in shown


@pytest.mark.parametrize(
    "text",
    [
        f"deltasql://postgres/me:{SECRET}/db/s",
        f"deltasql://postgres/db/s?password={SECRET}",
        f"deltasql://postgres/db/s?pasword={SECRET}",
        f"deltasql://postgres/db/s?sslmode={SECRET}",
        f"deltasql://me:{SECRET}@host/db/s",
        f"deltasql://me:{SECRET}",
        f"postgresql://me:{SECRET}@host/db",
        f"host=h password={SECRET}",
        f"deltasql://postgres/me:%{SECRET}@h/db/s",
    ],
)
def test_a_password_in_the_wrong_place_shows_in_no_error(text):
    with pytest.raises(UriError) as caught:
        parse(text, {})
    assert SECRET not in f"{caught.value} {caught.value.facts}"


def test_a_password_from_the_environment_shows_in_no_error():
    for uri in ("db/s?sslmode=on", "db", "db/s/t/u", "db/s?x=1"):
        with pytest.raises(UriError) as caught:
            parse(f"deltasql://postgres/me:${{PW}}@h/{uri}", {"PW": SECRET})
        assert SECRET not in f"{caught.value} {caught.value.facts}"
