"""Predicates from lists of (column, op, value), as delta-rs and pyarrow take them."""

from __future__ import annotations

import typing
from collections.abc import Iterable
from typing import Any, Final

from deltalakedb.model.expr import (
    TRUE,
    Column,
    Compare,
    Expr,
    In,
    IsNull,
    Literal,
    Not,
    Or,
    Value,
    conjoin,
)
from deltalakedb.model.expr_values import bad

_OPS: Final = {
    "=": "=",
    "==": "=",
    "!=": "!=",
    "<>": "!=",
    "<": "<",
    "<=": "<=",
    ">": ">",
    ">=": ">=",
}


def from_filters(source: Any) -> Expr:
    """``[(column, op, value), ...]`` all of which hold, or a list of such lists, any of which."""
    if not isinstance(source, Iterable):
        raise bad(f"a predicate is SQL text or a list of (column, op, value), not {source!r}")
    filters = list(source)
    if not filters:
        return TRUE
    if all(isinstance(item, list) for item in filters):
        groups = tuple(conjoin(_from_filter(item) for item in group) for group in filters)
        return Or(groups) if len(groups) > 1 else groups[0]
    return conjoin(_from_filter(item) for item in filters)


def _from_filter(item: Any) -> Expr:
    """One condition. As in Python, None is a value: ``= None`` and ``in [None]`` find nulls."""
    if not (isinstance(item, tuple | list) and len(item) == 3 and isinstance(item[0], str)):
        raise bad(f"a filter is (column, op, value), not {item!r}")
    column, op, value = Column((item[0],)), str(item[1]).strip().lower(), item[2]
    if op in ("in", "not in"):
        if isinstance(value, str | bytes) or not isinstance(value, Iterable):
            raise bad(f"{op} takes a list of values, not {value!r}")
        found = _member(column, [plain(option) for option in value])
        return found if op == "in" else Not(found)
    if op not in _OPS:
        raise bad(f"filter operator {item[1]!r} is not one of {', '.join(_OPS)}, in, not in")
    constant = plain(value)
    if constant is None and _OPS[op] in ("=", "!="):
        return IsNull(column) if _OPS[op] == "=" else Not(IsNull(column))
    return Compare(_OPS[op], column, Literal(constant))


def _member(column: Column, options: list[Value]) -> Expr:
    known = tuple(option for option in options if option is not None)
    found = In(column, known) if known else Literal(False)
    return Or((found, IsNull(column))) if len(known) < len(options) else found


def plain(value: Any) -> Value:
    """A constant of Python's own types, from numpy, pandas or Arrow where need be."""
    if hasattr(value, "as_py"):
        value = value.as_py()
    if hasattr(value, "to_pydatetime"):
        value = value.to_pydatetime(warn=False)
    elif hasattr(value, "item"):
        value = value.item()
    return typing.cast("Value", value)
