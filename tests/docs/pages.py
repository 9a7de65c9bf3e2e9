"""Pages of documentation: what is in them, and how a page is run.

A page's Python blocks run in order and share their names. A comment after an expression, on its
line or below it, is its value; comments after a ``print`` are what it prints. ``...`` stands for
anything. Comments that are no value are prose, and not checked.

SQL blocks run in the catalog the page calls ``cat``. A text block right after one is its answer:
the names of the columns, then the rows, with ``|`` between cells.

Three comments, invisible to readers, steer this::

    <!-- engines: sqlite, duckdb -->     run the page once on each; SQLite alone without it
    <!-- only: duckdb -->                before a block: skip it on other engines
    <!-- setup                           Python that runs in its place
    ... -->
"""

from __future__ import annotations

import ast
import doctest
import io
import re
import tokenize
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import sqlglot

REPOSITORY = Path(__file__).parents[2]
DOCS = REPOSITORY / "docs"
PAGES = tuple(sorted((REPOSITORY / "README.md", *DOCS.rglob("*.md"))))

_PIECE = re.compile(
    r"^<!-- only: (?P<only>\w+) -->\n"
    r"|^<!-- setup\n(?P<setup>.*?)^-->$"
    r"|^```(?P<language>\w*)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
_ENGINES = re.compile(r"^<!-- engines: (.*) -->$", re.MULTILINE)
_CHECKER = doctest.OutputChecker()
_LOOSE = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@dataclass(frozen=True)
class Block:
    """A piece of a page in some language; `line` is where its text begins, from 1."""

    language: str
    text: str
    line: int
    only: str | None = None


def name_of(page: Path) -> str:
    """The page's path in the repository."""
    return page.relative_to(REPOSITORY).as_posix()


def engines(page: Path) -> list[str]:
    """The engines the page is run on."""
    found = _ENGINES.search(page.read_text())
    return [name.strip() for name in found[1].split(",")] if found else ["sqlite"]


def blocks(text: str) -> list[Block]:
    """All blocks of a page, in order."""
    made: list[Block] = []
    only = None
    for found in _PIECE.finditer(text):
        if found["only"]:
            only = found["only"]
            continue
        group = "setup" if found["setup"] is not None else "text"
        line = text.count("\n", 0, found.start(group)) + 1
        language = "python" if group == "setup" else found["language"]
        made.append(Block(language, found[group], line, only))
        only = None
    return made


def run(text: str, name: str, engine: str) -> None:
    """Run every Python and SQL block of a page; an error points to its line in the page."""
    names: dict[str, Any] = {"__name__": "__docs__"}
    found = [block for block in blocks(text) if block.only in (None, engine)]
    for block, after in pairwise([*found, None]):
        assert block is not None
        if block.language == "python":
            _run_python(block, name, names)
        elif block.language == "sql":
            answer = after if after is not None and after.language == "text" else None
            _run_sql(block, answer, name, names)


# --- Python ---------------------------------------------------------------------------------------


def _run_python(block: Block, name: str, names: dict[str, Any]) -> None:
    source = "\n" * (block.line - 1) + block.text
    comments = _comments(source)
    for statement in ast.parse(source, name).body:
        printed, value = io.StringIO(), None
        with redirect_stdout(printed):
            if isinstance(statement, ast.Expr):
                code = compile(ast.Expression(statement.value), name, "eval")
                value = eval(code, names)
            else:
                exec(compile(ast.Module([statement], []), name, "exec"), names)
        place = f"{name}:{statement.lineno}"
        prints = [node for node in ast.walk(statement) if _is_print(node)]
        if prints:
            wanted = [line for node in prints for line in _after(node, comments)]
            if wanted:
                _require_text("\n".join(wanted), printed.getvalue(), place)
        elif isinstance(statement, ast.Expr):
            _require_value("\n".join(_after(statement, comments)), value, names, place)


@dataclass(frozen=True)
class _Comment:
    text: str
    alone: bool


def _comments(source: str) -> dict[int, _Comment]:
    """Comments by line."""
    return {
        token.start[0]: _Comment(
            token.string.removeprefix("#").removeprefix(" "),
            alone=not token.line[: token.start[1]].strip(),
        )
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type == tokenize.COMMENT
    }


def _is_print(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Call)
        and isinstance(node.value.func, ast.Name)
        and node.value.func.id == "print"
    )


def _after(node: Any, comments: dict[int, _Comment]) -> list[str]:
    """The comment on a statement's last line, or those on the lines below it."""
    line = node.end_lineno
    if line in comments:
        return [comments[line].text]
    found = []
    while (comment := comments.get(line + 1)) and comment.alone:
        found.append(comment.text)
        line += 1
    return found


def _require_text(wanted: str, got: str, place: str) -> None:
    if not _CHECKER.check_output(wanted + "\n", got, _LOOSE):
        raise AssertionError(f"{place} prints\n{got}\nand the page says\n{wanted}")


def _require_value(wanted: str, value: Any, names: dict[str, Any], place: str) -> None:
    if not wanted:
        return
    if "..." in wanted and wanted[0] in "[({'\"":
        _require_text(wanted, repr(value), place)
        return
    try:
        expected = eval(wanted, names)
    except (SyntaxError, NameError, AttributeError):
        return
    assert value == expected, f"{place} is {value!r}, and the page says {wanted}"


# --- SQL ------------------------------------------------------------------------------------------


def _run_sql(block: Block, answer: Block | None, name: str, names: dict[str, Any]) -> None:
    sql = block.text.strip().removesuffix(";")
    with names["cat"].database.read() as session:
        rows = session.rows(sql)
    assert rows, f"{name}:{block.line} answers nothing"
    if answer is not None:
        header = sqlglot.parse_one(sql).named_selects
        got = "\n".join(" | ".join(map(_cell, row)) for row in [header, *rows])
        _require_text(_unpadded(answer.text), got, f"{name}:{block.line}")


def _cell(value: object) -> str:
    return "null" if value is None else str(value)


def _unpadded(table: str) -> str:
    return "\n".join(
        " | ".join(cell.strip() for cell in line.split("|")) for line in table.splitlines()
    )


# --- tables and links -----------------------------------------------------------------------------


def tables(text: str) -> Iterator[list[list[str]]]:
    """The Markdown tables of a page: rows of cells, without the head."""
    for found in re.finditer(r"^\|.*\n\| *-.*\n((?:\|.*\n)*)", text, re.MULTILINE):
        yield [
            [cell.strip().replace(r"\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
            for line in found[1].splitlines()
        ]


def section(text: str, title: str) -> str:
    """What stands below a heading, up to the next one of its rank."""
    start = re.search(rf"^(#+) {re.escape(title)}$", text, re.MULTILINE)
    assert start, f"there is no heading {title!r}"
    rest = text[start.end() :]
    end = re.search(rf"^#{{1,{len(start[1])}}} ", rest, re.MULTILINE)
    return rest[: end.start()] if end else rest


def code(cell: str) -> list[str]:
    """The pieces of a cell that stand in backticks."""
    return re.findall(r"`([^`]+)`", cell)
