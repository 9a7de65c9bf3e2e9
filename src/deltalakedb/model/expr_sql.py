"""Expressions from SQL text, read by sqlglot in Spark's dialect."""

from __future__ import annotations

import re
import typing
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import cache
from typing import Any, Final, TypeAlias

from sqlglot import errors, exp
from sqlglot.dialects.spark import Spark

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
)
from deltalakedb.model.expr_functions import FUNCTIONS
from deltalakedb.model.expr_values import bad
from deltalakedb.model.schema import PrimitiveType

Node: TypeAlias = Any
"""A node of sqlglot, whose own types change from release to release."""

DoubleQuotes: TypeAlias = typing.Literal["identifier", "string"]


def from_sql(text: str, double_quotes: DoubleQuotes) -> Expr:
    """The expression in SQL text, not yet bound to a schema."""
    return _convert(_parse(text, double_quotes))


@cache
def _dialect(double_quotes: DoubleQuotes) -> Any:
    """Spark's dialect with functions left as they are written, not turned into sqlglot's own."""
    quotes, names = ["'"], ["`"]
    (names if double_quotes == "identifier" else quotes).append('"')
    name = f"deltalakedb_{double_quotes}"
    tokenizer = _subclass(
        name,
        Spark.Tokenizer,
        QUOTES=quotes,
        IDENTIFIERS=names,
        STRING_ESCAPES=["'", "\\"],  # '' is a quote, as in Spark 4
    )
    parser = _subclass(name, Spark.Parser, FUNCTIONS={}, STRICT_CAST=True)
    return _subclass(name, Spark, Tokenizer=tokenizer, Parser=parser)()


def _subclass(name: str, base: Any, **settings: Any) -> Any:
    return type(base)(name, (base,), settings)


def _parse(text: str, double_quotes: DoubleQuotes) -> Node:
    try:
        found = _dialect(double_quotes).parse_into(exp.Condition, text)
    except errors.SqlglotError as error:
        raise bad(f"not a SQL expression: {_first(error)}") from error
    if len(found) != 1 or found[0] is None:
        raise bad("not one SQL expression")
    return found[0]


def _first(error: errors.SqlglotError) -> str:
    details = getattr(error, "errors", None)
    if not details:
        return str(error).splitlines()[0]
    return "syntax error near {highlight!r} at line {line}, column {col}".format(**details[0])


_COMPARE: Final[Mapping[Any, str]] = {
    exp.EQ: "=",
    exp.NEQ: "!=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "<=>",
}
_ARITHMETIC: Final[Mapping[Any, str]] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
    exp.IntDiv: "div",
    exp.DPipe: "concat",
    exp.RegexpLike: "rlike",
    exp.Substring: "substring",
    exp.Ceil: "ceil",
    exp.Floor: "floor",
    exp.Neg: "negative",
}
_TYPES: Final = {
    "TINYINT": "byte",
    "BYTE": "byte",
    "SMALLINT": "short",
    "SHORT": "short",
    "INT": "integer",
    "INTEGER": "integer",
    "BIGINT": "long",
    "LONG": "long",
    "FLOAT": "float",
    "REAL": "float",
    "DOUBLE": "double",
    "STRING": "string",
    "BINARY": "binary",
    "BOOLEAN": "boolean",
    "DATE": "date",
    "TIMESTAMP": "timestamp",
    "TIMESTAMP_LTZ": "timestamp",
    "TIMESTAMP_NTZ": "timestamp_ntz",
    "DECIMAL": "decimal(10,0)",
}
_NAMES: Final = {
    "btrim": "trim",
    "ceiling": "ceil",
    "char_length": "length",
    "character_length": "length",
    "date_diff": "datediff",
    "dateadd": "date_add",
    "dayofmonth": "day",
    "ends_with": "endswith",
    "ifnull": "coalesce",
    "lcase": "lower",
    "len": "length",
    "mod": "%",
    "nvl": "coalesce",
    "regexp": "rlike",
    "regexp_like": "rlike",
    "starts_with": "startswith",
    "substr": "substring",
    "ucase": "upper",
}
_AGGREGATES: Final = frozenset(
    (
        "any_value",
        "avg",
        "collect_list",
        "collect_set",
        "count",
        "first",
        "last",
        "max",
        "min",
        "sum",
    )
)
_NOISE: Final = frozenset(("typed", "safe", "coalesce", "is_string", "_type"))
"""What sqlglot notes on nodes for other dialects' sake."""


def _convert(node: Node) -> Expr:
    kind: Any = type(node)
    if kind in _COMPARE:
        left, right = _operands(node, "this", "expression")
        return Compare(_COMPARE[kind], left, right)
    if kind in _ARITHMETIC:
        names = ("this", "expression", "start", "length")
        return Call(_ARITHMETIC[kind], tuple(_operands(node, *names)))
    if kind in (exp.And, exp.Or):
        terms = tuple(map(_convert, node.flatten()))
        return And(terms) if kind is exp.And else Or(terms)
    if kind not in _CONVERT:
        raise _unsupported(node)
    return _CONVERT[kind](node)


def _unsupported(node: Node) -> Exception:
    if isinstance(node, exp.Query | exp.Subquery | exp.Exists):
        what = "a subquery"
    elif isinstance(node, exp.Window):
        what = "a window function"
    else:
        what = f"{node.sql('spark')} ({type(node).__name__})"
    return bad(f"{what} is not supported")


def _only(node: Node, *names: str) -> None:
    """Refuse a node that says more than the named arguments, for nothing may be ignored."""
    extra = {name for name, value in node.args.items() if value} - {*names} - _NOISE
    if extra:
        raise _unsupported(node)


def _operands(node: Node, *names: str) -> list[Expr]:
    _only(node, *names)
    return [_convert(node.args[name]) for name in names if node.args.get(name) is not None]


def _column(node: Node) -> Expr:
    parts: list[Node] = []
    while isinstance(node, exp.Dot):
        parts.insert(0, node.expression)
        node = node.this
    if not isinstance(node, exp.Column) or isinstance(node.this, exp.Star):
        raise _unsupported(node)
    return Column(tuple(part.name for part in (*node.parts, *parts)))


def _constant(node: Node) -> Expr:
    text = str(node.this)
    if isinstance(node, exp.HexString):
        return Literal(bytes.fromhex(text))
    if isinstance(node, exp.RawString) or node.is_string:
        return Literal(text)
    if text.lstrip("-").isdigit():
        return Literal(int(text))
    return Literal(float(text) if "e" in text.lower() else Decimal(text))


def _is(node: Node) -> Expr:
    (term,) = _operands(exp.Paren(this=node.this), "this")
    if isinstance(node.expression, exp.Null):
        return IsNull(term)
    if isinstance(node.expression, exp.Boolean):
        return Compare("<=>", term, _convert(node.expression))
    raise _unsupported(node)


def _between(node: Node) -> Expr:
    term, low, high = _operands(node, "this", "low", "high")
    return And((Compare(">=", term, low), Compare("<=", term, high)))


def _in(node: Node) -> Expr:
    if node.args.get("query"):
        raise bad("a subquery is not supported")
    _only(node, "this", "expressions")
    term, options = _convert(node.this), [_fold(_convert(item)) for item in node.expressions]
    if not options:
        raise bad("IN needs at least one value")
    if all(isinstance(option, Literal) for option in options):
        return In(term, tuple(option.value for option in options if isinstance(option, Literal)))
    return Or(tuple(Compare("=", term, option) for option in options))


def _fold(expr: Expr) -> Expr:
    from deltalakedb.model.expr_bind import bind

    return expr if isinstance(expr, Column) else bind(expr, None)


def _text(node: Node, what: str) -> str:
    if node is not None:
        constant = _fold(_convert(node))
        if isinstance(constant, Literal) and isinstance(constant.value, str):
            return constant.value
    raise bad(f"{what} must be a string constant")


def _like(node: Node, escape: str = "\\") -> Expr:
    _only(node, "this", "expression", "negate")
    term, pattern = _convert(node.this), _text(node.expression, "the pattern of LIKE")
    if escape != "\\":
        # its own escapes become backslashes, and backslashes that were plain text are escaped
        escapes = f"{re.escape(escape)}(.)|(\\\\)"
        pattern = re.sub(escapes, r"\\\1\2", pattern, flags=re.DOTALL)
    if isinstance(node, exp.ILike):
        term, pattern = Call("lower", (term,)), pattern.lower()
    found = Like(term, pattern)
    return Not(found) if node.args.get("negate") else found


def _escape(node: Node) -> Expr:
    if not isinstance(node.this, exp.Like | exp.ILike):
        raise _unsupported(node)
    escape = _text(node.expression, "ESCAPE")
    if len(escape) != 1:
        raise bad(f"ESCAPE takes one character, not {escape!r}")
    return _like(node.this, escape)


def _case(node: Node) -> Expr:
    _only(node, "this", "ifs", "default")
    subject = node.args.get("this")
    branches = []
    for branch in node.args["ifs"]:
        test = _convert(branch.this)
        if subject is not None:
            test = Compare("=", _convert(subject), test)
        branches.append((test, _convert(branch.args["true"])))
    default = node.args.get("default")
    return Case(tuple(branches), Literal(None) if default is None else _convert(default))


def _if(node: Node) -> Expr:
    test, then, *otherwise = _operands(node, "this", "true", "false")
    return Case(((test, then),), otherwise[0] if otherwise else Literal(None))


def _cast(node: Node) -> Expr:
    (term,) = _operands(exp.Paren(this=node.this), "this")
    _only(node, "this", "to")
    return Cast(term, _type(node.args["to"].sql("spark")))


def _type(text: str) -> PrimitiveType:
    name = text.upper().replace(" ", "")
    if name.startswith("DECIMAL("):
        digits = name.removeprefix("DECIMAL(").removesuffix(")")
        kind = PrimitiveType(f"decimal({digits if ',' in digits else digits + ',0'})")
    else:
        kind = PrimitiveType(_TYPES.get(name, name))
    if not kind.supported:
        raise bad(f"type {text} is not supported")
    return kind


def _trim(node: Node) -> Expr:
    name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(node.args.get("position") or "", "trim")
    _only(node, "this", "position")
    return Call(name, (_convert(node.this),))


def _extract(node: Node) -> Expr:
    return _named(str(node.this.name).lower(), [_convert(node.expression)])


def _function(node: Node) -> Expr:
    _only(node, "this", "expressions")
    name = str(node.this).lower()
    if name in _AGGREGATES:
        raise bad(f"aggregate function {name} is not supported")
    return _named(name, [_convert(arg) for arg in node.expressions])


def _named(name: str, args: list[Expr]) -> Expr:
    """A call by any of the names Spark has for it."""
    match name, args:
        case (("to_date" | "to_timestamp"), [term]):
            return Cast(term, PrimitiveType(name.removeprefix("to_")))
        case "nullif", [left, right]:
            return Case(((Compare("=", left, right), Literal(None)),), left)
        case "isnull", [term]:
            return IsNull(term)
        case "isnotnull", [term]:
            return Not(IsNull(term))
        case "left", [term, length]:
            return Call("substring", (term, Literal(1), length))
        case _, [term] if name.upper() in _TYPES:
            return Cast(term, PrimitiveType(_TYPES[name.upper()]))
    name = _NAMES.get(name, name)
    if name not in FUNCTIONS:
        raise bad(f"function {name} is not supported")
    return Call(name, tuple(args))


_CONVERT: Final[Mapping[type[Any], Callable[[Any], Expr]]] = {
    exp.Anonymous: _function,
    exp.Between: _between,
    exp.Boolean: lambda node: Literal(bool(node.this)),
    exp.Case: _case,
    exp.Cast: _cast,
    exp.Column: _column,
    exp.Concat: lambda node: Call("concat", tuple(map(_convert, node.expressions))),
    exp.Dot: _column,
    exp.Escape: _escape,
    exp.Extract: _extract,
    exp.HexString: _constant,
    exp.ILike: _like,
    exp.If: _if,
    exp.In: _in,
    exp.Is: _is,
    exp.Like: _like,
    exp.Literal: _constant,
    exp.Not: lambda node: Not(_convert(node.this)),
    exp.Null: lambda node: Literal(None),
    exp.NullSafeNEQ: lambda node: Not(Compare("<=>", *_operands(node, "this", "expression"))),
    exp.Paren: lambda node: _convert(node.this),
    exp.RawString: _constant,
    exp.Trim: _trim,
}
