"""CHECK, NOT NULL, invariants and generated columns: no broken row gets in by any verb."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime

import pyarrow as pa
import pytest

from deltalakedb.errors import ConstraintViolation, ExpressionError, InvalidArgument
from deltalakedb.model.schema import GENERATION, INVARIANTS, parse_schema
from support.catalogs import put, rows

NUMBERS = pa.table({"n": [1, 2], "s": ["a", "b"]})


def column(name, kind, nullable=True, **metadata):
    return {"name": name, "type": kind, "nullable": nullable, "metadata": metadata}


def schema(*columns):
    return parse_schema(json.dumps({"type": "struct", "fields": columns}))


@pytest.mark.parametrize(
    ("check", "bad", "good"),
    [
        ("n > 0", [0, -1], [1]),
        ("n > 0", [None], [1]),
        ("n IS NULL OR n < 3", [3], [None, 2]),
        ("n BETWEEN 1 AND 3 AND s <> 'x'", [4], [3]),
        ("length(s) = 1", [], [1]),
        ("s = \"a\" OR s = 'b'", [], [1]),
    ],
)
def test_a_check_must_be_true_for_every_row(catalog, unchanged, check, bad, good):
    table = put(catalog, "t", NUMBERS)
    table.alter.add_constraint({"Rule": check})
    assert table.metadata().configuration["delta.constraints.rule"] == check
    for value in bad:
        data = pa.table({"n": pa.array([*good, value], pa.int64()), "s": ["a"] * (len(good) + 1)})
        with unchanged(), pytest.raises(ConstraintViolation) as caught:
            put(catalog, "t", data)
        error = caught.value
        assert (error.table, error.constraint, error.expression) == ("t", "rule", check)
        assert error.rows == 1
        assert error.sample == [{"n": value, "s": "a"}]
        assert check in str(error)
    put(catalog, "t", pa.table({"n": pa.array(good, pa.int64()), "s": ["a"] * len(good)}))
    assert catalog.table("t").count() == 2 + len(good)


def test_a_check_holds_for_overwrite_merge_and_transactions(catalog, unchanged):
    table = put(catalog, "t", NUMBERS)
    table.alter.add_constraint({"positive": "n > 0"})
    broken = pa.table({"n": [-1], "s": ["a"]})
    with unchanged():
        for options in (
            {"mode": "overwrite"},
            {"mode": "overwrite", "predicate": "n < 2"},
            {"schema_mode": "merge"},
        ):
            with pytest.raises(ConstraintViolation, match="positive"):
                put(catalog, "t", broken, **options)
        with catalog.begin() as tx:
            tx.write("other", NUMBERS)
            with pytest.raises(ConstraintViolation):
                tx.write("t", broken)
            tx.rollback()
    assert catalog.list_tables() == ["t"]


def test_adding_a_check_validates_the_rows_that_are_there(catalog, unchanged):
    table = put(catalog, "t", NUMBERS)
    put(catalog, "t", pa.table({"n": [None], "s": ["c"]}, NUMBERS.schema))
    with unchanged():
        with pytest.raises(ConstraintViolation, match="2 rows") as caught:
            table.alter.add_constraint({"big": "n > 1"})
        assert caught.value.rows == 2
        with pytest.raises(ExpressionError, match="nope"):
            table.alter.add_constraint({"unknown": "nope > 1"})
        with pytest.raises(ExpressionError):
            table.alter.add_constraint({"number": "n + 1"})


def test_a_check_that_is_dropped_no_longer_binds(catalog, unchanged):
    table = put(catalog, "t", NUMBERS)
    table.alter.add_constraint({"positive": "n > 0", "short": "length(s) < 9"})
    with unchanged(), pytest.raises(InvalidArgument, match="already"):
        table.alter.add_constraint({"POSITIVE": "n > 5"})
    table.alter.drop_constraint("Positive")
    put(catalog, "t", pa.table({"n": [-1], "s": ["a"]}))
    assert list(catalog.table("t").metadata().configuration) == ["delta.constraints.short"]
    with unchanged():
        with pytest.raises(InvalidArgument, match="no constraint"):
            table.alter.drop_constraint("positive")
        table.alter.drop_constraint("positive", missing="ignore")


def test_checks_may_come_with_a_new_table(catalog, unchanged):
    properties = {"delta.constraints.positive": "n > 0"}
    catalog.create_table("t", NUMBERS.schema, properties=properties)
    assert catalog.table("t").protocol().min_writer_version == 3
    with unchanged(), pytest.raises(ConstraintViolation):
        put(catalog, "t", pa.table({"n": [0]}))
    with unchanged(), pytest.raises(ConstraintViolation):
        put(catalog, "u", pa.table({"n": [0]}), configuration=properties)


def test_not_null_holds_also_for_columns_that_are_left_out(catalog, unchanged):
    catalog.create_table(
        "t", pa.schema([pa.field("id", pa.int64(), nullable=False), ("s", pa.string())])
    )
    put(catalog, "t", pa.table({"id": [1]}))
    with unchanged():
        with pytest.raises(ConstraintViolation, match="id") as caught:
            put(catalog, "t", pa.table({"id": [2, None, None]}))
        assert caught.value.rows == 2
        assert caught.value.constraint == "id NOT NULL"
        with pytest.raises(ConstraintViolation, match="id"):
            put(catalog, "t", pa.table({"s": ["a"]}))
    assert rows(catalog.table("t")) == [{"id": 1, "s": None}]


def test_not_null_partition_columns_take_no_null(catalog, unchanged):
    catalog.create_table(
        "t",
        pa.schema([pa.field("p", pa.string(), nullable=False), ("n", pa.int64())]),
        partition_by="p",
    )
    put(catalog, "t", pa.table({"p": ["x"], "n": [1]}))
    with unchanged(), pytest.raises(ConstraintViolation, match="p"):
        put(catalog, "t", pa.table({"p": pa.array([None], pa.string()), "n": [1]}))
    with unchanged(), pytest.raises(ConstraintViolation, match="p"):
        put(catalog, "t", pa.table({"p": [""], "n": [1]}))  # it would read back as null


POINT = pa.struct([pa.field("x", pa.int64(), nullable=False), ("y", pa.int64())])


@pytest.mark.parametrize(
    ("kind", "bad", "good", "path"),
    [
        (POINT, {"x": None, "y": 1}, [{"x": 1, "y": None}, None], "v.x"),
        (
            pa.list_(pa.field("element", pa.int64(), nullable=False)),
            [1, None],
            [[], [1], None],
            "v.element",
        ),
        (pa.list_(POINT), [{"x": None, "y": 1}], [[{"x": 1}], [None], None], "v.element.x"),
        (pa.struct([("p", POINT)]), {"p": {"x": None}}, [{"p": None}, {"p": {"x": 1}}], "v.p.x"),
        (
            pa.map_(pa.string(), pa.field("value", pa.int64(), nullable=False)),
            [("k", None)],
            [[("k", 1)], [], None],
            "v.value",
        ),
        (pa.map_(pa.string(), POINT), [("k", {"x": None})], [[("k", {"x": 1})]], "v.value.x"),
    ],
    ids=str,
)
def test_not_null_holds_inside_nested_values(catalog, unchanged, kind, bad, good, path):
    loose = _nullable(kind)
    catalog.create_table("t", pa.schema([("v", kind)]))
    put(catalog, "t", pa.table({"v": pa.array(good, loose)}))
    with unchanged(), pytest.raises(ConstraintViolation, match=path) as caught:
        put(catalog, "t", pa.table({"v": pa.array([*good, bad], loose)}))
    assert caught.value.rows == 1
    assert catalog.table("t").count() == len(good)


def _nullable(kind):
    """The same type with nulls allowed everywhere, as data comes."""
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(f.name, _nullable(f.type)) for f in kind])
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, _nullable(kind.item_type))
    if pa.types.is_list(kind):
        return pa.list_(_nullable(kind.value_type))
    return kind


def test_an_invariant_must_be_true(catalog, unchanged):
    text = json.dumps({"expression": {"expression": "n < 10"}})
    catalog.create_table("t", schema(column("n", "long", **{INVARIANTS: text})))
    put(catalog, "t", pa.table({"n": [9]}))
    with unchanged():
        for value in (10, None):
            with pytest.raises(ConstraintViolation, match="n < 10") as caught:
                put(catalog, "t", pa.table({"n": pa.array([value], pa.int64())}))
            assert caught.value.constraint == "n"


def test_an_invariant_inside_a_struct_must_be_true(catalog, unchanged):
    text = json.dumps({"expression": {"expression": "s.n < 10"}})
    inner = {"type": "struct", "fields": [column("n", "long", **{INVARIANTS: text})]}
    catalog.create_table("t", schema(column("s", inner)))
    put(catalog, "t", pa.table({"s": [{"n": 9}]}))
    with unchanged(), pytest.raises(ConstraintViolation, match=r"s\.n"):
        put(catalog, "t", pa.table({"s": [{"n": 10}]}))


def test_conditions_nobody_can_check_are_refused_from_the_start(catalog, unchanged):
    broken = json.dumps({"expression": {"expression": "nope < 10"}})
    with unchanged():
        for made, properties in (
            (NUMBERS.schema, {"delta.constraints.c": "nope > 0"}),
            (NUMBERS.schema, {"delta.constraints.c": "n >"}),
            (NUMBERS.schema, {"delta.constraints.c": "n + 1"}),
            (schema(column("n", "long", **{INVARIANTS: broken})), {}),
            (schema(column("n", "long"), column("m", "long", **{GENERATION: "nope + 1"})), {}),
        ):
            with pytest.raises(ExpressionError):
                catalog.create_table("t", made, properties=properties)


@pytest.fixture
def events(catalog):
    day = column("day", "date", **{GENERATION: "CAST(at AS DATE)"})
    double = column("double", "long", **{GENERATION: "n * 2"})
    return catalog.create_table(
        "events",
        schema(column("at", "timestamp"), column("n", "long"), day, double),
        partition_by="day",
    )


NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


def test_generated_columns_are_computed(catalog, events):
    assert events.protocol().min_writer_version == 4
    table = put(catalog, "events", pa.table({"at": [NOON, None], "n": [2, None]}))
    assert rows(table, filter="n IS NOT NULL") == [
        {"at": NOON, "n": 2, "day": date(2026, 1, 31), "double": 4}
    ]
    assert rows(table, filter="n IS NULL") == [{"at": None, "n": None, "day": None, "double": None}]
    assert {"day": date(2026, 1, 31)} in table.partitions()


def test_generated_columns_that_are_given_must_be_right(catalog, events, unchanged):
    right = {"at": [NOON], "n": [2], "day": [date(2026, 1, 31)], "double": [4]}
    put(catalog, "events", pa.table(right))
    nulls = pa.table(
        {"at": [NOON], "n": pa.nulls(1, pa.int64()), "double": pa.nulls(1, pa.int64())}
    )
    put(catalog, "events", nulls)
    with unchanged():
        for wrong in ({"double": [5]}, {"day": [date(2026, 2, 1)]}):
            with pytest.raises(ConstraintViolation, match=next(iter(wrong))) as caught:
                put(catalog, "events", pa.table(right | wrong))
            assert caught.value.rows == 1
        with pytest.raises(ConstraintViolation, match="double"):
            put(
                catalog,
                "events",
                pa.table(right | {"double": pa.nulls(1, pa.int64())}),
            )
    assert catalog.table("events").count() == 2


def test_rows_that_a_delete_keeps_stay_within_their_constraints(catalog, events):
    put(catalog, "events", pa.table({"at": [NOON] * 3, "n": [1, 2, 3]}))
    table = catalog.table("events")
    table.delete("n = 2")
    assert sorted((r["n"], r["double"]) for r in rows(table)) == [(1, 2), (3, 6)]
