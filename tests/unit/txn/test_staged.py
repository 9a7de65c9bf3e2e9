from __future__ import annotations

import pytest

from deltalakedb.errors import InvalidArgument
from deltalakedb.log.base import NewTable, ReadSet
from deltalakedb.model.actions import Cdc, CommitInfo, Txn
from deltalakedb.model.expr import TRUE
from deltalakedb.txn.staged import Change, Stage, merge_reads
from support.actions import PROTOCOL, add, metadata, protocol, remove, snapshot

BASE = snapshot(7)
STAGE = Stage("t", BASE)


def change(*actions, mode="append", operation="WRITE", **more):
    return Change(operation, mode, actions, **more)


def test_appends_add_up():
    stage = STAGE.plus(change(add("a"))).plus(change(add("b")))
    assert [a.path for a in stage.actions] == ["a", "b"]
    assert stage.num_files == 2
    assert STAGE.changes == ()


@pytest.mark.parametrize("mode", ["overwrite", "delete"])
def test_an_append_may_follow_a_removal(mode):
    stage = STAGE.plus(change(remove("a"), mode=mode)).plus(change(add("b")))
    assert stage.num_files == 2


@pytest.mark.parametrize("first", ["append", "overwrite", "delete"])
@pytest.mark.parametrize("second", ["overwrite", "delete"])
def test_a_removal_follows_nothing_that_touched_files(first, second):
    with pytest.raises(InvalidArgument, match=f"{first!r}.*{second!r}") as raised:
        STAGE.plus(change(add("a"), mode=first)).plus(change(remove("b"), mode=second))
    assert raised.value.table == "t"


def test_the_last_metadata_and_protocol_count_and_come_first():
    first, last = metadata(a="1"), metadata(a="2")
    newer = protocol("appendOnly")
    stage = STAGE.plus(change(PROTOCOL, first, add("a"), mode="alter")).plus(
        change(last, newer, add("b"))
    )
    assert stage.actions == (newer, last, add("a"), add("b"))


def test_files_are_what_is_added_and_removed():
    cdc = Cdc(path="c", partition_values={"p": "a"}, size=1)
    stage = STAGE.plus(change(add("a"), remove("b"), cdc, CommitInfo("{}")))
    assert stage.num_files == 2


@pytest.mark.parametrize(
    ("stage", "live"),
    [
        (STAGE, False),
        (STAGE.plus(change(add("a"))), True),
        (STAGE.reading(ReadSet(whole_table=True)), True),
        (STAGE.reading(ReadSet(predicates=(TRUE,))), True),
        (STAGE.reading(ReadSet(app_ids=frozenset(["app"]))), True),
        (STAGE.reading(ReadSet()), False),
    ],
)
def test_what_matters_at_commit(stage, live):
    assert stage.is_live is live


def test_the_commit_of_several_changes():
    stage = (
        STAGE.reading(ReadSet(app_ids=frozenset(["app"])))
        .plus(
            change(
                remove("a"),
                mode="delete",
                operation="DELETE",
                parameters={"predicate": "x"},
                metrics={"numFiles": 1, "gone": 5},
                reads=ReadSet(predicates=(TRUE,)),
                fresh_files=True,
            )
        )
        .plus(change(add("b"), metrics={"numFiles": 2}, fresh_files=True))
    )
    made = stage.commit("Serializable")
    assert (made.table, made.base, made.create) == ("t", BASE, None)
    assert made.operation == "DELETE"
    assert made.parameters == {"predicate": "x"}
    assert made.metrics == {"numFiles": 3, "gone": 5}
    assert made.reads == ReadSet(predicates=(TRUE,), app_ids=frozenset(["app"]))
    assert made.isolation == "Serializable"
    assert made.fresh_files


def test_files_are_fresh_only_if_all_are():
    stage = STAGE.plus(change(add("a"), fresh_files=True)).plus(change(add("b")))
    assert not stage.commit("x").fresh_files


def test_a_guard_has_no_actions():
    made = STAGE.reading(ReadSet(whole_table=True)).commit("WriteSerializable")
    assert made.actions == ()
    assert made.operation == "READ"
    assert made.reads.whole_table
    assert made.guard
    assert not STAGE.plus(change(mode="delete")).commit("x").guard, "it changed nothing, knowingly"


def test_a_new_table():
    stage = Stage("n", None, create=NewTable("n", "file:///n"))
    made = stage.plus(change(PROTOCOL, metadata(), mode="create")).commit("Serializable")
    assert made.table == "n"
    assert made.base is None


@pytest.mark.parametrize(
    ("actions", "reads", "blind"),
    [
        ([add("a")], ReadSet(), True),
        ([add("a"), Txn(app_id="x", version=1)], ReadSet(), True),
        ([metadata()], ReadSet(), True),
        ([add("a")], ReadSet(whole_table=True), False),
        ([add("a")], ReadSet(predicates=(TRUE,)), False),
        ([add("a", data_change=False)], ReadSet(), False),
        ([add("a"), remove("b")], ReadSet(), False),
        ([remove("b", data_change=False)], ReadSet(), False),
    ],
)
def test_blind_appends(actions, reads, blind):
    made = STAGE.plus(change(*actions, reads=reads)).commit("x")
    assert made.is_blind_append is blind


def test_reads_are_merged():
    one = ReadSet(predicates=(TRUE,), app_ids=frozenset(["a"]))
    two = ReadSet(whole_table=True, app_ids=frozenset(["b"]))
    assert merge_reads([one, two]) == ReadSet((TRUE,), True, frozenset(["a", "b"]))
    assert merge_reads([]) == ReadSet()
