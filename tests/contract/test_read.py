"""Reading: filters, pruning, projection, counting, and what is told about files."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import deltalake
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import deltalakedb as dl
from deltalakedb.errors import InvalidArgument, UnsupportedByBackend
from support.catalogs import put, rows

DAY = date(2026, 1, 1)
START = datetime(2026, 1, 1, tzinfo=UTC)


def batch(number: int) -> pa.Table:
    """Ten rows, in every column above those of the batch before."""
    ids = range(number * 10, number * 10 + 10)
    return pa.table(
        {
            "part": pa.array([f"p{number % 3}"] * 10),
            "id": pa.array(ids, pa.int64()),
            "small": pa.array([n % 7 if n % 5 else None for n in ids], pa.int8()),
            "ratio": pa.array([n / 4 for n in ids], pa.float64()),
            "price": pa.array([Decimal(n) / 4 for n in ids], pa.decimal128(12, 2)),
            "name": pa.array([f"name {n:04d}" for n in ids]),
            "day": pa.array([DAY + timedelta(days=n) for n in ids]),
            "at": pa.array([START + timedelta(hours=n) for n in ids], pa.timestamp("us", "UTC")),
            "flag": pa.array([n % 2 == 0 for n in ids]),
            "place": pa.array([{"x": n, "tag": str(n)} for n in ids]),
            "tags": pa.array([[n] for n in ids]),
        }
    )


BATCHES = 6
ALL = pa.concat_tables(batch(n) for n in range(BATCHES))


@pytest.fixture
def table(catalog):
    for number in range(BATCHES):
        put(catalog, "t", batch(number), partition_by="part")
    return catalog.table("t")


def ids(found):
    return sorted(found["id"].to_pylist())


# The predicate, the rows it is true for, and how many of the six files it may leave.
FILTERS = [
    ("id = 25", lambda t: pc.equal(t["id"], 25), 1),
    ("id < 10", lambda t: pc.less(t["id"], 10), 1),
    ("10 <= id AND id <= 19", lambda t: pc.is_in(t["id"], pa.array(range(10, 20))), 1),
    ("id BETWEEN 15 AND 25", lambda t: pc.is_in(t["id"], pa.array(range(15, 26))), 2),
    ("id IN (3, 55, 99)", lambda t: pc.is_in(t["id"], pa.array([3, 55])), 2),
    ("NOT id >= 10", lambda t: pc.less(t["id"], 10), 1),
    ("id = 1 OR id = 59", lambda t: pc.is_in(t["id"], pa.array([1, 59])), 2),
    ("id > 1000", lambda t: pc.greater(t["id"], 1000), 0),
    ("ratio >= 14.5", lambda t: pc.greater_equal(t["ratio"], 14.5), 1),
    ("price = 1.25", lambda t: pc.equal(t["id"], 5), 1),
    ("name = 'name 0042'", lambda t: pc.equal(t["id"], 42), 1),
    ("name LIKE 'name 001%'", lambda t: pc.is_in(t["id"], pa.array(range(10, 20))), 1),
    ("startswith(name, 'name 005')", lambda t: pc.greater_equal(t["id"], 50), 1),
    ("day = DATE '2026-01-04'", lambda t: pc.equal(t["id"], 3), 1),
    ("day < '2026-01-04'", lambda t: pc.less(t["id"], 3), 1),
    ("at >= TIMESTAMP '2026-01-03T11:00:00Z'", lambda t: pc.greater_equal(t["id"], 59), 1),
    ("part = 'p1'", lambda t: pc.equal(t["part"], "p1"), 2),
    ("part = 'p1' AND id > 30", lambda t: pc.is_in(t["id"], pa.array(range(40, 50))), 1),
    ("part IN ('p0', 'p2')", lambda t: pc.not_equal(t["part"], "p1"), 4),
    ("part <> 'p1'", lambda t: pc.not_equal(t["part"], "p1"), 4),
    ("part = 'p1' OR id = 0", lambda t: pc.or_(pc.equal(t["part"], "p1"), pc.equal(t["id"], 0)), 3),
    ("place.x = 33", lambda t: pc.equal(t["id"], 33), 1),
    ("flag", lambda t: t["flag"], 6),
    ("NOT flag AND id < 4", lambda t: pc.is_in(t["id"], pa.array([1, 3])), 1),
    ("small IS NULL", lambda t: pc.is_null(t["small"]), 6),
    ("small IS NOT NULL", lambda t: pc.is_valid(t["small"]), 6),
    ("small = 6", lambda t: pc.fill_null(pc.equal(t["small"], 6), False), 6),
    ("small <> 6", lambda t: pc.fill_null(pc.not_equal(t["small"], 6), False), 6),
    ("NOT (small = 6)", lambda t: pc.fill_null(pc.not_equal(t["small"], 6), False), 6),
    ("small <=> NULL", lambda t: pc.is_null(t["small"]), 6),
    ("coalesce(small, 100) = 100", lambda t: pc.is_null(t["small"]), 6),
    (
        "id % 10 = 3",
        lambda t: pc.equal(
            pc.subtract(t["id"], 3), pc.multiply(pc.divide(pc.subtract(t["id"], 3), 10), 10)
        ),
        6,
    ),
    ("id + 1 = 26", lambda t: pc.equal(t["id"], 25), 6),
    ("upper(name) = 'NAME 0007'", lambda t: pc.equal(t["id"], 7), 6),
    ("true", lambda t: pc.is_valid(t["id"]), 6),
    ("false", lambda t: pc.is_null(t["id"]), 0),
    ("ID = 25 AND Part = 'p2'", lambda t: pc.equal(t["id"], 25), 1),
    ('"id" = 25', lambda t: pc.equal(t["id"], 25), 1),
    ("`id` = 25", lambda t: pc.equal(t["id"], 25), 1),
    ([("id", "=", 25)], lambda t: pc.equal(t["id"], 25), 1),
    ([("part", "in", ["p0", "p1"]), ("id", "<", 20)], lambda t: pc.less(t["id"], 20), 2),
    ([[("id", "=", 1)], [("id", ">=", 58)]], lambda t: pc.is_in(t["id"], pa.array([1, 58, 59])), 2),
    ([("small", "=", None)], lambda t: pc.is_null(t["small"]), 6),
    ([("day", ">", date(2026, 2, 28))], lambda t: pc.greater(t["id"], 58), 1),
    ([("price", "=", Decimal("1.25"))], lambda t: pc.equal(t["id"], 5), 1),
    ([("at", "<", START + timedelta(hours=1))], lambda t: pc.equal(t["id"], 0), 1),
]


def test_a_filter_finds_exactly_its_rows_and_prunes_files(table):
    for predicate, expected, files in FILTERS:
        wanted = ids(ALL.filter(expected(ALL)))
        assert ids(table.to_arrow(filter=predicate)) == wanted, predicate
        assert table.count(predicate) == len(wanted), predicate
        assert len(table.files(predicate)) <= files, predicate
        inside = table.to_pyarrow_dataset(predicate).to_table()
        assert set(wanted) <= set(ids(inside)), predicate


def test_a_long_list_of_values_finds_its_rows(table):
    even = list(range(0, 10_000, 2))
    names = [f"name {n:04d}" for n in even]
    for predicate in (
        [("id", "in", even)],
        [("name", "in", names)],
        "id IN (" + ", ".join(map(str, even[:2_000])) + ")",
        " OR ".join(f"name = '{name}'" for name in names[:1_200]),
    ):
        assert ids(table.to_arrow(filter=predicate)) == even[:30]
        assert len(table.files(predicate)) == BATCHES
    assert table.files([("id", "in", [n + 1_000 for n in even])]) == []


def test_a_comparison_with_no_number_is_a_comparison_still(table):
    """NaN is above every number, as in Spark."""
    assert table.count([("id", "<", math.nan)]) == ALL.num_rows
    assert table.count([("ratio", ">=", math.nan)]) == 0
    assert table.count([("price", "=", math.nan)]) == 0


def test_pruned_files_are_a_part_of_all_files(table):
    everything = table.files()
    assert len(everything) == BATCHES
    for predicate, _, _ in FILTERS:
        found = table.files(predicate)
        assert set(found) <= set(everything)
        assert len(set(found)) == len(found)
        assert [uri.rpartition("/")[2] for uri in table.file_uris(predicate)] == [
            path.rpartition("/")[2] for path in found
        ]


def test_pruning_holds_for_older_versions(catalog, table):
    old = catalog.table("t", version=1)
    assert len(old.files("id >= 10")) == 1
    assert old.files("id >= 20") == []
    assert ids(old.to_arrow(filter="id > 15")) == [16, 17, 18, 19]


def test_projection_returns_the_columns_asked_for_in_that_order(table):
    found = table.to_arrow(columns=["name", "ID", "part"], filter="day = DATE '2026-01-04'")
    assert found.column_names == ["name", "id", "part"]
    assert found.to_pylist() == [{"name": "name 0003", "id": 3, "part": "p0"}]
    assert table.to_arrow(columns=["part"]).num_rows == ALL.num_rows
    with pytest.raises(InvalidArgument, match="'nope'") as caught:
        table.to_arrow(columns=["nope"])
    assert "id" in caught.value.allowed


def test_every_way_out_gives_the_same_rows(table):
    expected = sorted(ALL["id"].to_pylist())
    assert ids(table.to_pyarrow_table()) == expected
    assert sorted(table.to_pandas(columns=["id"])["id"]) == expected
    assert sorted(table.to_polars(columns=["id"])["id"]) == expected
    assert sorted(table.to_pandas(filter="id < 3")["id"]) == [0, 1, 2]
    assert sorted(table.to_polars(filter="id < 3")["id"]) == [0, 1, 2]
    dataset = table.to_pyarrow_dataset()
    assert dataset.count_rows() == ALL.num_rows
    lazy = dataset.to_table(filter=(pc.field("part") == "p1") & (pc.field("id") < 20))
    assert ids(lazy) == list(range(10, 20))
    assert dataset.schema.names == ALL.schema.names


def test_a_dataset_is_refused_under_column_mapping(catalog):
    table = put(catalog, "m", ALL, configuration={"delta.columnMapping.mode": "name"})
    with pytest.raises(UnsupportedByBackend, match="column mapping"):
        table.to_pyarrow_dataset()


def test_counting_reads_no_file_where_the_log_knows(catalog, table, warehouse):
    table.delete("id = 7")
    for file in warehouse.rglob("*.parquet"):
        file.write_bytes(b"not a parquet file")
    assert table.count() == ALL.num_rows - 1
    assert catalog.table("t", version=0).count() == 10
    with pytest.raises(dl.errors.StorageError, match="t"):
        table.to_arrow()


def test_a_missing_file_is_an_error_that_names_the_table(table, warehouse):
    next(iter(warehouse.rglob("*.parquet"))).unlink()
    with pytest.raises(dl.errors.StorageError, match="t: a data file"):
        table.to_arrow()


def test_partitions_lists_each_combination_once(table):
    assert sorted(table.partitions(), key=repr) == [{"part": f"p{n}"} for n in range(3)]


def test_an_unpartitioned_table_has_no_partitions(catalog):
    assert put(catalog, "u", ALL).partitions() == []


@pytest.mark.parametrize("flatten", [True, False])
def test_add_actions_have_the_shape_of_delta_rs(catalog, tmp_path, flatten):
    data = ALL.slice(0, 10)
    peer = tmp_path / "peer"
    deltalake.write_deltalake(str(peer), data, partition_by=["part"])
    theirs = pa.table(deltalake.DeltaTable(str(peer)).get_add_actions(flatten=flatten))
    ours = put(catalog, "t", data, partition_by="part").get_add_actions(flatten=flatten)

    assert ours.column_names == theirs.column_names
    for field in theirs.schema:
        assert ours.schema.field(field.name).type == field.type, field.name
    assert ours.num_rows == theirs.num_rows == 1
    (mine,), (other,) = ours.to_pylist(), theirs.to_pylist()
    apart = {
        "path",
        "size_bytes",
        "modification_time",
        "null_count.tags",
        "null_count",
        "min",
        "max",
    }
    for name in ours.column_names:
        if name not in apart and not name.endswith(".flag"):
            assert mine[name] == other[name], name


@pytest.mark.parametrize("flatten", [True, False])
def test_add_actions_speak_of_columns_by_the_names_users_know(catalog, flatten):
    mapped = {"delta.columnMapping.mode": "name"}
    plain = put(catalog, "plain", ALL, partition_by="part")
    table = put(catalog, "mapped", ALL, partition_by="part", configuration=mapped)
    left, right = (t.get_add_actions(flatten=flatten) for t in (plain, table))
    assert left.schema == right.schema
    told = [name for name in left.column_names if name not in ("path", "size_bytes")]
    assert left.select(told).sort_by("num_records") == right.select(told).sort_by("num_records")


def test_add_actions_tell_about_each_file(table, clock):
    found = table.get_add_actions(flatten=True)
    assert found.num_rows == BATCHES
    assert found["path"].to_pylist() == table.files()
    assert set(found["num_records"].to_pylist()) == {10}
    assert sum(found["size_bytes"].to_pylist()) == table.snapshot.size_bytes
    assert set(found["modification_time"].to_pylist()) == {clock.ms}
    by_min = found.sort_by("min.id").to_pylist()
    for number, row in enumerate(by_min):
        assert (row["min.id"], row["max.id"]) == (number * 10, number * 10 + 9)
        assert (row["min.name"], row["max.place.x"]) == (f"name {number * 10:04d}", row["max.id"])
        assert row["null_count.small"] == 2
        assert row["partition.part"] == f"p{number % 3}"
    assert table.get_add_actions(filter="id = 25").num_rows == 1
    assert table.get_add_actions(filter="id > 1000").column_names == (
        table.get_add_actions().column_names
    )


def test_add_actions_of_an_empty_table_have_the_same_columns(catalog):
    empty = catalog.create_table("e", ALL.schema, partition_by=["part"])
    full = put(catalog, "f", ALL, partition_by="part")
    for flatten in (True, False):
        ours, theirs = (t.get_add_actions(flatten=flatten) for t in (empty, full))
        assert ours.schema == theirs.schema
        assert ours.num_rows == 0


def test_a_table_object_stays_at_its_version_until_it_is_moved(catalog, table):
    put(catalog, "t", batch(9))
    assert table.version() == BATCHES - 1
    assert table.count() == len(rows(table)) == ALL.num_rows
    table.update_incremental()
    assert table.version() == BATCHES
    assert table.count() == ALL.num_rows + 10
    table.load_as_version(0)
    assert ids(table.to_arrow()) == list(range(10))


def test_a_reader_can_be_brought_along(catalog, table):
    uri = catalog.uri.with_table("t").render()
    reader = catalog.reader("t")
    assert isinstance(reader, dl.SqlTxnLogReader)
    opened = dl.DeltaTable.open_with_reader(uri, reader, version=1)
    assert opened.version() == 1
    assert ids(opened.to_arrow()) == list(range(20))
    with pytest.raises(UnsupportedByBackend):
        opened.delete("id = 1")
