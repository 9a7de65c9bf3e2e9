"""Several tables in one commit: all of it or nothing, from one moment, within limits, once."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest

import deltalakedb as dl
from deltalakedb.errors import (
    InvalidArgument,
    InvalidCommit,
    TableAlreadyExists,
    TooManyFiles,
    TooManyTables,
    TransactionClosed,
    TransactionTimeout,
)
from deltalakedb.uri import parse
from support.catalogs import database_rows, files_below, put, rows


def one(n):
    return pa.table({"n": [n]})


def numbers(table):
    return sorted(table.to_arrow()["n"].to_pylist())


@pytest.fixture
def ab(catalog):
    """Tables a and b, with 1 and 2 in them."""
    put(catalog, "a", one(1))
    put(catalog, "b", one(2))
    return catalog


def test_a_clean_exit_commits_every_table_at_once(ab):
    with ab.begin() as tx:
        tx.write("a", one(10))
        tx.write("b", one(20), mode="overwrite")
        tx.create_table("c", [("n", pa.int64())])
        tx.write("d", one(40))
        assert ab.list_tables() == ["a", "b"]
        assert (ab.table("a").version(), ab.table("b").version()) == (0, 0)

    assert dict(tx.result.versions) == {"a": 1, "b": 1, "c": 0, "d": 0}
    assert tx.result.transaction_id == tx.transaction_id
    assert numbers(ab.table("a")) == [1, 10]
    assert numbers(ab.table("b")) == [20]
    assert numbers(ab.table("c")) == []
    assert numbers(ab.table("d")) == [40]
    times = {ab.table(name).snapshot.timestamp for name in "abcd"}
    assert times == {tx.result.timestamp}
    last = ab.transactions(limit=4)
    assert {r.transaction_id for r in last} == {tx.transaction_id}


def test_commit_can_be_called_by_hand(ab):
    tx = ab.begin()
    tx.write("a", one(10))
    result = tx.commit()
    assert result == tx.result
    assert numbers(ab.table("a")) == [1, 10]


def test_an_exception_leaves_no_row_and_no_file(ab, unchanged):
    class Oops(Exception):
        pass

    with unchanged(), pytest.raises(Oops), ab.begin() as tx:  # noqa: PT012
        tx.write("a", one(10))
        tx.write("new", one(1), partition_by=[])
        tx.write("split", pa.table({"p": ["x", "y"], "n": [1, 2]}), partition_by="p")
        tx.delete("b", "n = 2")
        raise Oops
    assert ab.list_tables() == ["a", "b"]


def test_rollback_leaves_no_row_and_no_file(ab, unchanged):
    with unchanged(), ab.begin() as tx:
        tx.write("a", one(10))
        tx.delete("b")
        tx.rollback()
    with pytest.raises(InvalidArgument, match="rolled back"):
        _ = tx.result


def test_a_failed_commit_leaves_no_row_and_no_file(ab, unchanged, warehouse):
    with pytest.raises(TableAlreadyExists), ab.begin() as tx:  # noqa: PT012
        tx.write("a", one(10))
        tx.create_table("late", [("n", pa.int64())])
        tx.write("late", one(5))
        put(ab, "late", one(7), location=str(warehouse / "elsewhere"))
        before = database_rows(ab)
    assert database_rows(ab) == before
    assert numbers(ab.table("a")) == [1]
    assert not [file for file in files_below(warehouse) if tx.transaction_id in file]


def test_a_write_that_failed_leaves_no_file_when_the_rest_commits(ab, warehouse):
    batches = pa.RecordBatchReader.from_batches(one(0).schema, _broken_stream())
    with ab.begin() as tx:
        tx.write("a", one(10))
        with pytest.raises(RuntimeError, match="the source broke"):
            tx.write("b", batches)
        with pytest.raises(InvalidArgument):
            tx.write("a", one(3), mode="overwrite")
    assert numbers(ab.table("a")) == [1, 10]
    assert numbers(ab.table("b")) == [2]
    written = [file for file in files_below(warehouse) if tx.transaction_id in file]
    assert len(written) == 1


def _broken_stream():
    yield one(1).to_batches()[0]
    raise RuntimeError("the source broke")


# --- what a transaction sees ----------------------------------------------------------------------


def test_own_writes_are_seen_inside_and_nowhere_else(ab):
    with ab.begin() as tx:
        tx.write("a", one(10))
        tx.write("a", one(11))
        tx.write("new", one(5))
        inside = tx.table("a")
        assert numbers(inside) == [1, 10, 11]
        assert inside.count() == 3
        assert len(inside.files()) == 3
        assert numbers(tx.table("new")) == [5]
        assert tx.table("new").count() == 1
        assert numbers(ab.table("a")) == [1]
    assert numbers(ab.table("a")) == [1, 10, 11]


def test_own_deletes_and_overwrites_are_seen_inside(ab):
    put(ab, "a", one(3))
    with ab.begin() as tx:
        tx.delete("a", "n = 1")
        assert numbers(tx.table("a")) == [3]
        assert tx.table("a").count() == 1
        tx.write("a", one(4))
        assert numbers(tx.table("a")) == [3, 4]
        tx.write("b", one(30), mode="overwrite")
        assert numbers(tx.table("b")) == [30]
        assert tx.table("b").count() == 1
        assert rows(tx.table("a"), filter="n > 3") == [{"n": 4}]
        assert len(tx.table("a").files("n > 3")) == 1
    assert numbers(ab.table("a")) == [3, 4]


def test_a_schema_change_is_seen_inside(ab):
    with ab.begin() as tx:
        tx.write("a", pa.table({"n": [10], "s": ["x"]}), schema_mode="merge")
        assert tx.table("a").schema().names == ["n", "s"]
        tx.write("a", pa.table({"n": [11], "s": ["y"]}))
        assert rows(tx.table("a"), filter="s = 'y'") == [{"n": 11, "s": "y"}]
    assert ab.table("a").schema().names == ["n", "s"]
    assert ab.table("a").version() == 1


def test_a_table_object_of_a_transaction_moves_on_when_told(ab):
    with ab.begin() as tx:
        table = tx.table("a")
        tx.write("a", one(10))
        assert numbers(table) == [1]
        assert len(table.files()) == 1
        table.update_incremental()
        assert numbers(table) == [1, 10]


def test_reads_inside_see_one_moment_of_all_tables(ab):
    tx = ab.begin()
    with ab.begin() as other:
        other.write("a", one(100))
        other.write("b", one(200))
        other.write("later", one(300))
    assert numbers(tx.table("a")) == [1]
    assert tx.table("a").count() == 1
    assert tx.table("a").version() == 0
    assert numbers(tx.table("b")) == [2]
    with ab.begin() as other:
        other.delete("b")
    assert numbers(tx.table("b")) == [2]
    assert [r.version for r in tx.table("b").history()] == [0]
    tx.rollback()
    assert numbers(ab.table("b")) == []


def test_other_versions_can_be_read_inside(ab):
    put(ab, "a", one(3))
    with ab.begin() as tx:
        tx.write("a", one(4))
        table = tx.table("a")
        table.load_as_version(0)
        assert numbers(table) == [1]
        tx.rollback()


def test_rows_that_were_read_must_still_hold_at_commit(ab):
    with pytest.raises(dl.errors.ConcurrentDeleteRead) as caught, ab.begin() as tx:  # noqa: PT012
        total = sum(numbers(tx.table("a")))
        ab.table("a").delete("n = 1")
        tx.write("b", one(total))
    assert caught.value.table == "a"
    assert numbers(ab.table("b")) == [2]


def test_a_table_that_is_only_read_gets_no_version(ab):
    with ab.begin() as tx:
        tx.write("b", one(sum(numbers(tx.table("a")))))
    assert dict(tx.result.versions) == {"b": 1}
    assert ab.table("a").version() == 0


def test_a_table_of_a_transaction_is_changed_through_the_transaction(ab):
    with ab.begin() as tx:
        with pytest.raises(dl.errors.UnsupportedByBackend, match="transaction"):
            tx.table("a").delete()
        with pytest.raises(dl.errors.UnsupportedByBackend, match="transaction"):
            tx.table("a").alter.set_table_description("x")
        tx.rollback()


def test_every_committed_version_waits_for_its_mirror_and_no_other(ab):
    with ab.begin() as tx:
        tx.write("a", one(10))
        tx.write("c", one(30))
    with ab.begin() as undone:
        undone.write("b", one(20))
        undone.rollback()
    with ab.database.read() as session:
        found = session.rows(
            "SELECT t.name, m.version, m.target, m.status FROM dl_mirror_status m"
            " JOIN dl_tables t ON t.table_id = m.table_id ORDER BY 1, 2"
        )
    assert found == [
        (name, version, "delta", "PENDING")
        for name, version in (("a", 0), ("a", 1), ("b", 0), ("c", 0))
    ]


def test_a_catalog_serves_several_threads(ab):
    def work(worker):
        for n in range(3):
            with ab.begin() as tx:
                tx.write("a", one(worker * 10 + n))
                tx.write("b", one(worker * 10 + n))
        return tx.result.versions

    with ThreadPoolExecutor(4) as threads:
        last = list(threads.map(work, range(1, 5)))
    assert max(versions["a"] for versions in last) == 12
    assert [r.version for r in ab.table("a").history()] == list(range(12, -1, -1))
    written = sorted(worker * 10 + n for worker in range(1, 5) for n in range(3))
    assert numbers(ab.table("a")) == [1, *written]
    assert numbers(ab.table("b")) == [2, *written]


# --- limits and misuse ----------------------------------------------------------------------------


def test_too_many_tables(ab, unchanged):
    with unchanged(), ab.begin(max_tables=2) as tx:
        tx.write("a", one(1))
        tx.write("b", one(1))
        with pytest.raises(TooManyTables, match="max_tables") as caught:
            tx.write("c", one(1))
        tx.rollback()
    assert (caught.value.limit, caught.value.found) == (2, 3)


def test_reading_counts_as_touching_a_table(ab):
    with ab.begin(max_tables=1) as tx:
        tx.table("a")
        with pytest.raises(TooManyTables):
            tx.table("b")
        tx.rollback()


def test_too_many_files(ab, unchanged):
    split = pa.table({"p": list("abc"), "n": [1, 2, 3]})
    with unchanged(), ab.begin(max_files_per_table=2) as tx:
        with pytest.raises(TooManyFiles, match="max_files_per_table") as caught:
            tx.write("new", split, partition_by="p")
        tx.rollback()
    assert (caught.value.table, caught.value.limit, caught.value.found) == ("new", 2, 3)
    with ab.begin(max_files_per_table=3) as tx:
        tx.write("new", split, partition_by="p")
    with unchanged(), pytest.raises(TooManyFiles), ab.begin(max_files_per_table=2) as tx:
        tx.delete("new")


@pytest.mark.parametrize("step", ["write", "commit"])
def test_a_transaction_that_takes_too_long(ab, unchanged, step):
    with unchanged():
        tx = ab.begin(timeout_secs=0.2)
        tx.write("a", one(10))
        time.sleep(0.25)
        with pytest.raises(TransactionTimeout, match="timeout_secs") as caught:
            tx.write("b", one(20)) if step == "write" else tx.commit()
        tx.rollback()
    assert caught.value.timeout_secs == 0.2
    assert caught.value.elapsed_secs > 0.2


@pytest.mark.parametrize(
    ("limit", "value"),
    [
        ("max_tables", 0),
        ("max_tables", -1),
        ("max_tables", "many"),
        ("max_files_per_table", 0),
        ("timeout_secs", 0),
        ("timeout_secs", -5),
        ("timeout_secs", "soon"),
    ],
)
def test_limits_that_make_no_sense_are_refused(ab, limit, value):
    with pytest.raises(dl.errors.TxnLogError, match=limit):
        ab.begin(**{limit: value})


def test_an_empty_transaction_is_refused(ab, unchanged):
    with unchanged(), pytest.raises(InvalidArgument, match="nothing is staged"), ab.begin():
        pass
    with unchanged(), pytest.raises(InvalidArgument, match="nothing is staged"), ab.begin() as tx:
        tx.table("a").count()


def test_an_empty_list_of_actions_is_refused(ab, unchanged):
    with unchanged(), pytest.raises(InvalidCommit, match="empty list"), ab.begin() as tx:
        tx.stage_table("a", [])


def test_changes_that_match_no_row_commit_like_any_other(ab):
    with ab.begin() as tx:
        tx.delete("a", "n = 99")
        tx.write("b", one(0).slice(0, 0))
    assert tx.result.transaction_id == tx.transaction_id
    assert numbers(ab.table("a")) == [1]
    assert numbers(ab.table("b")) == [2]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("append", "overwrite"),
        ("overwrite", "overwrite"),
        ("append", "delete"),
        ("delete", "overwrite"),
    ],
)
def test_one_table_is_not_staged_in_ways_that_undo_each_other(ab, unchanged, first, second):
    def stage(tx, mode):
        if mode == "delete":
            tx.delete("a", "n = 1")
        else:
            tx.write("a", one(10), mode=mode)

    with unchanged(), ab.begin() as tx:
        stage(tx, first)
        with pytest.raises(InvalidArgument, match="already staged") as caught:
            stage(tx, second)
        assert caught.value.table == "a"
        tx.rollback()


def test_appends_may_follow_an_overwrite_or_a_delete(ab):
    with ab.begin() as tx:
        tx.write("a", one(10), mode="overwrite")
        tx.write("a", one(11))
        tx.delete("b", "n = 2")
        tx.write("b", one(21))
    assert dict(tx.result.versions) == {"a": 1, "b": 1}
    assert numbers(ab.table("a")) == [10, 11]
    assert numbers(ab.table("b")) == [21]


def test_a_table_cannot_be_created_twice_in_a_transaction(ab):
    with ab.begin() as tx:
        tx.create_table("c", [("n", pa.int64())])
        with pytest.raises(InvalidArgument, match="already part"):
            tx.create_table("c", [("n", pa.int64())])
        tx.rollback()


def test_creating_a_table_that_exists_is_refused(ab, unchanged):
    with unchanged(), pytest.raises(TableAlreadyExists), ab.begin() as tx:
        tx.create_table("a", [("n", pa.int64())])


def test_tables_may_be_named_by_uri_of_the_same_catalog(ab):
    uri = ab.uri.with_table("a").render()
    with ab.begin() as tx:
        tx.write(uri, one(10))
        assert numbers(tx.table(uri)) == [1, 10]
    assert dict(tx.result.versions) == {"a": 1}


def test_a_table_of_another_catalog_is_refused(ab, new_catalog_uri, unchanged):
    other = parse(new_catalog_uri(ab.uri.engine)).with_table("a").render()
    with unchanged(), ab.begin() as tx:
        for use in (
            lambda: tx.write(other, one(1)),
            lambda: tx.delete(other),
            lambda: tx.table(other),
            lambda: tx.stage_table(other, []),
            lambda: tx.set_txn(other, "app", 1),
        ):
            with pytest.raises(InvalidArgument, match="another catalog"):
                use()
        with pytest.raises(InvalidArgument, match="names no table"):
            tx.write(ab.uri.render(), one(1))
        tx.rollback()


@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_nothing_can_be_done_after_the_end(ab, unchanged, end):
    tx = ab.begin()
    tx.write("a", one(10))
    getattr(tx, end)()
    state = {"commit": "committed", "rollback": "rolled back"}[end]
    with unchanged():
        for use in (
            lambda: tx.write("a", one(1)),
            lambda: tx.delete("a"),
            lambda: tx.table("a"),
            lambda: tx.create_table("z", [("n", pa.int64())]),
            lambda: tx.set_txn("a", "app", 1),
            tx.commit,
        ):
            with pytest.raises(TransactionClosed, match=state) as caught:
                use()
            assert caught.value.transaction_id == tx.transaction_id
        tx.rollback()  # harmless
    assert numbers(ab.table("a")) == ([1, 10] if end == "commit" else [1])


def test_dropping_a_table_under_a_transaction_fails_it(ab, warehouse):
    tx = ab.begin()
    tx.write("a", one(10))
    ab.drop_table("a")
    with pytest.raises(dl.errors.TableNotFound, match="a"):
        tx.commit()
    assert not [file for file in files_below(warehouse) if tx.transaction_id in file]


def test_renaming_a_table_under_a_transaction_does_not_disturb_it(ab):
    with ab.begin() as tx:
        tx.write("a", one(10))
        ab.rename_table("a", "z")
    assert numbers(ab.table("z")) == [1, 10]


# --- once, and only once --------------------------------------------------------------------------


def test_the_same_id_commits_once(ab, warehouse):
    with ab.begin(transaction_id="load-42", message="first") as tx:
        tx.write("a", one(10))
        tx.write("c", one(30))
    before, files = database_rows(ab), files_below(warehouse)

    with ab.begin(transaction_id="load-42", message="again") as again:
        again.write("a", one(10))
        again.write("c", one(30))
    assert again.result == tx.result
    assert again.result.versions == {"a": 1, "c": 0}
    assert database_rows(ab) == before
    assert files_below(warehouse) == files
    assert numbers(ab.table("a")) == [1, 10]


def test_the_same_id_commits_once_whatever_happened_in_between(ab, unchanged):
    with ab.begin(transaction_id="load-42") as tx:
        tx.write("a", one(10), mode="overwrite")
    put(ab, "a", one(11))
    ab.table("a").alter.add_columns([("extra", pa.string())])
    with unchanged():
        with ab.begin(transaction_id="load-42") as again:
            again.write("a", one(10), mode="overwrite")
        assert again.result == tx.result
        done = dl.write_deltalake(ab.table("a"), one(10), transaction_id="load-42")
        assert done == tx.result
    assert numbers(ab.table("a")) == [10, 11]


def test_creating_with_the_same_id_happens_once(ab, unchanged):
    def create():
        with ab.begin(transaction_id="make-c") as tx:
            tx.create_table("c", [("n", pa.int64())])
            tx.write("c", one(1))
        return tx.result

    first = create()
    with unchanged():
        assert create() == first


def test_the_same_id_commits_once_when_two_race(ab, warehouse):
    first, second = (ab.begin(transaction_id="race") for _ in range(2))
    for tx in (first, second):
        tx.write("a", one(10))
    assert first.commit() == second.commit()
    assert numbers(ab.table("a")) == [1, 10]
    assert len(files_below(warehouse)) == 3


@pytest.mark.parametrize("name", ["../../../../out", "a/b c", "it's 雪; --", "..", "x" * 255])
def test_a_transaction_id_may_be_any_text(ab, warehouse, name):
    with ab.begin(transaction_id=name) as tx:
        tx.write("a", one(10))
    assert tx.result.transaction_id == name
    assert ab.transactions(1)[0].transaction_id == name
    assert len(files_below(warehouse / "a")) == 2, "its files stay inside the table"
    assert numbers(ab.table("a")) == [1, 10]
    assert numbers(ab.at(transaction_id=name).table("a")) == [1, 10]


@pytest.mark.parametrize("bad", ["", "  ", "x" * 256, "nul\0", "\ud800", 7])
def test_a_transaction_id_that_cannot_be_one_is_refused(ab, unchanged, bad):
    with unchanged(), pytest.raises(InvalidArgument, match="transaction_id"):
        ab.begin(transaction_id=bad)


def test_an_application_advances_exactly_once(ab):
    def load(version):
        with ab.begin() as tx:
            done = tx.txn_version("a", "stream-1")
            if done is not None and done >= version:
                tx.rollback()
                return False
            tx.write("a", one(version * 100))
            tx.set_txn("a", "stream-1", version, last_updated=123)
            assert tx.txn_version("a", "stream-1") == version
        return True

    assert ab.table("a").transaction_version("stream-1") is None
    assert [load(v) for v in (1, 1, 2, 1, 2, 3)] == [True, False, True, False, False, True]
    assert numbers(ab.table("a")) == [1, 100, 200, 300]
    assert ab.table("a").transaction_version("stream-1") == 3
    assert ab.table("a", version=1).transaction_version("stream-1") == 1
    assert ab.table("a").transaction_version("stream-2") is None
    assert ab.table("b").transaction_version("stream-1") is None


def test_one_application_can_advance_in_several_tables_at_once(ab):
    with ab.begin() as tx:
        for name in ("a", "b"):
            tx.write(name, one(9))
            tx.set_txn(name, "job", 7)
    assert {ab.table(n).transaction_version("job") for n in "ab"} == {7}
