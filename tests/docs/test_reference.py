"""Lists in the reference are the code's own: neither may change without the other."""

from __future__ import annotations

import dataclasses
import datetime as dt
import inspect
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import deltalakedb as dl
from deltalakedb import config, errors, uri
from deltalakedb.model import expr_sql
from deltalakedb.model.expr_functions import FUNCTIONS
from deltalakedb.model.protocol import FEATURES, Feature
from deltalakedb.sql import tables as sql_tables
from deltalakedb.sql.ddl import CreateTable
from deltalakedb.sql.migrations import MIGRATIONS
from deltalakedb.table.alter import Alter
from deltalakedb.table.properties import KNOWN
from docs.pages import DOCS, REPOSITORY, code, section, tables

REFERENCE = DOCS / "reference"


def page(name: str) -> str:
    return (REFERENCE / f"{name}.md").read_text()


# --- settings and URIs ----------------------------------------------------------------------------


def test_settings() -> None:
    defaults = dl.Config()
    shown = {"catalog": str(defaults.catalog), "warehouse": None}
    expected = [
        [name, config.PREFIX + name.upper(), shown.get(name, str(getattr(defaults, name)))]
        for name in dl.Config.__struct_fields__
    ]
    (found,) = tables(page("configuration"))
    assert [[(code(cell) or [None])[0] for cell in row[:3]] for row in found] == expected
    for name, _, _, allowed in found:
        rule = config._RULES.get(code(name)[0])
        assert rule is None or allowed == rule.allowed
    for name in dl.Config.__struct_fields__:
        assert f"`{name}`" in page("configuration").split("\n- ", 1)[1], f"{name} is not explained"


def test_every_variable_is_told() -> None:
    source = "".join(p.read_text() for p in (REPOSITORY / "src").rglob("*.py"))
    for variable in set(re.findall(r"DELTALAKEDB_[A-Z_]+[A-Z]", source)):
        assert f"`{variable}`" in page("configuration"), variable


def test_uri_options_and_schemes() -> None:
    (options,) = tables(section(page("uris"), "Options"))
    assert [code(name)[0] for name, *_ in options] == list(uri.Options.__struct_fields__)
    for name, _, allowed in options:
        if code(name)[0] in uri._RANGES:
            assert allowed == "{} to {}".format(*uri._RANGES[code(name)[0]])
    for engine in uri._ENGINES.values():
        assert engine.form in page("uris")
    assert set(uri.FILE_SCHEMES) <= set(code(section(page("uris"), "Locations")))


def test_uri_examples() -> None:
    examples = next(tables(page("uris")))
    for cell, _ in examples:
        parsed = uri.parse(code(cell)[0], {"PGPASSWORD": "secret"})
        assert uri.parse(parsed.render()) == parsed


# --- errors ---------------------------------------------------------------------------------------

ERRORS = {
    name: kind
    for name, kind in vars(errors).items()
    if isinstance(kind, type) and issubclass(kind, errors.TxnLogError)
}


def test_error_tree() -> None:
    drawn = re.search(r"^```text\n(.*?)^```", page("errors"), re.MULTILINE | re.DOTALL)
    assert drawn
    path: list[str] = []
    found = {}
    for line in drawn[1].splitlines():
        name = re.sub(r"\W", "", line)
        path[(len(line) - len(name)) // 4 :] = [name]
        found[name] = path[-2] if len(path) > 1 else "Exception"
    assert found == {name: kind.__bases__[0].__name__ for name, kind in ERRORS.items()}


def test_error_attributes() -> None:
    listed = {
        code(name)[0]: code(attributes)
        for table in tables(page("errors"))
        for name, attributes, _ in table
    }
    reserved = section(page("errors"), "Reserved")
    for name, attributes in re.findall(r"`(\w+)`\s\(([^)]*)\)", reserved):
        listed[name] = code(attributes)
    told = {name: re.findall(r"``(\w+)``", kind.__doc__ or "") for name, kind in ERRORS.items()}
    assert listed == {name: facts for name, facts in told.items() if name != "TxnLogError"}


# --- the database ---------------------------------------------------------------------------------


def test_database_tables() -> None:
    found = re.findall(r"^### (dl_\w+)$", page("schema"), re.MULTILINE)
    assert sorted(found) == sorted(table.name for table in sql_tables.ALL)
    assert len(set(found)) == len(found)


@pytest.mark.parametrize("table", sql_tables.ALL, ids=lambda table: table.name)
def test_database_columns(table: Any) -> None:
    text = section(page("schema"), table.name)
    (rows,) = tables(text)
    assert [(code(name)[0], kind) for name, kind, _ in rows] == [
        (column.name, column.type) for column in table.columns
    ]
    (made,) = (
        step
        for migration in MIGRATIONS
        for step in migration.steps
        if isinstance(step, CreateTable) and step.name == table.name
    )
    keys = re.findall(r"(?:Key:|Unique:| and) `([^`]+)`", text.split("\n|")[0])
    assert keys == [made.key, *made.unique]


# --- properties, features, functions --------------------------------------------------------------


def test_properties() -> None:
    found = {code(row[0])[0]: row[1] for table in tables(page("properties")) for row in table}
    assert found == {name: allowed for name, (_, allowed) in KNOWN.items()}


def test_features() -> None:
    def row(feature: Feature) -> list[str]:
        writes = "yes" if feature.writes else "unless used" if feature.if_used else "no"
        reader = str(feature.reader or "-")
        shown = (feature.meaning, reader, str(feature.writer), feature.reads, writes)
        return [f"`{feature.name}`", *shown]

    final, previews = tables(page("features"))
    assert final == [row(f) for f in FEATURES.values() if f.stands_for is None]
    assert previews == [
        [f"`{f.name}`", f"`{f.stands_for}`"] for f in FEATURES.values() if f.stands_for
    ]


def test_functions() -> None:
    functions, aliases = tables(section(page("expressions"), "Functions"))
    assert sorted(code(name)[0] for name, *_ in functions) == sorted(FUNCTIONS)
    assert {code(a)[0]: code(b)[0] for a, b in aliases} == expr_sql._NAMES


def test_examples_of_functions_are_true(tmp_path: Path) -> None:
    at = dt.datetime(2026, 5, 17, 13, 45, 30, tzinfo=dt.UTC)
    row = {"n": [-7], "x": [2.5], "s": [" Ab c"], "d": [at.date()], "at": [at]}
    data = pa.table({**row, "z": pa.array([None], pa.int64())})
    with dl.Catalog(uri.DeltaSqlUri(engine="sqlite", path=str(tmp_path / "lake.db"))) as catalog:
        with catalog.begin() as tx:
            tx.write("t", data)
        table = catalog.table("t")
        functions, _ = tables(section(page("expressions"), "Functions"))
        for name, example, _ in functions:
            text = code(example)[0]
            assert code(name)[0].replace("negative", "-") in text
            assert table.count(text) == 1, text


# --- Python ---------------------------------------------------------------------------------------


def test_public_names() -> None:
    text = page("python-api")
    for name in dl.__all__:
        assert re.search(rf"`{name}[`(]", text) or f"## {name}" in text, name


METHODS = {
    "Functions": None,
    "Catalog": dl.Catalog,
    "DeltaTable": dl.DeltaTable,
    "DeltaTable.alter": Alter,
    "Transaction": dl.Transaction,
}


@pytest.mark.parametrize("title", METHODS)
def test_signatures(title: str) -> None:
    owner = METHODS[title]
    (rows,) = tables(section(page("python-api"), title))
    for cell, _ in rows:
        call = code(cell)[0]
        name = call.partition("(")[0]
        signature = inspect.signature(getattr(owner or dl, name))
        assert call == f"{name}({_shown(signature)})"


def _shown(signature: inspect.Signature) -> str:
    """The names of the parameters, with a star before those that are given by name."""
    found: list[str] = []
    for name, parameter in signature.parameters.items():
        if parameter.kind is parameter.KEYWORD_ONLY and "*" not in found:
            found.append("*")
        if name != "self":
            found.append(f"**{name}" if parameter.kind is parameter.VAR_KEYWORD else name)
    return ", ".join(found)


@pytest.mark.parametrize("title", [title for title, owner in METHODS.items() if owner])
def test_no_method_is_forgotten(title: str) -> None:
    owner = METHODS[title]
    assert owner is not None
    rest = section(page("python-api"), "Below the verbs")
    text = section(page("python-api"), title)
    for name in vars(owner):
        if not name.startswith("_"):
            assert f"`{name}(" in text or f"`{name}`" in text or f"{title}.{name}`" in rest, name


@pytest.mark.parametrize("kind", [dl.CommitResult, dl.CommitRecord, dl.Snapshot])
def test_fields_of_values(kind: type) -> None:
    (rows,) = tables(section(page("python-api"), "Values"))
    (fields,) = (fields for name, fields in rows if code(name) == [kind.__name__])
    names = [field.name for field in dataclasses.fields(kind)]
    assert code(fields)[: len(names)] == names
