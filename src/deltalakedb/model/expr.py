"""SQL scalar expressions as frozen values: predicates, CHECK constraints, generated columns.

`parse` reads a predicate from SQL text or from `[(column, op, value)]` lists; `parse_scalar` reads
an expression of any type. `str()` writes SQL that parses to the same expression again. The
semantics are Spark's: three-valued logic, NaN equal to itself and above every number, UTC as the
session's time zone. Where Spark in ANSI mode fails on a division by zero, the result here is
NULL, so that evaluating more than a CASE or an AND would reach does no harm.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, Self, TypeAlias

from deltalakedb.errors import ExpressionError
from deltalakedb.model.schema import DataType, PrimitiveType, StructType

if TYPE_CHECKING:
    from deltalakedb.model.expr_sql import DoubleQuotes

Path: TypeAlias = tuple[str, ...]
Value: TypeAlias = bool | int | float | Decimal | str | bytes | date | datetime | None
Filter: TypeAlias = tuple[str, str, Any]
Predicate: TypeAlias = "str | Expr | Sequence[Filter] | Sequence[Sequence[Filter]]"
"""What a `filter` or `predicate` argument may be; nested lists are ORed, inner ones ANDed."""

COMPARISONS: Final = ("=", "!=", "<", "<=", ">", ">=", "<=>")


@dataclass(frozen=True)
class Expr:
    """An expression. Its children are the expressions in its fields, in order."""

    @property
    def parts(self) -> tuple[Expr, ...]:
        """Direct children."""
        return tuple(_expressions(vars(self).values()))

    def over(self, change: Callable[[Expr], Expr]) -> Self:
        """The same node with every child changed."""
        return type(self)(**{name: _changed(part, change) for name, part in vars(self).items()})

    def __str__(self) -> str:
        return _render(self)


def _expressions(values: Iterable[Any]) -> Iterator[Expr]:
    for value in values:
        if isinstance(value, Expr):
            yield value
        elif isinstance(value, tuple):
            yield from _expressions(value)


def _changed(value: Any, change: Callable[[Expr], Expr]) -> Any:
    if isinstance(value, Expr):
        return change(value)
    return tuple(_changed(item, change) for item in value) if isinstance(value, tuple) else value


@dataclass(frozen=True)
class Column(Expr):
    """A column by its logical path; `type` is known once bound to a schema."""

    path: Path
    type: DataType | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Literal(Expr):
    """A constant. A datetime with a zone is a timestamp, one without a timestamp_ntz."""

    value: Value


@dataclass(frozen=True)
class Compare(Expr):
    """``left op right`` with op one of `COMPARISONS`."""

    op: str
    left: Expr
    right: Expr


@dataclass(frozen=True)
class And(Expr):
    """All of the terms."""

    terms: tuple[Expr, ...]


@dataclass(frozen=True)
class Or(Expr):
    """Any of the terms."""

    terms: tuple[Expr, ...]


@dataclass(frozen=True)
class Not(Expr):
    """The opposite; NULL stays NULL."""

    term: Expr


@dataclass(frozen=True)
class IsNull(Expr):
    """``term IS NULL``, never NULL itself."""

    term: Expr


@dataclass(frozen=True)
class In(Expr):
    """``term IN (values)`` over constants; a None among them makes a miss NULL."""

    term: Expr
    values: tuple[Value, ...]


@dataclass(frozen=True)
class Like(Expr):
    r"""``term LIKE pattern``; % is any text, _ one character, \ takes the next one literally."""

    term: Expr
    pattern: str


@dataclass(frozen=True)
class Case(Expr):
    """``CASE WHEN condition THEN result ... ELSE otherwise END``."""

    branches: tuple[tuple[Expr, Expr], ...]
    otherwise: Expr


@dataclass(frozen=True)
class Cast(Expr):
    """``CAST(term AS type)``."""

    term: Expr
    type: PrimitiveType


@dataclass(frozen=True)
class Call(Expr):
    """A function or arithmetic operator (`expr_functions` lists them)."""

    name: str
    args: tuple[Expr, ...]


TRUE: Final = Literal(True)


def parse(
    source: Predicate,
    schema: StructType | None = None,
    *,
    double_quotes: DoubleQuotes = "identifier",
) -> Expr:
    """The predicate in `source`, with columns and literals resolved against `schema`.

    Strings take single quotes and names backticks, as in Spark. Double quotes hold a name, as in
    delta-rs and standard SQL; expressions stored in a table's metadata are Spark's own text and
    are read with ``double_quotes="string"``.

    Raises:
        ExpressionError: names what is not understood, or the columns there are.
    """
    from deltalakedb.model.expr_bind import require_boolean

    with _about(source):
        expr = parse_scalar(source, schema, double_quotes=double_quotes)
        require_boolean(expr)
        return expr


def parse_scalar(
    source: Predicate,
    schema: StructType | None = None,
    *,
    double_quotes: DoubleQuotes = "identifier",
) -> Expr:
    """Like `parse`, for an expression of any type."""
    from deltalakedb.model.expr_bind import bind

    with _about(source):
        return bind(_read(source, double_quotes), schema)


@contextmanager
def _about(source: Predicate) -> Iterator[None]:
    """Errors from here on say which expression they are about."""
    try:
        yield
    except ExpressionError as error:
        if "expression" in error.facts:
            raise
        text = source if isinstance(source, str) else str(source)
        quoted = f'"{error.facts.get("column")}"' in text
        hint = " (strings take single quotes)" if quoted else ""
        facts = {**error.facts, "expression": text}
        raise ExpressionError(f"{error.message}{hint}, in {text!r}", **facts) from error
    except RecursionError as error:
        reason = "nested too deeply"
        raise ExpressionError(reason, expression=str(source)[:200], reason=reason) from error


def _read(source: Predicate, double_quotes: DoubleQuotes) -> Expr:
    if isinstance(source, Expr):
        return source
    if isinstance(source, str):
        from deltalakedb.model.expr_sql import from_sql

        return from_sql(source, double_quotes)
    from deltalakedb.model.expr_filters import from_filters

    return from_filters(source)


def evaluate(expr: Expr, row: Mapping[str, Any]) -> Value:
    """The exact value of the expression for one row; None is NULL.

    `row` maps column names to values, structs to mappings of their own.

    Raises:
        ExpressionError: a value that has no meaning here, for instance a failed cast.
    """
    from deltalakedb.model.expr_eval import evaluate as run

    value: Value = run(expr, row)
    return value


def columns(expr: Expr) -> frozenset[Path]:
    """Paths of all columns the expression reads."""
    if isinstance(expr, Column):
        return frozenset((expr.path,))
    return frozenset().union(*map(columns, expr.parts))


def conjuncts(expr: Expr) -> tuple[Expr, ...]:
    """The terms of a conjunction, flattened; none for TRUE."""
    if isinstance(expr, And):
        return tuple(term for part in expr.terms for term in conjuncts(part))
    return () if expr == TRUE else (expr,)


def conjoin(terms: Iterable[Expr]) -> Expr:
    """The conjunction of the terms; TRUE of none."""
    flat = tuple(term for part in terms for term in conjuncts(part))
    return And(flat) if len(flat) > 1 else flat[0] if flat else TRUE


def split(expr: Expr, partition_columns: Collection[str]) -> tuple[Expr, Expr]:
    """(what reads partition columns only, the rest): their conjunction is `expr`."""
    inside: list[Expr] = []
    rest: list[Expr] = []
    for term in conjuncts(expr):
        partitioned = all(path[0] in partition_columns for path in columns(term))
        (inside if partitioned else rest).append(term)
    return conjoin(inside), conjoin(rest)


# -- SQL text ----------------------------------------------------------------------------------

_PLAIN_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_KEYWORDS: Final = (
    "all and any anti array as asc between both by case cast coalesce cross current_date "
    "current_time current_timestamp current_user date default desc distinct div else end escape "
    "except exists extract false fetch filter for from full group having if ilike in inner "
    "intersect interval into is join lateral leading left like limit map minus natural not null "
    "nulls offset on or order outer over overlaps partition primary references regexp right rlike "
    "rows select semi set some struct table then time timestamp timestamp_ltz timestamp_ntz to "
    "trailing true try_cast union unique unknown using values when where window with"
)
_RESERVED: Final = frozenset(_KEYWORDS.split())
_RANK: Final = {"+": 6, "-": 6, "*": 7, "/": 7, "%": 7, "div": 7}
_OR, _AND, _NOT, _TEST, _NEGATIVE, _ATOM = 1, 2, 3, 4, 8, 9


def quote_name(name: str) -> str:
    """A column name as SQL, in backticks where it needs them."""
    if _PLAIN_NAME.fullmatch(name) and name.lower() not in _RESERVED:
        return name
    return "`" + name.replace("`", "``") + "`"


def quote_text(text: str) -> str:
    """A string as a SQL literal."""
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


def _render(expr: Expr) -> str:
    return _ranked(expr)[0]


def _at(expr: Expr, rank: int) -> str:
    """The text of an operand, in parentheses where it binds less than `rank`."""
    text, own = _ranked(expr)
    return text if own >= rank else f"({text})"


def _ranked(expr: Expr) -> tuple[str, int]:  # noqa: PLR0912 - one case a node
    """The text of an expression and how strongly its outermost operator binds."""
    match expr:
        case Column(path):
            return ".".join(map(quote_name, path)), _ATOM
        case Literal(value):
            text = _literal(value)
            return text, _NEGATIVE if text.startswith("-") else _ATOM
        case Compare(op, left, right):
            return f"{_at(left, _TEST + 1)} {op} {_at(right, _TEST + 1)}", _TEST
        case And(terms):
            return " AND ".join(_at(term, _AND + 1) for term in terms), _AND
        case Or(terms):
            return " OR ".join(_at(term, _OR + 1) for term in terms), _OR
        case IsNull() | In() | Like():
            return _test(expr, ""), _TEST
        case Not(IsNull() | In() | Like() as test):
            return _test(test, "NOT "), _TEST
        case Not(term):
            return f"NOT {_at(term, _NOT)}", _NOT
        case Cast(term, kind):
            return f"CAST({_render(term)} AS {sql_type(kind)})", _ATOM
        case Case(branches, otherwise):
            whens = "".join(
                f" WHEN {_render(test)} THEN {_render(then)}" for test, then in branches
            )
            return f"CASE{whens} ELSE {_render(otherwise)} END", _ATOM
        case Call("negative", (arg,)):
            return f"-{_at(arg, _ATOM)}", _NEGATIVE
        case Call(name, (left, right)) if name in _RANK:
            rank = _RANK[name]
            return f"{_at(left, rank)} {name} {_at(right, rank + 1)}", rank
        case Call(name, args):
            return f"{name}({', '.join(map(_render, args))})", _ATOM
    raise TypeError(f"no SQL for {expr!r}")


def _test(expr: IsNull | In | Like, negation: str) -> str:
    term = _at(expr.term, _TEST + 1)
    match expr:
        case IsNull():
            return f"{term} IS {negation}NULL"
        case In(_, values):
            return f"{term} {negation}IN ({', '.join(map(_literal, values))})"
        case Like(_, pattern):
            return f"{term} {negation}LIKE {quote_text(pattern)}"


def _literal(value: Value) -> str:
    match value:
        case None | bool():
            return "NULL" if value is None else str(value).upper()
        case str():
            return quote_text(value)
        case bytes():
            return f"X'{value.hex().upper()}'"
        case float():
            return repr(value) if math.isfinite(value) else f"CAST('{value}' AS DOUBLE)"
        case Decimal():
            return f"{value:f}"
        case datetime():
            kind = "TIMESTAMP_NTZ" if value.tzinfo is None else "TIMESTAMP"
            return f"{kind} '{value.isoformat(' ').replace('+00:00', 'Z')}'"
        case date():
            return f"DATE '{value.isoformat()}'"
        case _:
            return str(value)


SQL_TYPES: Final = {"byte": "TINYINT", "short": "SMALLINT", "integer": "INT", "long": "BIGINT"}


def sql_type(kind: PrimitiveType) -> str:
    """The name of a type in SQL."""
    return SQL_TYPES.get(kind.name, kind.name.upper())
