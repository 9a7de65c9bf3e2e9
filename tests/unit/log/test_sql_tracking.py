"""Which columns are pruned by, and since when; and that nothing is lost where that changes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from deltalakedb.log.tracking import TrackedColumn, decode_tracked, encode_tracked, track
from deltalakedb.model.actions import Protocol
from deltalakedb.model.expr import parse
from deltalakedb.model.schema import PrimitiveType, StructField, StructType
from support.actions import PROTOCOL, add, metadata, remove, schema, stats
from support.logs import Log

START = schema(p="string", id="long", s="string", raw="binary")


def tracked(columns, before=(), version=0, **more):
    return track(metadata(columns, **more), before, version)


def test_partition_columns_come_first_and_types_without_order_are_left_out():
    assert tracked(START) == (
        TrackedColumn(0, ("p",), "string", 0),
        TrackedColumn(1, ("id",), "int", 0),
        TrackedColumn(2, ("s",), "string", 0),
    )


def test_a_column_that_stays_keeps_its_place():
    before = tracked(START)
    assert tracked(START, before, 5) == before
    assert tracked(schema(s="string", id="integer", p="string"), before, 5)[1:] == (
        before[2],
        before[1],
    )


def test_a_column_that_comes_later_starts_later():
    before = tracked(START)
    after = tracked(schema(p="string", id="long", new="date", s="string"), before, 5)
    assert after[2] == TrackedColumn(3, ("new",), "days", 5)
    assert {c.id for c in after} == {0, 1, 2, 3}


@pytest.mark.parametrize(
    ("old", "new", "anew"),
    [
        ("byte", "long", False),
        ("float", "double", False),
        ("decimal(5,2)", "decimal(20,2)", False),
        ("decimal(5,2)", "decimal(20,3)", True),
        ("integer", "double", True),
        ("long", "decimal(20,0)", True),
        ("date", "timestamp_ntz", True),
        ("timestamp_ntz", "timestamp", False),
        ("string", "long", True),
    ],
)
def test_a_column_starts_anew_when_its_values_get_other_keys(old, new, anew):
    before = tracked(schema(p="string", x=old))
    after = tracked(schema(p="string", x=new), before, 3)
    assert (after[1] != before[1]) is anew
    assert after[1].since == (3 if anew else 0)
    assert (after[1].id != before[1].id) is anew


def test_the_property_narrows_it():
    few = tracked(START, delta__dataSkippingNumIndexedCols="1")
    assert [c.path for c in few] == [("p",), ("id",)]
    named = tracked(START, delta__dataSkippingStatsColumns="s")
    assert [c.path for c in named] == [("p",), ("s",)]


def test_a_dot_in_a_name_is_no_step_into_a_struct(catalog_uri):
    inside = StructField("b", PrimitiveType("long"), True)
    columns = StructType(
        (
            StructField("p", PrimitiveType("string"), True),
            StructField("a", StructType((inside,)), True),
            StructField("a.b", PrimitiveType("long"), True),
        )
    )
    bounds = '{"minValues":{"a":{"b":1},"a.b":9},"maxValues":{"a":{"b":1},"a.b":9}}'
    with Log(catalog_uri) as log:
        log.create("t", actions=[PROTOCOL, metadata(columns)])
        log.commit("t", add("f", stats=bounds))
        assert found(log, "a.b = 1") == found(log, "`a.b` = 9") == ["f"]
        assert found(log, "a.b = 9") == found(log, "`a.b` = 1") == []


def test_as_text():
    before = tracked(START)
    assert decode_tracked(encode_tracked(before)) == before
    assert decode_tracked(None) == ()


# --- on every engine ------------------------------------------------------------------------------

WIDENING = Protocol(
    min_reader_version=3,
    min_writer_version=7,
    reader_features=("typeWidening", "timestampNtz"),
    writer_features=("typeWidening", "timestampNtz"),
)


def found(log, text, version=None):
    return log.paths("t", version, parse(text, log.snapshot("t", version).schema))


def test_files_from_before_a_column_are_kept(catalog_uri):
    with Log(catalog_uri) as log:
        log.create("t", actions=[WIDENING, metadata(schema(p="string", id="long"))])
        log.commit("t", add("old", stats=stats(1, id=(1, 1))))
        log.commit("t", metadata(schema(p="string", id="long", n="long")))
        log.commit("t", add("low", stats=stats(1, n=(1, 1))), add("high", stats=stats(1, n=(9, 9))))
        assert found(log, "n = 9") == ["high", "old"]
        assert found(log, "n = 9 AND id = 2") == ["high"]
        assert found(log, "n IS NULL") == ["old"]
        assert found(log, "id = 1", 1) == ["old"]
        assert found(log, "id = 2", 1) == []


def test_a_date_that_became_a_timestamp_is_still_found(catalog_uri):
    """Days and microseconds are both integers, and not the same."""
    with Log(catalog_uri) as log:
        log.create("t", actions=[WIDENING, metadata(schema(p="string", at="date"))])
        log.commit("t", add("old", stats=stats(1, at=("2024-05-01", "2024-05-01"))))
        log.commit("t", metadata(schema(p="string", at="timestamp_ntz")))
        bounds = ("2025-01-01T00:00:00.000", "2025-01-02T00:00:00.000")
        log.commit("t", add("new", stats=stats(1, at=bounds)))
        assert "old" in found(log, "at = TIMESTAMP_NTZ '2024-05-01 00:00:00'")
        assert found(log, "at > TIMESTAMP_NTZ '2026-01-01 00:00:00'") == ["old"]
        assert found(log, "at = DATE '2024-05-01'", 1) == ["old"]
        assert found(log, "at = DATE '2024-05-02'", 1) == []


def test_rows_that_are_there_have_the_keys_of_their_time(catalog_uri):
    """Inside a transaction a type may have changed already, and no row of the database has."""
    with Log(catalog_uri) as log:
        log.create("t", actions=[WIDENING, metadata(schema(p="string", at="date"))])
        log.commit("t", add("old", stats=stats(1, at=("2024-05-01", "2024-05-01"))))
        staged = replace(
            log.snapshot("t"), metadata=metadata(schema(p="string", at="timestamp_ntz"))
        )
        where = parse("at = TIMESTAMP_NTZ '2024-05-01 00:00:00'", staged.schema)
        listed = log.reader("t").files(staged, where, ["path"]).read_all()
        assert listed["path"].to_pylist() == ["old"]


def test_a_column_that_is_gone_and_another_in_its_place(catalog_uri):
    with Log(catalog_uri) as log:
        both = schema(p="string", a="long", b="long")
        log.create("t", actions=[WIDENING, metadata(both)])
        log.commit("t", add("one", stats=stats(1, a=(1, 1), b=(1, 1))))
        log.commit("t", metadata(schema(p="string", a="long")))
        log.commit("t", add("two", stats=stats(1, a=(2, 2), b=(1, 1))))
        log.commit("t", metadata(schema(p="string", a="long", c="long")))
        log.commit("t", add("three", stats=stats(1, a=(3, 3), c=(7, 7))))
        assert found(log, "c = 7") == ["one", "three", "two"]
        assert found(log, "c = 8") == ["one", "two"]
        assert found(log, "b = 2", 1) == []
        log.commit("t", metadata(both))
        assert found(log, "b = 1") == ["one", "three", "two"]


def test_a_file_added_again_is_pruned_by_its_new_statistics(catalog_uri):
    with Log(catalog_uri) as log:
        log.create("t")
        log.commit("t", add("f"))
        log.commit("t", add("f", data_change=False, stats=stats(1, id=(1, 5))))
        log.commit("t", remove("f"), add("g", stats=stats(1, id=(9, 9))))
        assert found(log, "id = 9", 1) == ["f"]
        assert found(log, "id = 9", 2) == []
        assert found(log, "id = 3", 2) == ["f"]
        assert found(log, "id = 9", 3) == ["g"]
