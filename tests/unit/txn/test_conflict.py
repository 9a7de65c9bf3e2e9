"""The conflict rules, cell by cell: who may follow whom."""

from __future__ import annotations

import itertools
from dataclasses import replace

import msgspec
import pytest

from deltalakedb.errors import (
    ConcurrentAppend,
    ConcurrentDeleteDelete,
    ConcurrentDeleteRead,
    ConcurrentTransaction,
    MetadataChanged,
    ProtocolChanged,
)
from deltalakedb.log.base import Head, ReadSet, Winner
from deltalakedb.model.actions import CommitInfo, DomainMetadata, Protocol, Txn
from deltalakedb.model.expr import parse
from deltalakedb.txn.conflict import find_conflict, rebase
from support.actions import (
    SCHEMA,
    add,
    metadata,
    protocol,
    remove,
    snapshot,
    stats,
    table_commit,
    vector,
)

ISOLATIONS = ("WriteSerializable", "Serializable")


def where(text):
    return ReadSet(predicates=(parse(text, SCHEMA),))


def winner(**more):
    return Winner(**({"version": 1, "operation": "W", "is_blind_append": False} | more))


def verdict(mine, won):
    found = find_conflict(mine, won)
    return found.error if found else None


# --- the table of delta-rules.md ------------------------------------------------------------------
# Everything happens in partition a. The losers that remove take `mine`, which nobody else touches,
# unless the winner's name says so.

LOSERS = {
    "blind append": table_commit(add("new")),
    "append that read": table_commit(add("new"), reads=where("p = 'a'")),
    "append that read all": table_commit(add("new"), reads=ReadSet(whole_table=True)),
    "replaceWhere": table_commit(remove("mine"), add("new"), reads=where("p = 'a'")),
    "overwrite": table_commit(remove("mine"), add("new"), reads=ReadSet(whole_table=True)),
    "delete": table_commit(remove("mine"), reads=where("p = 'a'")),
    "update": table_commit(remove("mine"), add("new"), reads=where("p = 'a'")),
    "compaction": table_commit(
        remove("mine", data_change=False), add("new", data_change=False), reads=where("p = 'a'")
    ),
    "delete of nothing": table_commit(reads=where("p = 'a'")),
    "guard": table_commit(reads=where("p = 'a'"), guard=True),
}
WINNERS = {
    "blind append": winner(adds=[add("w")], is_blind_append=True),
    "append that read": winner(adds=[add("w")]),
    "delete": winner(removes=[add("old")]),
    "delete of mine": winner(removes=[add("mine")]),
    "update": winner(removes=[add("old")], adds=[add("w")]),
    "compaction": winner(removes=[add("old")], adds=[add("w", data_change=False)]),
    "compaction of mine": winner(removes=[add("mine")], adds=[add("w", data_change=False)]),
    "metadata": winner(metadata=metadata(), is_blind_append=True),
}
READS_ROWS = [name for name in LOSERS if name not in ("blind append", "compaction")]
PAIRS = list(itertools.product(LOSERS, WINNERS))
REMOVES = ("replaceWhere", "overwrite", "delete", "update", "compaction")


def expected(loser, won, isolation):
    if won == "metadata":
        return MetadataChanged
    if loser == "blind append":
        return None
    if won == "blind append":
        strict = isolation == "Serializable" and loser in READS_ROWS
        return ConcurrentAppend if strict else None
    if won == "append that read":
        return ConcurrentAppend if loser in READS_ROWS else None
    if won.endswith("of mine") and loser in REMOVES:
        return ConcurrentDeleteDelete
    return ConcurrentDeleteRead


@pytest.mark.parametrize("isolation", ISOLATIONS)
@pytest.mark.parametrize(("loser", "won"), PAIRS)
def test_the_table_of_rules(loser, won, isolation):
    mine = replace(LOSERS[loser], isolation=isolation)
    assert verdict(mine, WINNERS[won]) is expected(loser, won, isolation)


CONFINED = [
    (loser, won)
    for loser, won in PAIRS
    if not LOSERS[loser].reads.whole_table and not won.endswith(("of mine", "metadata"))
]


@pytest.mark.parametrize("isolation", ISOLATIONS)
@pytest.mark.parametrize(("loser", "won"), CONFINED)
def test_nobody_in_another_partition_minds(loser, won, isolation):
    def moved(files):
        return [msgspec.structs.replace(f, partition_values={"p": "b"}) for f in files]

    found = WINNERS[won]
    elsewhere = replace(found, adds=moved(found.adds), removes=moved(found.removes))
    assert verdict(replace(LOSERS[loser], isolation=isolation), elsewhere) is None


# --- which files a predicate covers ---------------------------------------------------------------

COVERED = [
    ("id > 100", stats(5, id=(0, 10)), False),
    ("id > 100", stats(5, id=(50, 150)), True),
    ("id > 100", stats(5, id=(101, 101)), True),
    ("id > 100", None, True),
    ("id > 100", "not json", True),
    ("id > 100", stats(5), True),
    ("id = 7 AND p = 'b'", stats(5, id=(0, 10)), False),
    ("id = 7 OR p = 'b'", stats(5, id=(0, 10)), True),
    ("id = 7 OR p = 'b'", stats(5, id=(8, 10)), False),
    ("p IN ('b', 'a')", None, True),
    ("p IS NULL", None, False),
    ("p != 'a'", None, False),
    ("NOT (p = 'b')", None, True),
    ("s LIKE 'x%'", stats(5, s=("y", "z")), False),
    ("s LIKE 'x%'", stats(5, s=("w", "z")), True),
    ("id % 2 = 0", stats(5, id=(1, 1)), True),
    ("false", None, False),
]


@pytest.mark.parametrize(("text", "found", "conflicts"), COVERED)
def test_a_file_counts_only_if_the_predicate_may_match_it(text, found, conflicts):
    mine = table_commit(remove("mine"), reads=where(text))
    file = add("w", stats=found)
    assert verdict(mine, winner(adds=[file])) is (ConcurrentAppend if conflicts else None)
    assert verdict(mine, winner(removes=[file])) is (ConcurrentDeleteRead if conflicts else None)


def test_one_of_several_reads_is_enough():
    reads = ReadSet(predicates=(parse("p = 'x'", SCHEMA), parse("id < 0", SCHEMA)))
    mine = table_commit(remove("mine"), reads=reads)
    assert verdict(mine, winner(adds=[add("w", stats=stats(1, id=(-1, 5)))])) is ConcurrentAppend
    assert verdict(mine, winner(adds=[add("w", stats=stats(1, id=(0, 5)))])) is None


def test_null_partitions_are_told_apart():
    mine = table_commit(remove("mine"), reads=where("p IS NULL"))
    assert verdict(mine, winner(adds=[add("w", None)])) is ConcurrentAppend
    assert verdict(mine, winner(adds=[add("w", "")])) is ConcurrentAppend
    assert verdict(mine, winner(adds=[add("w", "a")])) is None


def test_a_new_deletion_vector_is_a_change_of_the_file():
    """The winner deleted rows of a file that this commit rewrites: those rows must not return."""
    mine = table_commit(remove("f"), add("new"), reads=where("id = 1"))
    old = add("f", stats=stats(9, id=(5, 9)))
    new = add("f", stats=stats(9, id=(5, 9)), deletion_vector=vector("v"))
    assert verdict(mine, winner(removes=[old], adds=[new])) is ConcurrentDeleteDelete


# --- adding a file again --------------------------------------------------------------------------


def test_a_file_that_was_removed_does_not_come_back_with_new_statistics():
    mine = table_commit(add("f", data_change=False, stats=stats(1)))
    assert verdict(mine, winner(removes=[add("f")])) is ConcurrentDeleteRead
    assert verdict(mine, winner(removes=[add("g")])) is None


# --- commits that are neither data nor compaction -------------------------------------------------


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_a_constraint_must_hold_for_a_blind_append_too(isolation):
    """Adding a CHECK reads every row, and the rows that appeared meanwhile were not among them."""
    mine = table_commit(metadata(), reads=ReadSet(whole_table=True), isolation=isolation)
    assert verdict(mine, WINNERS["blind append"]) is ConcurrentAppend


def test_properties_may_change_beside_an_append():
    assert verdict(table_commit(metadata()), WINNERS["blind append"]) is None
    assert verdict(table_commit(metadata()), WINNERS["update"]) is None


def test_what_was_concluded_from_rows_depends_on_them():
    """A commit without files that read the table is no compaction."""
    conclusion = DomainMetadata(domain="max", configuration="7")
    mine = table_commit(conclusion, reads=ReadSet(whole_table=True))
    assert verdict(mine, WINNERS["append that read"]) is ConcurrentAppend
    assert verdict(replace(mine, isolation="Serializable"), WINNERS["blind append"])


def test_a_compaction_with_provenance_is_still_one():
    mine = LOSERS["compaction"]
    described = replace(mine, actions=(CommitInfo("{}"), *mine.actions))
    assert verdict(described, WINNERS["append that read"]) is None


# --- applications and domains ---------------------------------------------------------------------

TXN = Txn(app_id="app", version=1)
DOMAIN = DomainMetadata(domain="d", configuration="{}")
ROW_TRACKING = DomainMetadata(domain="delta.rowTracking", configuration="{}")


@pytest.mark.parametrize(
    ("mine", "won", "error"),
    [
        (table_commit(add("f"), TXN), winner(txns=[TXN]), ConcurrentTransaction),
        (table_commit(add("f"), TXN), winner(txns=[Txn(app_id="b", version=1)]), None),
        (
            table_commit(add("f"), reads=ReadSet(app_ids=frozenset(["app"]))),
            winner(txns=[TXN]),
            ConcurrentTransaction,
        ),
        (table_commit(add("f")), winner(txns=[TXN]), None),
        (table_commit(DOMAIN), winner(domains=[DOMAIN]), ConcurrentTransaction),
        (table_commit(DOMAIN), winner(domains=[ROW_TRACKING]), None),
        (table_commit(ROW_TRACKING), winner(domains=[ROW_TRACKING]), None),
        (table_commit(add("f")), winner(domains=[DOMAIN]), None),
    ],
)
def test_applications_and_domains(mine, won, error):
    assert verdict(mine, won) is error


# --- protocol -------------------------------------------------------------------------------------

LEGACY = Protocol(min_reader_version=1, min_writer_version=4)


@pytest.mark.parametrize(
    ("before", "after", "error"),
    [
        (protocol("appendOnly"), protocol("appendOnly", "domainMetadata"), None),
        (protocol("appendOnly", "rowTracking"), protocol("appendOnly"), ProtocolChanged),
        (LEGACY, protocol("appendOnly", "invariants"), ProtocolChanged),
        (protocol(), protocol("clustering"), ProtocolChanged),
        (protocol(), protocol("fromTheFuture"), ProtocolChanged),
        (protocol("fromTheFuture"), protocol("fromTheFuture", "domainMetadata"), None),
    ],
)
def test_a_protocol_may_gain_what_is_known_and_lose_nothing(before, after, error):
    mine = table_commit(add("f"), base=snapshot(protocol=before))
    assert verdict(mine, winner(protocol=after)) is error


def test_two_changes_of_the_protocol_conflict():
    mine = table_commit(protocol("domainMetadata"))
    assert verdict(mine, winner(protocol=protocol("domainMetadata"))) is ProtocolChanged


# --- rebase ---------------------------------------------------------------------------------------


def unreachable():
    raise AssertionError("the winners were loaded")


@pytest.mark.parametrize(
    "actions", [[add("f")], [add("f"), CommitInfo("{}")], [CommitInfo("{}")]], ids=len
)
def test_a_blind_append_follows_without_a_look_at_the_winners(actions):
    mine = table_commit(*actions, base=snapshot(3))
    assert rebase(mine, Head(900, 3, 2), unreachable) is mine


@pytest.mark.parametrize(
    "mine",
    [
        table_commit(remove("f")),
        table_commit(add("f", data_change=False)),
        table_commit(add("f"), TXN),
        table_commit(DOMAIN),
        table_commit(metadata()),
        table_commit(protocol()),
        table_commit(add("f"), reads=where("p = 'a'")),
        table_commit(add("f"), reads=ReadSet(app_ids=frozenset(["x"]))),
        table_commit(reads=ReadSet(whole_table=True)),
    ],
)
def test_everything_else_looks_at_them(mine):
    with pytest.raises(AssertionError, match="loaded"):
        rebase(mine, Head(1, 0, 0), unreachable)


@pytest.mark.parametrize("head", [Head(5, 5, 0), Head(5, 0, 5)], ids=["metadata", "protocol"])
def test_nothing_follows_blindly_when_the_table_itself_changed(head):
    with pytest.raises(AssertionError, match="loaded"):
        rebase(table_commit(add("f")), head, unreachable)


def test_the_first_conflict_is_raised_with_its_facts():
    winners = [WINNERS["blind append"], winner(version=2, operation="MERGE", removes=[add("f")])]
    with pytest.raises(ConcurrentDeleteDelete, match=r"'f'.*version 2 .MERGE.") as raised:
        rebase(table_commit(remove("f")), Head(2, 0, 0), lambda: winners)
    assert raised.value.table == "t"
    assert raised.value.winner == 2
    assert raised.value.winner_operation == "MERGE"
    assert raised.value.rule == "both commits remove 'f'"


def test_a_commit_follows_under_the_newest_protocol():
    one, two = protocol("domainMetadata"), protocol("domainMetadata", "rowTracking")
    winners = [winner(version=1, protocol=one), winner(version=2, protocol=two), winner(version=3)]
    mine = table_commit(add("f"), base=snapshot(0, protocol=protocol()))
    followed = rebase(mine, Head(3, 0, 2), lambda: winners)
    assert followed == replace(mine, base=replace(mine.base, protocol=two))
    assert followed.base.version == 0
