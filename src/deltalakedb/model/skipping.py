"""Data skipping: which files can hold a row that a predicate is true for.

A predicate becomes a tree of probes, each a question about one column of one file. The tree may
keep a file without a matching row, never drop one with a matching row: whatever is not understood
becomes `Always`. It takes the statistics at their word; where a writer left NaN out of a maximum
(delta-rs does), a file whose only match for `x > 5` is NaN is dropped, as other engines do too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Final, Literal, TypeAlias

from deltalakedb.model import expr as ast
from deltalakedb.model.expr import Expr, Path, Value
from deltalakedb.model.expr_bind import bind
from deltalakedb.model.expr_values import cast
from deltalakedb.model.keys import (
    ALL_NULLS,
    MAX,
    MIN,
    NO_NULLS,
    Interval,
    Op,
    key_family,
    key_range,
    prefix_end,
    prefix_range,
    storable,
)
from deltalakedb.model.schema import INTEGRAL, PrimitiveType, StructType


@dataclass(frozen=True)
class Always:
    """Keeps every file."""


@dataclass(frozen=True)
class Never:
    """Keeps no file."""


@dataclass(frozen=True)
class Probe:
    """Keeps files that can hold a wanted value of the column, by its logical path.

    - ``range``: in the key range [lo, hi] and, where the file's exact text bounds are known,
      between `lo_string` and `hi_string` (exclusive when open, unbounded when None)
    - ``null``: null
    - ``not_null``: anything but null
    """

    column: Path
    want: Literal["range", "null", "not_null"]
    lo: int = MIN
    hi: int = MAX
    lo_string: str | None = None
    hi_string: str | None = None
    lo_open: bool = False
    hi_open: bool = False


@dataclass(frozen=True)
class All:
    """Keeps files that every term keeps."""

    terms: tuple[Skip, ...]


@dataclass(frozen=True)
class Any:
    """Keeps files that at least one term keeps."""

    terms: tuple[Skip, ...]


Skip: TypeAlias = Always | Never | Probe | All | Any

_WIDE: Final = 64
"""Terms that one node may have; a long IN list would cost more to test than it saves."""

ALWAYS: Final = Always()
NEVER: Final = Never()

_FLIPPED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "!=": "!="}
_NEGATED: Final = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "=": "!=", "!=": "="}


def skipping(expr: Expr, schema: StructType) -> Skip:
    """The probes of a predicate over a table of this schema."""
    return _skip(bind(expr, schema), truth=True)


def may_match(skip: Skip, interval_of: Callable[[Path], Interval]) -> bool:
    """Whether a file can hold a matching row, given what is known of its columns."""
    match skip:
        case Probe():
            return _probe(skip, interval_of(skip.column))
        case All(terms):
            return all(may_match(term, interval_of) for term in terms)
        case Any(terms):
            return any(may_match(term, interval_of) for term in terms)
    return skip == ALWAYS


def _probe(probe: Probe, found: Interval) -> bool:
    if probe.want == "null":
        return found.nulls != NO_NULLS
    if probe.want == "not_null":
        return found.nulls != ALL_NULLS
    if found.lo > found.hi or found.lo > probe.hi or found.hi < probe.lo:
        return False
    return _below(found.min_string, probe.hi_string, strict=probe.hi_open) and _below(
        probe.lo_string, found.max_string, strict=probe.lo_open
    )


def _below(left: str | None, right: str | None, *, strict: bool) -> bool:
    if left is None or right is None:
        return True
    return left < right if strict else left <= right


# -- from predicates, by negation normal form --------------------------------------------------


def _skip(expr: Expr, *, truth: bool) -> Skip:
    """Files that can hold a row for which the expression is true, or is false."""
    match expr:
        case ast.Literal(value):
            return ALWAYS if value is truth else NEVER
        case ast.Not(term):
            return _skip(term, truth=not truth)
        case ast.And(terms) | ast.Or(terms):
            parts = [_skip(term, truth=truth) for term in terms]
            return _all(parts) if isinstance(expr, ast.And) is truth else _any(parts)
        case ast.Compare("<=>", left, right):
            return _null_safe(left, right, truth=truth)
        case ast.Compare(op, left, right):
            return _compare(op if truth else _NEGATED[op], left, right)
        case ast.IsNull(ast.Column(path)):
            return Probe(path, "null" if truth else "not_null")
        case ast.In(term, values):
            tests = [_compare("=" if truth else "!=", term, ast.Literal(v)) for v in values]
            return _any(tests) if truth else _all(tests)
        case ast.Like(ast.Column(path), pattern):
            return _prefix(path, *_literal_head(pattern)) if truth else Probe(path, "not_null")
        case ast.Call("startswith", (ast.Column(path), ast.Literal(str() as prefix))):
            return _prefix(path, prefix, whole=False) if truth else Probe(path, "not_null")
        case ast.Column():
            return _compare("=", expr, ast.Literal(truth))
    return ALWAYS


def _null_safe(left: Expr, right: Expr, *, truth: bool) -> Skip:
    if isinstance(left, ast.Literal):
        left, right = right, left
    if not isinstance(right, ast.Literal) or not isinstance(left, ast.Column):
        return ALWAYS
    if right.value is None:
        return _skip(ast.IsNull(left), truth=truth)
    if truth:
        return _compare("=", left, right)
    return _any([_compare("!=", left, right), Probe(left.path, "null")])


def _compare(op: str, left: Expr, right: Expr) -> Skip:
    if isinstance(left, ast.Literal):
        op, left, right = _FLIPPED[op], right, left
    if not isinstance(right, ast.Literal):
        return ALWAYS
    value = right.value
    if value is None:
        return NEVER
    match left:
        case ast.Column():
            return _column(op, left, value)
        case ast.Cast(ast.Column() as column, kind) if kind.name == "date" and _is_day(value):
            return _stepwise(op, column, value, timedelta(days=1))
        case ast.Cast(ast.Column() as column, kind):
            whole = kind.name in INTEGRAL and str(column.type) in INTEGRAL
            return _column(op, column, value) if whole else ALWAYS
        case ast.Call("year", (ast.Column() as column,)) if isinstance(value, int):
            return _stepwise(op, column, value, 1)
    return ALWAYS


def _is_day(value: Value) -> bool:
    return isinstance(value, date) and not isinstance(value, datetime)


def _stepwise(op: str, column: ast.Column, value: Value, step: int | timedelta) -> Skip:
    """A test of a function of time that goes up in steps: the year or the day of a column.

    The function is below v exactly before the moment at which it becomes v.
    """
    if str(column.type) not in ("date", "timestamp", "timestamp_ntz"):
        return ALWAYS

    def start(at: object) -> Value:
        day = date(at, 1, 1) if isinstance(at, int) else at
        assert isinstance(day, date)
        return cast(day, PrimitiveType(str(column.type)))

    try:
        first, after = start(value), start(value + step)  # type: ignore[operator]
    except (ValueError, OverflowError):
        return ALWAYS
    before, since = _column("<", column, first), _column(">=", column, after)
    match op:
        case "<":
            return before
        case ">":
            return since
        case "!=":
            return _any([before, since])
    starts = _column(">=", column, first) if op in ("=", ">=") else ALWAYS
    ends = _column("<", column, after) if op in ("=", "<=") else ALWAYS
    return _all([starts, ends])


def _column(op: str, column: ast.Column, value: Value) -> Skip:
    family = None if column.type is None else key_family(column.type)
    if family is None or not _has_key(value, str(column.type)):
        return ALWAYS
    if op == "!=":
        return _any(
            [_range(column.path, "<", value, family), _range(column.path, ">", value, family)]
        )
    return _range(column.path, op, value, family)  # type: ignore[arg-type]


def _has_key(value: Value, kind: str) -> bool:
    """Whether the constant is of the column's own kind, so that their keys are comparable."""
    match value:
        case bool():
            return kind == "boolean"
        case int() | float() | Decimal():
            return PrimitiveType(kind).numeric
        case datetime():
            return kind == ("timestamp_ntz" if value.tzinfo is None else "timestamp")
        case date():
            return kind == "date"
        case str():
            return kind == "string"
    return False


def _range(path: Path, op: Op, value: Value, family: str) -> Skip:
    keys = key_range(op, value, family)
    if keys is None:
        return NEVER
    text = value if isinstance(value, str) and storable(value) else None
    return Probe(
        path,
        "range",
        *keys,
        lo_string=text if op in ("=", ">", ">=") else None,
        hi_string=text if op in ("=", "<", "<=") else None,
        lo_open=text is not None and op == ">",
        hi_open=text is not None and op == "<",
    )


def _literal_head(pattern: str) -> tuple[str, bool]:
    """The text before the first wildcard of a LIKE pattern, and whether that is all of it."""
    head, escaped = "", False
    for char in pattern:
        if char in "%_" and not escaped:
            return head, False
        escaped = char == "\\" and not escaped
        head += "" if escaped else char
    return head, True


def _prefix(path: Path, prefix: str, whole: bool) -> Skip:
    if whole:
        return _range(path, "=", prefix, "string")
    after = prefix_end(prefix)
    after = after if after is not None and storable(after) else None
    return Probe(
        path,
        "range",
        *prefix_range(prefix),
        lo_string=prefix if storable(prefix) else None,
        hi_string=after,
        hi_open=after is not None,
    )


# -- combination -------------------------------------------------------------------------------


def _all(terms: Iterable[Skip]) -> Skip:
    """The conjunction, with the ranges on one column joined into one narrower range."""
    ranges: dict[Path, Probe] = {}
    rest: dict[Skip, None] = {}  # in order, without repetition
    for term in _flat(terms, All):
        if isinstance(term, Probe) and term.want == "range":
            known = ranges.get(term.column)
            ranges[term.column] = term if known is None else _narrow(known, term)
        elif term != ALWAYS:
            rest[term] = None
    if NEVER in rest or any(probe.lo > probe.hi for probe in ranges.values()):
        return NEVER
    merged = (*ranges.values(), *rest)[:_WIDE]  # without some of its terms it keeps more
    return All(merged) if len(merged) > 1 else merged[0] if merged else ALWAYS


def _narrow(a: Probe, b: Probe) -> Probe:
    """A row that matches both ranges lies in their intersection."""
    found = replace(a, lo=max(a.lo, b.lo), hi=min(a.hi, b.hi))
    if a.lo_string is None or (
        b.lo_string is not None and (b.lo_string, b.lo_open) > (a.lo_string, a.lo_open)
    ):
        found = replace(found, lo_string=b.lo_string, lo_open=b.lo_open)
    if a.hi_string is None or (
        b.hi_string is not None and (b.hi_string, not b.hi_open) < (a.hi_string, not a.hi_open)
    ):
        found = replace(found, hi_string=b.hi_string, hi_open=b.hi_open)
    return found


def _any(terms: Iterable[Skip]) -> Skip:
    """The disjunction, with ranges of one column joined where they touch."""
    flat = dict.fromkeys(term for term in _flat(terms, Any) if term != NEVER)
    if ALWAYS in flat:
        return ALWAYS
    kept: list[Skip] = [term for term in flat if not _is_exact_range(term)]
    ranges = [term for term in flat if isinstance(term, Probe) and _is_exact_range(term)]
    last: Probe | None = None
    for probe in sorted(ranges, key=lambda probe: (probe.column, probe.lo)):
        if last is not None and last.column == probe.column and probe.lo <= last.hi + 1:
            last = kept[-1] = replace(last, hi=max(last.hi, probe.hi))
        else:
            last = probe
            kept.append(probe)
    if len(kept) > _WIDE:
        kept = _enclosed(kept)
    if len(kept) > _WIDE:
        return ALWAYS
    return Any(tuple(kept)) if len(kept) > 1 else kept[0] if kept else NEVER


def _enclosed(terms: Iterable[Skip]) -> list[Skip]:
    """The terms with all ranges of a column as one that encloses them."""
    hulls: dict[Path, Probe] = {}
    rest: list[Skip] = []
    for term in terms:
        if isinstance(term, Probe) and term.want == "range":
            hull = hulls.setdefault(term.column, Probe(term.column, "range", term.lo, term.hi))
            lo, hi = min(hull.lo, term.lo), max(hull.hi, term.hi)
            hulls[term.column] = Probe(term.column, "range", lo, hi)
        else:
            rest.append(term)
    return [*hulls.values(), *rest]


def _is_exact_range(term: Skip) -> bool:
    """A range that its keys say everything about."""
    return (
        isinstance(term, Probe)
        and term.want == "range"
        and term.lo_string is None
        and term.hi_string is None
    )


def _flat(terms: Iterable[Skip], kind: type[All | Any]) -> Iterator[Skip]:
    for term in terms:
        if isinstance(term, kind):
            yield from term.terms
        else:
            yield term
