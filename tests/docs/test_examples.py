"""Every example of the documentation runs, and answers what the page says."""

from __future__ import annotations

import gc
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from docs.pages import PAGES, REPOSITORY, blocks, engines, name_of, run

CATALOG = "deltasql://sqlite/lake.db"
"""How pages name a catalog; on another engine its URI is put in place of it."""

POSTGRES = "deltasql://postgres/ana:${PGPASSWORD}@db.example.org/lake/main"
"""How pages name one in Postgres, on whichever engine they run."""

RUNS = [
    (page, engine)
    for page in PAGES
    if any(block.language in ("python", "sql") for block in blocks(page.read_text()))
    for engine in engines(page)
]


@pytest.mark.parametrize(
    ("page", "engine"), RUNS, ids=[f"{name_of(page)}-{engine}" for page, engine in RUNS]
)
def test_page_runs(
    page: Path,
    engine: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    new_catalog_uri: Callable[[str], str],
) -> None:
    for variable in ("CATALOG", "WAREHOUSE", "SCHEMA", "COMMITTER"):
        monkeypatch.delenv(f"DELTALAKEDB_{variable}", raising=False)
    monkeypatch.setenv("USER", "ana")
    monkeypatch.chdir(tmp_path)
    text = page.read_text()
    if engine == "duckdb":
        text = text.replace(CATALOG, "deltasql://duckdb/lake.duckdb")
    if engine == "postgres":
        monkeypatch.setenv("DELTALAKEDB_WAREHOUSE", str(tmp_path / "lake_tables"))
        text = text.replace(CATALOG, new_catalog_uri("postgres"))
    if POSTGRES in text:
        text = text.replace(POSTGRES, new_catalog_uri("postgres"))
    try:
        run(text, name_of(page), engine)
    finally:
        gc.collect()  # catalogs of relative URIs are shared while anything holds them


def test_shell_examples_name_targets_that_exist() -> None:
    makefile = (REPOSITORY / "Makefile").read_text()
    known = set(re.findall(r"^(\w+):", makefile, re.MULTILINE))
    shell = [
        block for page in PAGES for block in blocks(page.read_text()) if block.language == "sh"
    ]
    used = {name for block in shell for name in re.findall(r"\bmake (\w+)", block.text)}
    assert used
    assert used <= known


def test_every_block_says_its_language() -> None:
    nameless = [
        f"{name_of(page)}:{block.line}"
        for page in PAGES
        for block in blocks(page.read_text())
        if block.language not in ("python", "sql", "sh", "text")
    ]
    assert not nameless
