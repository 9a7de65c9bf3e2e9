"""Two commits at once: every cell of Delta's conflict table, and what never conflicts."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from deltalakedb.errors import (
    ConcurrentAppend,
    ConcurrentDeleteDelete,
    ConcurrentDeleteRead,
    ConcurrentModification,
    ConcurrentTransaction,
    MetadataChanged,
    ProtocolChanged,
    TxnLogTransactionError,
)
from deltalakedb.model.actions import Add, DomainMetadata, Protocol, Remove
from support.catalogs import files_below, put, rows

SCHEMA = pa.schema([("p", pa.string()), ("n", pa.int64())])


def data(part, *numbers):
    return pa.table({"p": [part] * len(numbers), "n": numbers}, SCHEMA)


SERIALIZABLE = {"delta.isolationLevel": "Serializable"}


def make(catalog, *parts, isolation="Serializable"):
    """A table with two files in each of the partitions."""
    properties = {"delta.isolationLevel": isolation}
    with catalog.begin() as tx:
        tx.create_table("t", SCHEMA, partition_by="p", properties=properties)
        for n in (1, 2):
            tx.write("t", pa.concat_tables([data(part, n) for part in parts]))


# --- what a transaction may do in a partition -----------------------------------------------------


def append(tx, part):
    tx.write("t", data(part, 1, 10))


def read_and_append(tx, part):
    found = tx.table("t").to_arrow(filter=f"p = '{part}'")
    tx.write("t", data(part, found.num_rows + 100))


def replace_where(tx, part):
    tx.write("t", data(part, 20), mode="overwrite", predicate=f"p = '{part}'")


def delete_partition(tx, part):
    tx.delete("t", f"p = '{part}'")


def delete_rows(tx, part):
    tx.delete("t", f"p = '{part}' AND n = 1")


def compact(tx, part):
    old = tx.table("t").get_add_actions(filter=f"p = '{part}'")["path"].to_pylist()
    removes = [Remove(path=path, data_change=False, partition_values={"p": part}) for path in old]
    new = Add(
        path=f"compacted-{part}.parquet",
        partition_values={"p": part},
        size=1,
        modification_time=1,
        data_change=False,
        stats=json.dumps({"numRecords": 2}),
    )
    tx.stage_table("t", [*removes, new], operation="OPTIMIZE")


DELETE_DELETE = ConcurrentDeleteDelete
DELETE_READ = ConcurrentDeleteRead
CELLS = [
    (append, append, None),
    (append, replace_where, None),
    (append, delete_partition, None),
    (append, delete_rows, None),
    (append, compact, None),
    (read_and_append, append, ConcurrentAppend),
    (read_and_append, read_and_append, ConcurrentAppend),
    (read_and_append, replace_where, DELETE_READ),
    (read_and_append, delete_partition, DELETE_READ),
    (read_and_append, delete_rows, DELETE_READ),
    (read_and_append, compact, DELETE_READ),
    (replace_where, append, ConcurrentAppend),
    (replace_where, read_and_append, ConcurrentAppend),
    (replace_where, replace_where, DELETE_DELETE),
    (replace_where, delete_partition, DELETE_DELETE),
    (replace_where, delete_rows, DELETE_DELETE),
    (replace_where, compact, DELETE_DELETE),
    (delete_partition, append, ConcurrentAppend),
    (delete_partition, read_and_append, ConcurrentAppend),
    (delete_partition, replace_where, DELETE_DELETE),
    (delete_partition, delete_partition, DELETE_DELETE),
    (delete_partition, compact, DELETE_DELETE),
    (delete_rows, append, ConcurrentAppend),
    (delete_rows, replace_where, DELETE_DELETE),
    (delete_rows, delete_rows, DELETE_DELETE),
    (delete_rows, compact, DELETE_DELETE),
    (compact, append, None),
    (compact, read_and_append, None),
    (compact, replace_where, DELETE_DELETE),
    (compact, delete_partition, DELETE_DELETE),
    (compact, delete_rows, DELETE_DELETE),
    (compact, compact, DELETE_DELETE),
]


def named(value):
    return getattr(value, "__name__", None)


@pytest.mark.parametrize(("loser", "winner", "error"), CELLS, ids=named)
def test_the_conflict_table(catalog, warehouse, loser, winner, error):
    make(catalog, "x")
    losing, winning = catalog.begin(), catalog.begin()
    loser(losing, "x")
    winner(winning, "x")
    won = winning.commit().versions["t"]
    if error is None:
        assert losing.commit().versions == {"t": won + 1}
        assert catalog.table("t").version() == won + 1
        return
    with pytest.raises(error) as caught:
        losing.commit()
    assert type(caught.value) is error
    assert isinstance(caught.value, TxnLogTransactionError)
    assert (caught.value.table, caught.value.winner) == ("t", won)
    assert caught.value.winner_operation in str(caught.value)
    assert caught.value.rule in str(caught.value)
    assert catalog.table("t").version() == won
    assert not [f for f in files_below(warehouse) if losing.transaction_id in f]


@pytest.mark.parametrize("loser", [read_and_append, replace_where, delete_rows], ids=named)
def test_a_blind_append_may_come_first_unless_the_table_is_serializable(catalog, loser):
    """The same three cells conflict above, where the table is Serializable."""
    make(catalog, "x", isolation="WriteSerializable")
    losing, winning = catalog.begin(), catalog.begin()
    loser(losing, "x")
    append(winning, "x")
    winning.commit()
    assert losing.commit().versions == {"t": 2}


OPERATIONS = [append, read_and_append, replace_where, delete_partition, delete_rows, compact]


def test_disjoint_partitions_never_conflict(catalog):
    """Every operation as a loser against every operation as a winner, each in its partition."""
    losers = {f"loser {n}": operation for n, operation in enumerate(OPERATIONS)}
    winners = {f"winner {n}": operation for n, operation in enumerate(OPERATIONS)}
    make(catalog, *losers, *winners)
    begun = {part: catalog.begin() for part in (*winners, *losers)}
    for part, operation in (winners | losers).items():
        operation(begun[part], part)
    versions = [begun[part].commit().versions["t"] for part in (*winners, *losers)]
    assert versions == list(range(1, 1 + len(versions)))


def test_files_apart_by_statistics_do_not_conflict(catalog):
    put(catalog, "t", pa.table({"n": [1, 2]}), configuration=SERIALIZABLE)
    put(catalog, "t", pa.table({"n": [100, 101]}))
    first, second = catalog.begin(), catalog.begin()
    first.delete("t", "n < 2")
    second.delete("t", "n > 100")
    second.commit()
    with catalog.begin() as third:
        third.write("t", pa.table({"n": [500]}))
    first.commit()
    assert rows(catalog.table("t")) == [{"n": 100}, {"n": 2}, {"n": 500}]


def test_nothing_follows_a_change_of_metadata(catalog):
    make(catalog, "x")
    losers = [catalog.begin() for _ in OPERATIONS]
    for losing, operation in zip(losers, OPERATIONS, strict=True):
        operation(losing, "x")
    catalog.table("t").alter.add_columns([("extra", pa.string())])
    for losing in losers:
        with pytest.raises(MetadataChanged) as caught:
            losing.commit()
        assert (caught.value.table, caught.value.winner) == ("t", 1)


def test_an_overwrite_of_everything_conflicts_with_any_change_of_rows(catalog):
    make(catalog, "x", "y")
    losing = catalog.begin()
    losing.write("t", data("x", 5), mode="overwrite")
    with catalog.begin() as winning:
        delete_partition(winning, "y")
    with pytest.raises(ConcurrentDeleteDelete):
        losing.commit()


def test_the_protocol_cannot_be_changed_twice_at_once(catalog):
    put(catalog, "t", data("x", 1))
    first, second = catalog.begin(), catalog.begin()
    first.stage_table("t", [Protocol(min_reader_version=1, min_writer_version=3)])
    second.stage_table("t", [Protocol(min_reader_version=1, min_writer_version=4)])
    second.commit()
    with pytest.raises(ProtocolChanged) as caught:
        first.commit()
    assert caught.value.winner == 1


def test_an_append_heeds_a_feature_that_was_added_meanwhile(catalog):
    put(catalog, "t", data("x", 1))
    losing = catalog.begin()
    append(losing, "x")
    catalog.table("t").alter.add_feature("rowTracking")
    losing.commit()
    (added,) = [a for a in catalog.reader("t").actions(2) if isinstance(a, Add)]
    assert added.base_row_id is not None, "a table with row tracking numbers all its rows"


def test_an_application_cannot_advance_twice_at_once(catalog):
    put(catalog, "t", data("x", 1))
    first, second, third, reader = (catalog.begin() for _ in range(4))
    for tx, app in ((first, "one"), (second, "one"), (third, "two")):
        append(tx, "x")
        tx.set_txn("t", app, 1)
    assert reader.txn_version("t", "one") is None
    append(reader, "x")
    second.commit()
    with pytest.raises(ConcurrentTransaction, match="'one'") as caught:
        first.commit()
    assert caught.value.winner == 1
    with pytest.raises(ConcurrentTransaction, match="'one'"):
        reader.commit()
    third.commit()
    assert catalog.table("t").count() == 5


def test_a_domain_cannot_be_changed_twice_at_once(catalog):
    properties = {"delta.feature.domainMetadata": "supported"}
    catalog.create_table("t", SCHEMA, properties=properties)
    first, second, third = (catalog.begin() for _ in range(3))
    for tx, domain in ((first, "app.one"), (second, "app.one"), (third, "app.two")):
        tx.stage_table("t", [DomainMetadata(domain=domain, configuration="{}")])
    second.commit()
    with pytest.raises(ConcurrentTransaction, match=r"app\.one"):
        first.commit()
    third.commit()


def test_a_constraint_is_not_added_over_rows_it_has_not_seen(catalog):
    table = put(catalog, "t", data("x", 1))
    losing = catalog.begin()
    losing.write("t", data("x", -1))
    table.alter.add_constraint({"positive": "n > 0"})
    with pytest.raises(MetadataChanged):
        losing.commit()
    assert catalog.table("t").count() == 1


def test_one_conflict_fails_all_tables_of_a_transaction(catalog):
    make(catalog, "x")
    put(catalog, "other", data("x", 1))
    losing = catalog.begin()
    losing.write("other", data("x", 2))
    losing.delete("t", "p = 'x'")
    with catalog.begin() as winning:
        winning.delete("t", "p = 'x'")
    with pytest.raises(ConcurrentModification) as caught:
        losing.commit()
    assert caught.value.table == "t"
    assert catalog.table("other").count() == 1
    assert catalog.table("other").version() == 0


def test_many_appends_begun_together_all_get_through(catalog):
    put(catalog, "t", data("x", 0))
    open_ones = [catalog.begin() for _ in range(8)]
    for number, tx in enumerate(open_ones, start=1):
        tx.write("t", data("x", number))
    versions = [tx.commit().versions["t"] for tx in open_ones]
    assert versions == list(range(1, 9))
    assert sorted(r["n"] for r in rows(catalog.table("t"))) == list(range(9))
