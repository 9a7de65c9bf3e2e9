from __future__ import annotations

import random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltalakedb.errors import CorruptLog, InvalidCommit
from deltalakedb.model.actions import (
    Add,
    Cdc,
    CheckpointMetadata,
    CommitInfo,
    DeletionVector,
    DomainMetadata,
    Metadata,
    Protocol,
    Remove,
    Sidecar,
    Txn,
    UnknownAction,
)
from deltalakedb.model.replay import State, replay, validate_commit

PROTOCOL = Protocol(min_reader_version=1, min_writer_version=2)
METADATA = Metadata(id="1", schema_string="")


def vector(name):
    if name is None:
        return None
    return DeletionVector(
        storage_type="u", path_or_inline_dv=name, size_in_bytes=1, cardinality=1, offset=1
    )


def add(path, dv=None, **more):
    values = {"partition_values": {}, "size": 1, "modification_time": 1, "data_change": True}
    return Add(path=path, deletion_vector=vector(dv), **(values | more))


def remove(path, dv=None, **more):
    return Remove(path=path, data_change=True, deletion_vector=vector(dv), **more)


def replayed(*commits, base=None, root=None):
    return replay(enumerate(commits, start=base.version + 1 if base else 0), base, root=root)


def live(state):
    return sorted(state.files)


def test_the_newest_of_everything_wins():
    first = [
        PROTOCOL,
        METADATA,
        Txn(app_id="a", version=1),
        DomainMetadata(domain="d", configuration="1"),
        DomainMetadata(domain="e", configuration="1"),
        CommitInfo("{}"),
        add("f1"),
        add("f2"),
    ]
    newer = msgspec.structs.replace(METADATA, name="n")
    second = [
        newer,
        Txn(app_id="a", version=0),
        DomainMetadata(domain="d", configuration="1", removed=True),
        UnknownAction("new", "{}"),
        remove("f1"),
        add("f2", size=9),
    ]
    state = replayed(first, second)
    assert state.version == 1
    assert state.complete() == (PROTOCOL, newer)
    assert state.txns["a"].version == 0
    assert list(state.domains) == ["e"]
    assert live(state) == [("f2", "")]
    assert state.files["f2", ""].size == 9
    assert list(state.tombstones) == [("f1", "")]
    assert state.unknown == (UnknownAction("new", "{}"),)


def test_files_are_told_apart_by_deletion_vector():
    state = replayed(
        [add("f")], [remove("f"), add("f", "one")], [add("f", "two"), remove("f", "one")]
    )
    assert live(state) == [("f", "utwo@1")]
    assert sorted(state.tombstones) == [("f", ""), ("f", "uone@1")]


def test_a_file_that_comes_back_is_no_tombstone():
    state = replayed([add("f")], [remove("f")], [add("f")])
    assert live(state) == [("f", "")]
    assert state.tombstones == {}


def test_spellings_of_a_path_are_one_file():
    state = replayed(
        [add("a%20b"), add("/t/c"), add("x=1/d")],
        [remove("a b"), remove("c"), remove("file:///t/x=1/d")],
        root="/t",
    )
    assert live(state) == []


def test_a_checkpoint_is_a_base():
    checkpoint = replay([(10, [PROTOCOL, METADATA, add("a"), remove("b")])])
    assert checkpoint.version == 10
    state = replayed([remove("a"), add("c")], base=checkpoint)
    assert (state.version, live(state)) == (11, [("c", "")])
    assert live(checkpoint) == [("a", "")]  # untouched
    assert replay([], checkpoint).version == 10
    assert replay([]) == State()


def test_gaps_are_corrupt():
    with pytest.raises(CorruptLog, match="version 1 is missing") as caught:
        replay([(0, []), (2, [])])
    assert caught.value.version == 2
    with pytest.raises(CorruptLog):
        replay([(5, [])], State(version=3))


def test_a_file_cannot_come_and_go_at_once():
    for commit in ([add("a"), remove("a")], [remove("a%62"), add("ab")]):
        with pytest.raises(CorruptLog, match="both adds and removes"):
            replayed(commit)


@pytest.mark.parametrize(("given", "missing"), [([METADATA], "protocol"), ([PROTOCOL], "metaData")])
def test_a_table_needs_protocol_and_metadata(given, missing):
    with pytest.raises(CorruptLog, match=f"no {missing}") as caught:
        replayed(given).complete("here")
    assert (caught.value.location, caught.value.version) == ("here", 0)


keys = st.tuples(st.sampled_from("abcde"), st.none() | st.sampled_from("xy"))


@given(st.lists(st.sets(keys), max_size=6), st.randoms(use_true_random=False))
def test_replay_is_the_last_word_on_every_file(snapshots, rng: random.Random):
    """Commits made from the differences of random snapshots lead to the last snapshot."""
    commits, now = [], set()
    for wanted in snapshots:
        actions = [remove(*key) for key in now - wanted] + [add(*key) for key in wanted - now]
        rng.shuffle(actions)
        commits.append(actions)
        now = wanted
    expected = sorted((path, "" if dv is None else f"u{dv}@1") for path, dv in now)
    whole = replayed(*commits)
    assert live(whole) == expected
    assert not whole.files.keys() & whole.tombstones.keys()
    for cut in range(len(commits) + 1):
        base = replayed(*commits[:cut])
        assert replayed(*commits[cut:], base=base) == whole


# -- the rules of a commit ---------------------------------------------------------------------


def test_a_good_commit():
    validate_commit(
        [
            CommitInfo("{}"),
            PROTOCOL,
            METADATA,
            Txn(app_id="a", version=1),
            Txn(app_id="b", version=1),
            DomainMetadata(domain="d", configuration=""),
            UnknownAction("x", "{}"),
            UnknownAction("x", "{}"),
            add("a", "one"),
            remove("a"),
            Cdc(path="a", partition_values={}, size=1),
            add("b", partition_values={}),
        ],
        partition_columns=[],
    )


@pytest.mark.parametrize(
    ("actions", "rule"),
    [
        ([METADATA, METADATA], "one metaData"),
        ([PROTOCOL, PROTOCOL], "one protocol"),
        ([CommitInfo("{}"), CommitInfo("{}")], "one commitInfo"),
        ([Txn(app_id="a", version=1), Txn(app_id="a", version=2)], "one txn"),
        ([DomainMetadata(domain="a", configuration="")] * 2, "one domainMetadata"),
        ([add("a"), add("a", "one")], "one add per path"),
        ([add("a b"), add("a%20b")], "one add per path"),
        ([remove("a"), remove("a", "one")], "one remove per path"),
        ([add("a"), remove("a")], "add and remove the same file"),
        ([add("a", "one"), remove("a", "one")], "add and remove the same file"),
        ([CheckpointMetadata(version=1)], "only checkpoints"),
        ([Sidecar(path="a", size_in_bytes=1, modification_time=1)], "only checkpoints"),
        ([add("a", size=-1)], "not negative"),
        ([remove("a", size=-1)], "not negative"),
        ([Cdc(path="a", partition_values={}, size=-1)], "not negative"),
        ([Cdc(path="a", partition_values={}, size=1, data_change=True)], "never changes data"),
        ([add("../a")], "climbs"),
        ([remove("x/../../a")], "climbs"),
        ([add("/etc/passwd")], "absolute"),
        ([remove("_delta_log/00000000000000000000.json")], "in the log"),
        ([add("a", partition_values={"p": "1"})], "every partition column"),
        ([Cdc(path="a", partition_values={"p": "1"}, size=1)], "every partition column"),
    ],
)
def test_what_the_rules_forbid(actions, rule):
    with pytest.raises(InvalidCommit, match=rule) as caught:
        validate_commit(actions, partition_columns=[], table="t")
    assert caught.value.table == "t"
    assert caught.value.rule


@pytest.mark.parametrize(
    ("values", "rule"),
    [
        ({"storage_type": "z"}, "u, i or p"),
        ({"storage_type": "i", "offset": 1}, "no offset"),
        ({"size_in_bytes": -1}, "not negative"),
        ({"cardinality": -1}, "not negative"),
        ({"offset": -1}, "not negative"),
    ],
)
def test_deletion_vectors_that_cannot_be(values, rule):
    dv = msgspec.structs.replace(vector("x"), **values)
    with pytest.raises(InvalidCommit, match=rule):
        validate_commit([msgspec.structs.replace(add("a"), deletion_vector=dv)])


def test_partition_values_are_complete():
    file = add("a", partition_values={"p": None, "q": "1"})
    validate_commit([file, remove("b")], partition_columns=["q", "p"])
    validate_commit([file])
    with pytest.raises(InvalidCommit):
        validate_commit([file], partition_columns=["p"])


def test_absolute_paths_where_they_are_allowed():
    validate_commit([add("s3://b/f"), add("/x")], absolute_paths="allow")
    with pytest.raises(InvalidCommit):
        validate_commit([add("s3://b/../f")], absolute_paths="allow")
