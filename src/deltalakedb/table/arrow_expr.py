"""Expressions as Arrow compute expressions, for dataset filters and projections.

The semantics are those of `model.expr`. Plain comparisons of a column with a constant stay plain,
so that Arrow can skip Parquet row groups by their statistics. Those leave NaN out, so predicates
that NaN may satisfy are not for a scan of Parquet files: `compile_scan` tells them apart.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from deltalakedb.errors import ExpressionError
from deltalakedb.model import expr as ast
from deltalakedb.model.arrow import arrow_type
from deltalakedb.model.expr import Expr, Path, Value
from deltalakedb.model.expr_bind import type_of
from deltalakedb.model.keys import prefix_end
from deltalakedb.model.schema import INTEGRAL, DataType
from deltalakedb.table.arrow_functions import (
    FLOATS,
    NAIVE,
    ArrowExpr,
    as_numbers,
    call,
    cast,
    kind_of,
)

Physical: TypeAlias = Callable[[Path], Path]

_UNKNOWN: Final = pa.scalar(None, pa.bool_())
_NEGATED: Final = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "=": "!=", "!=": "="}


def compile_scan(
    expr: Expr, *, physical: Physical | None = None
) -> tuple[ArrowExpr, ArrowExpr | None]:
    """A filter for a scan of Parquet files, and one for the rows it gives if more is to be done.

    Where all values of a row group but NaN are equal, Arrow computes a filter from that value
    alone and skips the NaN rows, whatever the filter says of them. So terms that may be true for
    NaN, such as ``x > 5`` without an upper bound, are left for later.
    """
    terms = ast.conjuncts(expr)
    bounded = {path for term in terms for path in _bounded_above(term)}
    early = [term for term in terms if _is_false_for_nan(term, bounded)]
    late = [term for term in terms if term not in early]
    scan = compile_filter(ast.conjoin(early), physical=physical)
    return scan, compile_filter(ast.conjoin(late), physical=physical) if late else None


def compile_filter(expr: Expr, *, physical: Physical | None = None) -> ArrowExpr:
    """A filter that keeps the rows for which a bound predicate is true.

    `physical` maps logical column paths to those in the data; without it they are the same.

    Raises:
        ExpressionError: names a function that Arrow cannot compute.
    """
    return _Compiler(physical or _same).keep(expr)


def compile_scalar(expr: Expr, *, physical: Physical | None = None) -> ArrowExpr:
    """The value of a bound expression, for a projection."""
    return _Compiler(physical or _same).value(expr)


def filter_table(table: pa.Table, expr: Expr) -> pa.Table:
    """The rows for which a bound predicate is true."""
    keep = compile_filter(expr)
    with _computing(expr):
        return table.filter(keep)


def project(table: pa.Table, exprs: Mapping[str, Expr]) -> pa.Table:
    """A table of the values of bound expressions, row by row."""
    import pyarrow.dataset as ds

    columns = {name: compile_scalar(expr) for name, expr in exprs.items()}
    with _computing(*exprs.values()):
        return ds.dataset(table).scanner(columns=columns).to_table()


def evaluate(expr: Expr, table: pa.Table) -> pa.ChunkedArray:
    """The value of a bound expression for every row of a table."""
    return project(table, {"value": expr})["value"]


@contextmanager
def _computing(*exprs: Expr) -> Iterator[None]:
    """Arrow's errors while computing, such as a failed cast, are about the expressions."""
    try:
        yield
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        text, reason = ", ".join(map(str, exprs)), str(error).splitlines()[0]
        message = f"cannot compute {text}: {reason}"
        raise ExpressionError(message, expression=text, reason=reason) from error


def _same(path: Path) -> Path:
    return path


class _Compiler:
    """Compiles bound expressions; `physical` finds their columns."""

    def __init__(self, physical: Physical) -> None:
        self._physical = physical

    def keep(self, expr: Expr) -> ArrowExpr:
        """Like `value` for a predicate, where NULL is as good as false."""
        match expr:
            case ast.And(terms):
                bounded = {path for term in terms for path in _bounded_above(term)}
                return _balanced([self._conjunct(term, bounded) for term in terms], _and)
            case ast.Or(terms):
                return _balanced([self.keep(term) for term in terms], _or)
            case ast.Not(ast.Compare(op, left, right)) if op in _NEGATED:
                return self._compare(_NEGATED[op], left, right)
            case ast.In(term, values):
                return self._member(term, [value for value in values if value is not None])
            case ast.Like(term, pattern):
                prefix = re.split(r"[%_\\]", pattern, maxsplit=1)[0]
                return _prefixed(self.value(term), prefix) & self.value(expr)
            case ast.Call("startswith", (term, ast.Literal(str() as prefix))):
                return _prefixed(self.value(term), prefix) & self.value(expr)
        return self._logical(expr)

    def _conjunct(self, expr: Expr, bounded: Collection[Path]) -> ArrowExpr:
        """A term beside others that rule out NaN in some columns, so that it need not be met."""
        match expr:
            case ast.Compare(">" | ">=" as op, ast.Column(path), ast.Literal()) if path in bounded:
                a, b = self._sides(expr.left, expr.right)
                return a > b if op == ">" else a >= b
        return self.keep(expr)

    def value(self, expr: Expr) -> ArrowExpr:
        """The value of an expression in three-valued logic."""
        match expr:
            case ast.Literal(value):
                return _scalar(value)
            case ast.Column(path):
                return pc.field(*self._physical(path))
            case ast.Compare(op, left, right):
                return self._compare(op, left, right)
            case ast.And(terms):
                return _balanced([self._logical(term) for term in terms], _and)
            case ast.Or(terms):
                return _balanced([self._logical(term) for term in terms], _or)
            case ast.Not(term):
                return ~self._logical(term)
            case ast.IsNull(term):
                return self.value(term).is_null()
            case ast.In(term, values):
                return self._in(term, values)
            case ast.Like(term, pattern):
                return pc.match_like(self.value(term), pattern)
            case ast.Cast(term, kind):
                return cast(self.value(term), type_of(term), kind)
            case ast.Case():
                return self._case(expr)
            case ast.Call(name, args):
                same = type_of(expr) if name in ("coalesce", "greatest", "least") else None
                return call(name, [self._typed(arg, same) for arg in args], args)
        raise TypeError(f"no Arrow expression for {expr!r}")

    def _logical(self, expr: Expr) -> ArrowExpr:
        unknown = isinstance(expr, ast.Literal) and expr.value is None
        return pc.scalar(_UNKNOWN) if unknown else self.value(expr)

    def _typed(self, expr: Expr, kind: DataType | None) -> ArrowExpr:
        return _scalar(expr.value, kind) if isinstance(expr, ast.Literal) else self.value(expr)

    def _case(self, expr: ast.Case) -> ArrowExpr:
        tests = pc.make_struct(
            *(self._logical(test) for test, _ in expr.branches),
            field_names=[str(place) for place in range(len(expr.branches))],
        )
        results = [*(then for _, then in expr.branches), expr.otherwise]
        values = [self._typed(result, type_of(expr)) for result in results]
        return pc.case_when(tests, *as_numbers(values, results))

    def _in(self, term: Expr, values: Sequence[Value]) -> ArrowExpr:
        known = [value for value in values if value is not None]
        found = self._member(term, known)
        if len(known) < len(values):
            return found | pc.scalar(_UNKNOWN)
        return pc.if_else(self.value(term).is_valid(), found, _UNKNOWN)

    def _member(self, term: Expr, values: Sequence[Value]) -> ArrowExpr:
        """Membership, where NULL is no member."""
        if not values:
            return pc.scalar(False)
        kind = type_of(term)
        if kind is not None and str(kind) not in FLOATS and all(_fits(v, kind) for v in values):
            try:
                return pc.is_in(self.value(term), pa.array(values, arrow_type(kind)))
            except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
                pass  # numbers that the column cannot hold
        tests = [self._compare("=", term, ast.Literal(value)) for value in values]
        return pc.coalesce(_balanced(tests, _or), pc.scalar(False))

    def _compare(self, op: str, left: Expr, right: Expr) -> ArrowExpr:
        """A comparison in which NaN is equal to itself and above every number."""
        nulls = [isinstance(side, ast.Literal) and side.value is None for side in (left, right)]
        if any(nulls) and op != "<=>":
            return pc.scalar(_UNKNOWN)
        if any(nulls):
            return self.value(right if nulls[0] else left).is_null()
        a, b = self._sides(left, right)
        nan_a, nan_b = _nan(a, left), _nan(b, right)
        match op:
            case "=":
                return a == b if nan_a is None or nan_b is None else (a == b) | (nan_a & nan_b)
            case "!=":
                return a != b if nan_a is None or nan_b is None else (a != b) & ~(nan_a & nan_b)
            case "<":
                return a < b if nan_b is None else (a < b) | (nan_b & _not_nan(nan_a, a))
            case "<=":
                return a <= b if nan_b is None else (a <= b) | (nan_b & a.is_valid())
            case ">":
                return a > b if nan_a is None else (a > b) | (nan_a & _not_nan(nan_b, b))
            case ">=":
                return a >= b if nan_a is None else (a >= b) | (nan_a & b.is_valid())
        equal = pc.coalesce(self._compare("=", left, right), pc.scalar(False))
        return equal | (a.is_null() & b.is_null())

    def _sides(self, left: Expr, right: Expr) -> list[ArrowExpr]:
        """Both sides of a comparison in types that Arrow compares."""
        sides = [self._typed(left, type_of(right)), self._typed(right, type_of(left))]
        if {kind_of(left), kind_of(right)} == {"timestamp", "timestamp_ntz"}:
            return [side.cast(NAIVE) for side in sides]
        return as_numbers(sides, [left, right])


def _is_false_for_nan(expr: Expr, bounded: Collection[Path]) -> bool:
    """Whether no row with NaN in a column that the predicate reads can satisfy it."""
    match expr:
        case ast.And(terms) | ast.Or(terms):
            return all(_is_false_for_nan(term, bounded) for term in terms)
        case ast.Compare(_, ast.Column(path), ast.Literal()) if path in bounded:
            return True
        case ast.Compare() if any(_bounded_above(expr)):
            return True
    return not _reads_floats(expr)


def _reads_floats(expr: Expr) -> bool:
    if isinstance(expr, ast.Column):
        return kind_of(expr) in FLOATS
    return any(map(_reads_floats, expr.parts))


def _bounded_above(expr: Expr) -> Iterator[Path]:
    """Columns that are not NaN where a comparison with a number is true."""
    match expr:
        case ast.Compare("<" | "<=" | "=", ast.Column(path), ast.Literal(float() as number)):
            if not math.isnan(number):
                yield path


def _nan(value: ArrowExpr, expr: Expr) -> ArrowExpr | None:
    """Whether a value is NaN; None if it cannot be."""
    if isinstance(expr, ast.Literal):
        nan = isinstance(expr.value, float) and math.isnan(expr.value)
        return pc.scalar(True) if nan else None
    return pc.is_nan(value) if kind_of(expr) in FLOATS else None


def _not_nan(nan: ArrowExpr | None, value: ArrowExpr) -> ArrowExpr:
    return value.is_valid() if nan is None else ~nan


def _scalar(value: Value, kind: DataType | None = None) -> ArrowExpr:
    """A constant, of the wanted type where that holds it exactly."""
    if kind is not None and _fits(value, kind):
        try:
            return pc.scalar(pa.scalar(value, arrow_type(kind)))
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
            pass  # a number that the column cannot hold
    if isinstance(value, int) and value.bit_length() > 63:
        return pc.scalar(Decimal(value) if abs(value) < 10**38 else float(value))
    return pc.scalar(value)


def _fits(value: Value, kind: DataType) -> bool:
    """Whether Arrow converts a constant to the type exactly or not at all.

    It rounds doubles to floats and cuts decimals to integers.
    """
    if str(kind) in INTEGRAL:
        return value is None or isinstance(value, int)
    return str(kind) != "float"


def _prefixed(value: ArrowExpr, prefix: str) -> ArrowExpr:
    """What row-group statistics can tell about text that starts with a prefix."""
    end = prefix_end(prefix)
    return value >= prefix if end is None else (value >= prefix) & (value < end)


def _balanced(terms: Sequence[ArrowExpr], join: Callable[[Any, Any], Any]) -> ArrowExpr:
    """Joined as a shallow tree, for Arrow recurses into expressions."""
    if len(terms) == 1:
        return terms[0]
    half = len(terms) // 2
    return join(_balanced(terms[:half], join), _balanced(terms[half:], join))


def _and(left: Any, right: Any) -> Any:
    return left & right


def _or(left: Any, right: Any) -> Any:
    return left | right
