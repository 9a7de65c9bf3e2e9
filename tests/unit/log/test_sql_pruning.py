"""Predicates as SQL: what is asked of the database, and that its answer is exact to the key."""

from __future__ import annotations

import itertools

import pytest

from deltalakedb.log.pruning import prune
from deltalakedb.log.tracking import TrackedColumn
from deltalakedb.model.expr import parse
from deltalakedb.sql.base import Dialect
from support.actions import PROTOCOL, add, metadata, schema, snapshot, stats
from support.logs import Log

SCHEMA = schema(p="string", id="long", s="string", raw="binary", late="long")
SNAPSHOT = snapshot(
    metadata=metadata(SCHEMA),
    tracked=(
        TrackedColumn(0, ("p",), "string", 0),
        TrackedColumn(1, ("id",), "int", 0),
        TrackedColumn(2, ("s",), "string", 0),
        TrackedColumn(3, ("late",), "int", 9),
    ),
)


def dialect(*, indexes):
    return Dialect("x", {}, "", indexes=indexes)


def condition(text, *, indexes=True):
    return prune(parse(text, SCHEMA), SNAPSHOT, dialect(indexes=indexes))


@pytest.mark.parametrize(
    "text",
    [
        "raw = X'00'",
        "id % 2 = 0",
        "id = 1 OR raw IS NULL",
        "true",
        "id = late",
        "upper(s) = 'X'",
    ],
)
def test_what_the_database_cannot_answer_keeps_every_file(text):
    assert condition(text) == ("", [])


def test_nothing_is_asked_where_nothing_can_match():
    assert condition("false") == ("1 = 0", [])
    assert condition("id = 1 AND id = 2") == ("1 = 0", [])


def test_a_conjunction_is_asked_as_far_as_it_can_be():
    assert condition("id = 1 AND id % 2 = 0") == condition("id = 1")


def test_every_value_is_bound():
    sql, params = condition("s = 'x''; DROP TABLE dl_tables; --'")
    assert "DROP" not in sql
    assert sql.count("?") == len(params)
    sql, params = condition("id > 5 AND (p = 'a' OR s LIKE 'x%') AND late IS NOT NULL")
    assert sql.count("?") == len(params)


def test_files_from_before_the_column_are_kept():
    sql, params = condition("late = 1")
    assert sql.startswith("(f.version < ? OR ")
    assert params[0] == 9


def test_width_classes_are_only_for_indexes():
    assert "VALUES" in condition("id = 1")[0]
    assert "VALUES" not in condition("id = 1", indexes=False)[0]
    assert "VALUES" not in condition("id IS NULL")[0]


# --- on every engine ------------------------------------------------------------------------------

EDGES = (-(2**63), -(2**63) + 1, -(2**62), -1, 0, 1, 2**53, 2**62, 2**63 - 2, 2**63 - 1)
TEXTS = ("", "a", "aaaaaaaa", "aaaaaaaaa", "aaaaaaaab", "b", "ß", "雪", "\U0001f600")


def intervals(values):
    return [(a, b) for a, b in itertools.product(values, values) if a <= b]


@pytest.fixture
def log(catalog_uri):
    with Log(catalog_uri) as log:
        yield log


def test_integers_at_the_edges(log):
    log.create("t", actions=[PROTOCOL, metadata(SCHEMA)])
    pairs = {f"f{n}": pair for n, pair in enumerate(intervals(EDGES))}
    log.commit("t", *(add(name, stats=stats(2, id=pair)) for name, pair in pairs.items()))

    def found(text):
        return set(log.paths("t", where=parse(text, SCHEMA)))

    for value in EDGES:
        assert found(f"id = {value}") == {n for n, (a, b) in pairs.items() if a <= value <= b}
        assert found(f"id <= {value}") == {n for n, (a, _) in pairs.items() if a <= value}
        assert found(f"id > {value}") == {n for n, (_, b) in pairs.items() if b > value}
        assert found(f"id BETWEEN {value} AND 5") == {
            n for n, (a, b) in pairs.items() if a <= 5 and b >= value and value <= 5
        }


def test_texts_with_long_common_beginnings(log):
    log.create("t", actions=[PROTOCOL, metadata(SCHEMA)])
    pairs = {f"f{n}": pair for n, pair in enumerate(intervals(TEXTS))}
    log.commit("t", *(add(name, stats=stats(2, s=pair)) for name, pair in pairs.items()))
    for value in TEXTS:
        for operator, holds in {
            "=": lambda a, b: a <= value <= b,  # noqa: B023 - used at once
            "<": lambda a, _: a < value,  # noqa: B023
            ">=": lambda _, b: b >= value,  # noqa: B023
        }.items():
            found = log.paths("t", where=parse(f"s {operator} '{value}'", SCHEMA))
            assert found == sorted(n for n, pair in pairs.items() if holds(*pair)), operator


def test_files_without_a_value_match_no_comparison(log):
    log.create("t", actions=[PROTOCOL, metadata(SCHEMA)])
    nothing = '{"numRecords":3,"nullCount":{"id":3,"s":3}}'
    log.commit("t", add("null", None, stats=nothing), add("unknown"), add("one", stats=stats(1)))
    for text, expected in {
        "id = 1": ["one", "unknown"],
        "id != 1": ["one", "unknown"],
        "id >= -9223372036854775808": ["one", "unknown"],
        "s >= ''": ["one", "unknown"],
        "id IS NULL": ["null", "one", "unknown"],
        "id IS NOT NULL": ["one", "unknown"],
        "p IS NULL": ["null"],
        "p IS NOT NULL": ["one", "unknown"],
        "p > ''": ["one", "unknown"],
    }.items():
        assert log.paths("t", where=parse(text, SCHEMA)) == expected, text
