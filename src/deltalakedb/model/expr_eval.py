"""The exact value of an expression for one row, in three-valued logic."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, Final

from deltalakedb.model.expr import (
    And,
    Call,
    Case,
    Cast,
    Column,
    Compare,
    Expr,
    In,
    IsNull,
    Like,
    Literal,
    Not,
    Or,
    Path,
    Value,
)
from deltalakedb.model.expr_functions import FUNCTIONS
from deltalakedb.model.expr_values import bad, cast, compare

_TESTS: Final[Mapping[str, Callable[[int], bool]]] = {
    "=": lambda order: order == 0,
    "!=": lambda order: order != 0,
    "<": lambda order: order < 0,
    "<=": lambda order: order <= 0,
    ">": lambda order: order > 0,
    ">=": lambda order: order >= 0,
}


def evaluate(expr: Expr, row: Mapping[str, Any]) -> Any:
    """See `expr.evaluate`."""
    match expr:
        case Literal(value):
            return value
        case Column(path):
            return _lookup(row, path)
        case Compare(op, left, right):
            return _compare(op, evaluate(left, row), evaluate(right, row))
        case And(terms):
            return _all(evaluate(term, row) for term in terms)
        case Or(terms):
            return _not(_all(_not(evaluate(term, row)) for term in terms))
        case Not(term):
            return _not(evaluate(term, row))
        case IsNull(term):
            return evaluate(term, row) is None
        case In(term, values):
            return _not(_all(_not(_compare("=", evaluate(term, row), item)) for item in values))
        case Like(term, pattern):
            text = evaluate(term, row)
            return None if text is None else bool(like_regex(pattern).fullmatch(text))
        case Cast(term, kind):
            return cast(evaluate(term, row), kind)
        case Case(branches, otherwise):
            chosen = (then for test, then in branches if evaluate(test, row) is True)
            return evaluate(next(chosen, otherwise), row)
        case Call(name, args):
            return FUNCTIONS[name](*(evaluate(arg, row) for arg in args))
    raise TypeError(f"no value of {expr!r}")


def _lookup(row: Mapping[str, Any], path: Path) -> Any:
    value: Any = row
    for name in path:
        if value is None:
            return None
        if name not in value:
            raise bad(f"no value for column {'.'.join(path)}", column=".".join(path))
        value = value[name]
    return value


def _compare(op: str, left: Value, right: Value) -> bool | None:
    if left is None or right is None:
        return left is right if op == "<=>" else None
    return _TESTS["=" if op == "<=>" else op](compare(left, right))


def _all(terms: Iterable[bool | None]) -> bool | None:
    """Three-valued AND: false wins over unknown, unknown over true."""
    unknown = False
    for term in terms:
        if term is False:
            return False
        unknown |= term is None
    return None if unknown else True


def _not(term: bool | None) -> bool | None:
    return None if term is None else not term


@lru_cache(maxsize=256)
def like_regex(pattern: str) -> re.Pattern[str]:
    """A LIKE pattern as a regular expression for the whole text."""
    parts = re.findall(r"\\.|.", pattern, re.DOTALL)
    wild = {"%": ".*", "_": "."}
    return re.compile("".join(wild.get(part) or re.escape(part[-1]) for part in parts), re.DOTALL)
