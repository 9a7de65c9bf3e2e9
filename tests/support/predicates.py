"""Random rows and random predicates over one schema with a column of every ordered type."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from deltalakedb.model import expr as ast
from deltalakedb.model.schema import PrimitiveType, StructField, StructType


def struct(**columns: str) -> StructType:
    return StructType(tuple(StructField(name, PrimitiveType(t)) for name, t in columns.items()))


SCHEMA = StructType(
    (
        *struct(
            id="long",
            i="integer",
            s="string",
            f="double",
            g="float",
            d="date",
            ts="timestamp",
            n="timestamp_ntz",
            dec="decimal(10,2)",
            b="boolean",
        ).fields,
        StructField("st", struct(x="integer", y="string")),
    )
)

_EPOCH = datetime(2023, 12, 30)  # noqa: DTZ001 - timestamps without a zone are naive
_moments = st.builds(
    lambda hours, extra: _EPOCH + timedelta(hours=hours, microseconds=extra),
    st.integers(0, 100),
    st.sampled_from([0, 1, 999, 1000]),
)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "long": st.integers(-3, 3) | st.sampled_from([2**60, -(2**63), 2**63 - 1]),
    "integer": st.integers(-3, 3),
    "string": st.text("ab\x7fé\U0001f600", max_size=3) | st.just("b" * 40) | st.just("a" * 40),
    "double": st.sampled_from([0.0, -0.0, 1.0, -1.5, 0.1, math.inf, -math.inf, math.nan, 1e300]),
    "float": st.sampled_from([0.0, -0.0, 1.0, -1.5, math.nan, 0.5]),
    "date": st.integers(-3, 3).map(lambda days: date(2024, 1, 1) + timedelta(days=days)),
    "timestamp": _moments.map(lambda at: at.replace(tzinfo=UTC)),
    "timestamp_ntz": _moments,
    "decimal(10,2)": st.integers(-300, 300).map(lambda cents: Decimal(cents) / 100),
    "boolean": st.booleans(),
}


def _maybe(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | values


def _row(schema: StructType) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {
            field.name: _maybe(
                _row(field.type) if isinstance(field.type, StructType) else VALUES[str(field.type)]
            )
            for field in schema.fields
        }
    )


rows = st.lists(_row(SCHEMA), max_size=6)

_LEAVES = [
    *((field.name,) for field in SCHEMA.fields if not isinstance(field.type, StructType)),
    ("st", "x"),
    ("st", "y"),
]
_columns = st.sampled_from(_LEAVES)
_operators = st.sampled_from(ast.COMPARISONS)


def type_name(path: tuple[str, ...]) -> str:
    found = SCHEMA.at(path)
    assert found is not None
    return str(found[-1].type)


def _literal(kind: str) -> st.SearchStrategy[Any]:
    extra = {
        "long": st.sampled_from([Decimal("0.5"), 10**30]),
        "integer": st.sampled_from([1.5, 2**40]),
        "decimal(10,2)": st.sampled_from([Decimal("0.005"), Decimal("1e20")]),
    }
    return VALUES[kind] | extra.get(kind, st.nothing())


@st.composite
def _tests(draw: st.DrawFn) -> ast.Expr:
    path = draw(_columns)
    kind, column = type_name(path), ast.Column(path)
    match draw(st.integers(0, 8)):
        case 0:
            return ast.IsNull(column)
        case 1:
            return ast.In(
                column, tuple(draw(st.lists(_maybe(_literal(kind)), min_size=1, max_size=3)))
            )
        case 2 if kind == "string":
            return ast.Like(column, draw(st.text("ab%_\\", max_size=4).filter(_complete)))
        case 3 if kind == "string":
            prefix = ast.Literal(draw(VALUES["string"]))
            return ast.Call("startswith", (column, prefix))
        case 4 if kind == "boolean":
            return column
        case 5:
            year = ast.Call("year", (ast.Column((draw(st.sampled_from(["d", "ts", "n"])),)),))
            return ast.Compare(draw(_operators), year, ast.Literal(draw(st.integers(2022, 2025))))
        case 6:
            moment = ast.Column((draw(st.sampled_from(["ts", "n"])),))
            day = ast.Literal(draw(VALUES["date"]))
            return ast.Compare(draw(_operators), ast.Cast(moment, PrimitiveType("date")), day)
        case 7:
            others = [other for other in _LEAVES if type_name(other) == kind]
            return ast.Compare(draw(_operators), column, ast.Column(draw(st.sampled_from(others))))
        case _:
            sides = [column, ast.Literal(draw(_maybe(_literal(kind))))]
            return ast.Compare(draw(_operators), *draw(st.permutations(sides)))


def _complete(pattern: str) -> bool:
    """Whether no escape is left open at the end."""
    return not (len(pattern) - len(pattern.rstrip("\\"))) % 2


def _wider(inner: st.SearchStrategy[ast.Expr]) -> st.SearchStrategy[ast.Expr]:
    several = st.lists(inner, min_size=2, max_size=3).map(tuple)
    return inner.map(ast.Not) | several.map(ast.And) | several.map(ast.Or)


predicates = st.recursive(_tests(), _wider, max_leaves=5)
