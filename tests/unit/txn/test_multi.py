"""The life of a transaction, on a real SQLite catalog without the table layer above."""

from __future__ import annotations

import sqlite3
from contextlib import closing, contextmanager

import pytest

from deltalakedb.config import Config
from deltalakedb.errors import (
    CatalogLocked,
    CommitOutcomeUnknown,
    ConcurrentTransaction,
    InvalidArgument,
    InvalidCommit,
    MetadataChanged,
    TableNotFound,
    TooManyFiles,
    TooManyTables,
    TransactionClosed,
    TransactionTimeout,
)
from deltalakedb.log.base import NewTable, ReadSet
from deltalakedb.log.registry import Registry
from deltalakedb.log.sql_reader import SqlTxnLogReader
from deltalakedb.log.sql_writer import SqlTxnLogWriter
from deltalakedb.model.actions import Txn
from deltalakedb.sql import connect, faults
from deltalakedb.txn.multi import Limits, MultiTableTransaction, Provenance
from deltalakedb.txn.retry import Backoff
from deltalakedb.txn.staged import Change
from deltalakedb.uri import DeltaSqlUri
from support.actions import PROTOCOL, add, metadata, remove

EVERYTHING = ReadSet(whole_table=True)


def append(*actions, **more):
    return Change("WRITE", "append", actions, **more)


class Lab:
    """A catalog, a clock, and the files that transactions had removed."""

    def __init__(self, path):
        uri = DeltaSqlUri(engine="sqlite", path=str(path / "c.db"))
        config = Config(sqlite_synchronous="normal", sqlite_busy_timeout_ms=1)
        self.database = connect(uri, config)
        self.now, self.seconds, self.pace = 1_000, 0.0, 0.0
        self.removed, self.slept = [], []
        self.writer = SqlTxnLogWriter(self.database, self.clock, sleep=self.slept.append)

    def clock(self):
        return self.now

    def monotonic(self):
        self.seconds += self.pace
        return self.seconds

    def begin(self, pins=None, **more):
        return MultiTableTransaction(
            self.writer,
            pins=Registry(self.database).heads() if pins is None else pins,
            backoff=Backoff(5, 0.0, 0.0),
            monotonic=self.monotonic,
            remove_files=self.removed.extend,
            **more,
        )

    def commit(self, table, *actions, **more):
        tx = self.begin(**more)
        tx.change(table, append(*actions))
        return tx.commit()

    def snapshot(self, table, version=None):
        return SqlTxnLogReader(self.database, table).snapshot(version)

    def files(self, table):
        reader = SqlTxnLogReader(self.database, table)
        return reader.files(reader.snapshot(), columns=["path"]).read_all()["path"].to_pylist()


@pytest.fixture
def lab(tmp_path):
    lab = Lab(tmp_path)
    tx = lab.begin()
    for name in ("t", "u", "v"):
        created = Change("CREATE TABLE", "create", (PROTOCOL, metadata()), fresh_files=True)
        tx.create(NewTable(name, f"file:///{name}"), created)
    tx.commit()
    yield lab
    lab.database.close()


def test_all_tables_land_together_at_one_time(lab):
    tx = lab.begin(provenance=Provenance("me", "why", "run-1"), transaction_id="mine")
    tx.change("t", append(add("f")))
    tx.change("u", append(add("g")))
    result = tx.commit()
    assert (tx.state, tx.result) == ("committed", result)
    assert result.versions == {"t": 1, "u": 1}
    assert result.transaction_id == tx.id == "mine"
    assert {lab.snapshot(n).timestamp for n in ("t", "u")} == {result.timestamp}
    assert lab.snapshot("v").version == 0
    record = Registry(lab.database).transactions(1)[0]
    assert (record.committer, record.message, record.transaction_id) == ("me", "why", "mine")
    assert lab.removed == []


def test_every_table_is_seen_as_of_the_beginning(lab):
    tx = lab.begin()
    lab.commit("t", add("f"))
    assert tx.stage("t").base.version == 0
    assert lab.begin(pins={}).stage("t").base.version == 1
    assert lab.begin(pins={"t": 1}).stage("t").base.version == 1


def test_guards_get_no_version_and_are_checked(lab):
    tx = lab.begin()
    tx.note_read("u", EVERYTHING)
    tx.change("t", append(add("f")))
    assert tx.commit().versions == {"t": 1}
    assert lab.snapshot("u").version == 0

    tx = lab.begin()
    tx.note_read("u", EVERYTHING)
    tx.change("t", append(add("g")))
    lab.commit("u", metadata(a="1"))
    with pytest.raises(MetadataChanged) as raised:
        tx.commit()
    assert raised.value.table == "u"
    assert lab.files("t") == ["f"]


def test_an_application_that_was_asked_for_is_a_guard_too(lab):
    tx = lab.begin()
    tx.note_read("u", ReadSet(app_ids=frozenset(["app"])))
    tx.change("t", append(add("f")))
    lab.commit("u", Txn(app_id="app", version=1))
    with pytest.raises(ConcurrentTransaction):
        tx.commit()


def test_reading_alone_commits_nothing(lab):
    tx = lab.begin()
    tx.note_read("t", EVERYTHING)
    with pytest.raises(InvalidArgument, match="nothing is staged"):
        tx.commit()


def test_a_failed_commit_ends_the_transaction_and_takes_its_files_along(lab):
    tx = lab.begin()
    tx.change("t", append(remove("nosuch")))
    tx.wrote(["file:///x", "file:///y"])
    with pytest.raises(Exception, match="nosuch"):
        tx.commit()
    assert tx.state == "rolled back"
    assert lab.removed == ["file:///x", "file:///y"]
    assert lab.snapshot("t").version == 0


def test_rollback(lab):
    tx = lab.begin()
    tx.change("t", append(add("f")))
    tx.wrote(["file:///x"])
    tx.rollback()
    tx.rollback()
    assert lab.removed == ["file:///x"]
    for use in (tx.commit, lambda: tx.stage("t"), lambda: tx.note_read("t", EVERYTHING)):
        with pytest.raises(TransactionClosed, match="rolled back") as raised:
            use()
        assert raised.value.transaction_id == tx.id
    assert lab.files("t") == []


def test_a_committed_transaction_stays_committed(lab):
    tx = lab.begin()
    tx.change("t", append(add("f")))
    tx.wrote(["file:///t/f"])
    tx.commit()
    tx.rollback()
    with pytest.raises(TransactionClosed, match="committed"):
        tx.commit()
    assert (tx.state, lab.removed, lab.files("t")) == ("committed", [], ["f"])


def test_files_that_were_written_in_vain_go(lab):
    """A write inside the transaction failed and was caught."""
    tx = lab.begin()
    tx.wrote(["file:///t/half"])
    tx.wrote(["file:///t/p=a%2520b/f", "file:///u/f"])
    tx.change("t", append(add("p=a%2520b/f")))
    tx.change("u", append(add("f")))
    tx.commit()
    assert lab.removed == ["file:///t/half"]


def test_the_same_id_again_returns_the_first_result(lab):
    first = lab.commit("t", add("f"), transaction_id="once")
    lab.now += 50
    tx = lab.begin(transaction_id="once")
    tx.change("t", append(add("other")))
    tx.wrote(["file:///other"])
    second = tx.commit()
    assert second == first
    assert (first.repeated, second.repeated) == (False, True)
    assert lab.files("t") == ["f"]
    assert lab.removed == ["file:///other"]


def test_the_first_result_is_found_even_when_the_table_is_gone(lab):
    first = lab.commit("t", add("f"), transaction_id="once")
    tx = lab.begin(transaction_id="once")
    tx.change("t", append(add("f")))
    Registry(lab.database).drop("t")
    assert tx.commit() == first


def test_a_table_that_was_dropped_meanwhile(lab):
    tx = lab.begin()
    tx.change("t", append(add("f")))
    tx.change("u", append(add("g")))
    Registry(lab.database).drop("t")
    with pytest.raises(TableNotFound, match="dropped"):
        tx.commit()
    assert lab.snapshot("u").version == 0


def test_an_unknown_table(lab):
    with pytest.raises(TableNotFound, match="tables: t, u, v"):
        lab.begin().stage("nosuch")


# --- limits ---------------------------------------------------------------------------------------


def test_tables_are_counted_read_or_written(lab):
    tx = lab.begin(limits=Limits(max_tables=2))
    tx.change("t", append(add("f")))
    tx.note_read("u", EVERYTHING)
    for use in (
        lambda: tx.stage("v"),
        lambda: tx.create(NewTable("n", "file:///n"), append(PROTOCOL, metadata())),
    ):
        with pytest.raises(TooManyTables) as raised:
            use()
        assert (raised.value.limit, raised.value.found) == (2, 3)
    tx.change("t", append(add("g")))
    assert tx.commit().versions == {"t": 1}


def test_files_are_counted_by_table(lab):
    tx = lab.begin(limits=Limits(max_files_per_table=2))
    tx.change("t", append(add("a"), add("b")))
    tx.change("u", append(add("a"), add("b")))
    with pytest.raises(TooManyFiles) as raised:
        tx.change("t", append(add("c")))
    assert (raised.value.table, raised.value.limit, raised.value.found) == ("t", 2, 3)
    tx.commit()
    assert lab.files("t") == ["a", "b"]


def test_time_is_up(lab):
    tx = lab.begin(limits=Limits(timeout_secs=10))
    lab.seconds = 10.0
    tx.change("t", append(add("f")))
    tx.wrote(["file:///x"])
    lab.seconds = 10.5
    with pytest.raises(TransactionTimeout) as raised:
        tx.change("t", append(add("g")))
    assert (raised.value.timeout_secs, raised.value.elapsed_secs) == (10, 10.5)
    with pytest.raises(TransactionTimeout):
        tx.commit()
    assert (tx.state, lab.removed) == ("rolled back", ["file:///x"])
    assert lab.files("t") == []


@contextmanager
def another_writer(lab):
    """Someone else has the database to himself."""
    with closing(sqlite3.connect(lab.database.uri.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield


def test_a_commit_waits_for_others_and_not_for_ever(lab):
    tx = lab.begin(transaction_id="x")
    tx.change("t", append(add("f")))
    tx.wrote(["file:///t/f"])
    with another_writer(lab), pytest.raises(CatalogLocked):
        tx.commit()
    assert (tx.state, lab.removed, lab.files("t")) == ("rolled back", ["file:///t/f"], [])


def test_time_may_be_up_while_others_write(lab):
    tx = lab.begin(limits=Limits(timeout_secs=10))
    tx.change("t", append(add("f")))
    lab.pace = 4.0
    with another_writer(lab), pytest.raises(TransactionTimeout) as raised:
        tx.commit()
    assert raised.value.elapsed_secs == 12
    assert (tx.state, lab.files("t")) == ("rolled back", [])


def test_what_is_refused_is_not_staged(lab):
    tx = lab.begin()
    tx.change("t", append(add("f")))
    with pytest.raises(InvalidCommit):
        tx.change("t", append(add("f")))
    with pytest.raises(InvalidArgument, match="already part"):
        tx.create(NewTable("t", "file:///n"), append(PROTOCOL, metadata()))
    tx.commit()
    assert lab.files("t") == ["f"]


# --- when nobody knows ----------------------------------------------------------------------------


@pytest.mark.parametrize("point", ["begin", "before_commit", "inside_commit", "after_commit"])
def test_a_lost_connection_costs_nothing_but_another_attempt(lab, point):
    with faults.armed(f"{point}:lose_connection"):
        result = lab.commit("t", add("f"))
    assert result.versions == {"t": 1}
    assert not result.repeated
    assert lab.slept[-2:] == [0.0, 0.1]
    assert lab.files("t") == ["f"]
    assert lab.snapshot("t").version == 1


@pytest.mark.parametrize("point", ["before_commit", "inside_commit"])
def test_files_are_kept_when_the_outcome_is_unknown(lab, point):
    tx = lab.begin(transaction_id="x")
    tx.change("t", append(add("f")))
    tx.wrote(["file:///f"])
    with (
        faults.armed(*[f"{point}:lose_connection"] * 5),
        pytest.raises(CommitOutcomeUnknown) as raised,
    ):
        tx.commit()
    assert raised.value.transaction_id == "x"
    assert (tx.state, lab.removed) == ("unknown", [])
    with pytest.raises(TransactionClosed, match="unknown"):
        tx.commit()
    assert lab.commit("t", add("f"), transaction_id="x").versions == {"t": 1}
    assert lab.files("t") == ["f"]


def test_an_interrupted_commit_keeps_its_files(lab):
    """Ctrl-C may arrive after COMMIT: files that a table may need are never removed."""
    tx = lab.begin()
    tx.change("t", append(add("f")))
    tx.wrote(["file:///f"])

    def interrupted():
        raise KeyboardInterrupt

    lab.writer.clock = interrupted
    with pytest.raises(KeyboardInterrupt):
        tx.commit()
    assert (tx.state, lab.removed) == ("unknown", [])


def test_an_unreachable_database_is_no_doubt_before_the_end(lab):
    """The connection was lost before COMMIT was sent: nothing can have happened."""
    tx = lab.begin()
    tx.change("t", append(add("f")))
    tx.wrote(["file:///f"])
    with (
        faults.armed(*["begin:lose_connection"] * 5),
        pytest.raises(Exception, match="fault was injected") as raised,
    ):
        tx.commit()
    assert type(raised.value).__name__ == "ConnectionLost"
    assert (tx.state, lab.removed) == ("rolled back", ["file:///f"])
