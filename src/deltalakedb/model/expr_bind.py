"""Expressions against a schema: columns resolved, literals typed, constants folded."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from deltalakedb.model.expr import (
    And,
    Call,
    Case,
    Cast,
    Column,
    Compare,
    Expr,
    In,
    Like,
    Literal,
    Not,
    Or,
)
from deltalakedb.model.expr_eval import evaluate
from deltalakedb.model.expr_functions import FUNCTIONS, Function, strftime_pattern, truncation
from deltalakedb.model.expr_values import bad, family, fit, show, value_type
from deltalakedb.model.schema import DataType, PrimitiveType, StructType, leaves

BOOLEAN: Final = PrimitiveType("boolean")
STRING: Final = PrimitiveType("string")
TIMESTAMP: Final = PrimitiveType("timestamp")
_COMPARABLE: Final = ("number", "string", "time", "boolean", "binary")


def bind(expr: Expr, schema: StructType | None) -> Expr:
    """The expression with names as the schema spells them and literals of the columns' types.

    Binding again, also to a later schema, is fine.

    Raises:
        ExpressionError: names the column that is missing or the types that do not fit.
    """
    if isinstance(expr, Column):
        return _resolve(expr, schema)
    if isinstance(expr, Literal):
        return expr
    typed = _typed(expr.over(lambda part: bind(part, schema)))
    if all(isinstance(part, Literal) for part in typed.parts):
        return Literal(evaluate(typed, {}))
    return typed


def require_boolean(expr: Expr) -> None:
    """Refuse what is not a predicate."""
    kind = type_of(expr)
    if family(kind) not in (None, "boolean"):
        raise bad(f"{expr} is not a condition but a {kind}")


def type_of(expr: Expr) -> DataType | None:
    """The type of a bound expression's value; None where it is not known."""
    match expr:
        case Column():
            return expr.type
        case Literal(value):
            return value_type(value)
        case Cast():
            return expr.type
        case Case(branches, otherwise):
            return _common([*(then for _, then in branches), otherwise])
        case Call(name, args):
            return _result(FUNCTIONS[name].gives, args)
    return BOOLEAN


def _result(gives: str, args: tuple[Expr, ...]) -> DataType | None:
    if gives == "same":
        return _common(args)
    names = [str(type_of(arg)) for arg in args]
    if gives in ("math", "ratio"):
        return _arithmetic(names, "long" if gives == "math" else "double")
    if gives == "moment":
        gives = "timestamp_ntz" if names[-1] == "timestamp_ntz" else "timestamp"
    return PrimitiveType(gives)


def _arithmetic(names: list[str], whole: str) -> DataType | None:
    if "None" in names:
        return None
    if "float" in names or "double" in names:
        return PrimitiveType("double")
    decimal = any(name.startswith("decimal") for name in names)
    return PrimitiveType("decimal(38,18)" if decimal else whole)


def _common(exprs: Iterable[Expr]) -> DataType | None:
    """The type that several expressions share: that of the first column, else of a literal."""
    known = [(isinstance(e, Literal), kind) for e in exprs if (kind := type_of(e)) is not None]
    return min(known, key=lambda item: item[0])[1] if known else None


def _resolve(column: Column, schema: StructType | None) -> Column:
    if schema is None:
        return column
    found = schema.at(column.path)
    if found is None and len(column.path) == 1:  # a dotted name, as filter lists have them
        found = schema.at(_dotted(column.path[0]))
    if found is None:
        available = [leaf.name for leaf in leaves(schema)]
        name = ".".join(column.path)
        raise bad(
            f"no column {name!r}; there are {', '.join(available) or 'none'}",
            column=name,
            available=available,
        )
    return Column(tuple(field.name for field in found), found[-1].type)


def _dotted(name: str) -> list[str]:
    """The parts of a dotted name, with backticks around parts that have dots themselves."""
    return [quoted or plain for quoted, plain in re.findall(r"`([^`]+)`|([^.`]+)", name)]


def _typed(expr: Expr) -> Expr:
    match expr:
        case Compare(op, left, right):
            left, right = _pair(left, right)
            return Compare(op, left, right)
        case In(term, values):
            kind = type_of(term)
            _require_comparable(term)
            return In(term, tuple(values if kind is None else (fit(v, kind) for v in values)))
        case Like(term):
            return Like(_as_kind(term, "string", "LIKE"), expr.pattern)
        case And(terms) | Or(terms):
            for term in terms:
                require_boolean(term)
        case Not(term):
            require_boolean(term)
        case Case(branches, otherwise):
            for test, _ in branches:
                require_boolean(test)
            results = _alike([*(then for _, then in branches), otherwise], "CASE")
            tests = [test for test, _ in branches]
            return Case(tuple(zip(tests, results[:-1], strict=True)), results[-1])
        case Call(name, args):
            typed = _arguments(FUNCTIONS[name], args)
            _check_constants(name, typed)
            return Call(name, typed)
    return expr


def _check_constants(name: str, args: tuple[Expr, ...]) -> None:
    """Refuse patterns and units that no value would make sense with."""
    match name, args:
        case "date_format", (_, Literal(str() as pattern)):
            strftime_pattern(pattern)
        case ("date_trunc", (Literal(str() as unit), _)) | ("trunc", (_, Literal(str() as unit))):
            truncation(unit)


def _pair(left: Expr, right: Expr) -> tuple[Expr, Expr]:
    """Both sides of a comparison, a literal in the type of the other side."""
    for side in (left, right):
        _require_comparable(side)
    a, b = type_of(left), type_of(right)
    if a is None or b is None:
        return left, right
    if isinstance(right, Literal):
        return left, Literal(fit(right.value, a))
    if isinstance(left, Literal):
        return Literal(fit(left.value, b)), right
    if family(a) != family(b):
        raise bad(f"cannot compare {left} ({a}) with {right} ({b})")
    return left, right


def _require_comparable(expr: Expr) -> None:
    kind = type_of(expr)
    if family(kind) not in (None, *_COMPARABLE):
        raise bad(f"{expr} is a {kind}, which cannot be compared")


def _alike(exprs: list[Expr], place: str) -> list[Expr]:
    """Expressions of one type, literals fitted to it."""
    kind = _common(exprs)
    if kind is None:
        return exprs
    result: list[Expr] = []
    for expr in exprs:
        if isinstance(expr, Literal):
            result.append(Literal(fit(expr.value, kind)))
            continue
        if family(type_of(expr)) not in (None, family(kind)):
            raise bad(f"{place}: {expr} is a {type_of(expr)}, not a {kind}")
        result.append(expr)
    return result


def _arguments(function: Function, args: tuple[Expr, ...]) -> tuple[Expr, ...]:
    count, most = len(args), function.most
    if count < function.least or (most is not None and count > most):
        limits = {function.least, most} - {None}
        wanted = " or ".join(str(limit) for limit in sorted(limits, key=str))
        more = " or more" if most is None else ""
        raise bad(f"{function.name} takes {wanted}{more} arguments, not {count}")
    if function.gives == "same" and function.takes == ("any",):
        return tuple(_alike(list(args), function.name))
    kinds = (function.kind(position) for position in range(count))
    return tuple(_as_kind(arg, kind, function.name) for arg, kind in zip(args, kinds, strict=True))


def _as_kind(expr: Expr, kind: str, place: str) -> Expr:
    """An argument of the kind a function wants, cast as Spark does where that is harmless."""
    have = family(type_of(expr))
    if have in (None, kind) or kind == "any":
        return expr
    if kind == "string" and have in ("number", "time", "boolean"):
        return bind(Cast(expr, STRING), None)
    if kind == "time" and have == "string":
        return bind(Cast(expr, TIMESTAMP), None)
    shown = show(expr.value) if isinstance(expr, Literal) else str(expr)
    raise bad(f"{place} takes a {kind}; {shown} is a {type_of(expr)}")
