"""The writer on every engine: one SQL transaction, in order, or nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from deltalakedb.errors import (
    ConcurrentDeleteDelete,
    ConcurrentDeleteRead,
    InvalidCommit,
    TableAlreadyExists,
    TableDiverged,
    VersionConflict,
)
from deltalakedb.log.base import NewTable, ReadSet, TableCommit
from deltalakedb.log.sql_writer import read_winners, strict
from deltalakedb.model.actions import DomainMetadata, Txn
from support.actions import PROTOCOL, add, metadata, protocol, remove, stats, vector
from support.logs import Log


@pytest.fixture
def log(catalog_uri):
    with Log(catalog_uri) as log:
        yield log


def winners(log, table="t", after=0):
    with log.database.read() as session:
        return read_winners(session, log.snapshot(table).table_id, after)


# --- the head -------------------------------------------------------------------------------------


def test_without_a_policy_the_head_is_compared_and_swapped(log):
    log.create("t")
    stale = log.part("t", add("f"))
    log.submit(log.part("t", add("g")), rebase=strict)
    with pytest.raises(VersionConflict) as raised:
        log.submit(stale, rebase=strict)
    assert (raised.value.table, raised.value.expected, raised.value.found) == ("t", 0, 1)
    assert log.paths("t") == ["g"]


def test_versions_have_no_gap_and_the_order_is_the_same_everywhere(log):
    log.create("t", "u")
    for n in range(5):
        log.submit(log.part("t", add(f"t{n}")), log.part("u", add(f"u{n}")))
        log.commit("u", add(f"v{n}"))
    for name, last in (("t", 5), ("u", 10)):
        rows = log.rows(
            "SELECT v.version, v.seq, v.committed_at FROM dl_table_versions v JOIN dl_tables t"
            " ON t.table_id = v.table_id WHERE t.name = ? ORDER BY v.version",
            [name],
        )
        assert [row[0] for row in rows] == list(range(last + 1))
        assert [row[1:] for row in rows] == sorted({row[1:] for row in rows})
    order = log.rows("SELECT seq FROM dl_transactions ORDER BY seq")
    assert len(order) == 11


def test_time_moves_on_when_the_clock_does_not(log):
    log.create("t", "u")
    start = log.clock.ms
    assert log.commit("t", add("a")).timestamp == start + 1
    log.clock.advance(-10_000)
    assert log.commit("t", add("b")).timestamp == start + 2
    # A commit is later than everything it depends on, also what it only read.
    guard = log.part("t", reads=ReadSet(whole_table=True), guard=True)
    assert log.submit(log.part("u", add("c")), guard).timestamp == start + 3
    log.clock.advance(20_000)
    assert log.commit("t", add("d")).timestamp == log.clock.ms


def test_the_mirror_has_something_to_do_for_every_version(log):
    log.create("t")
    log.commit("t", add("a"))
    rows = log.rows("SELECT version, target, status, attempts FROM dl_mirror_status")
    assert sorted(rows) == [(0, "delta", "PENDING", 0), (1, "delta", "PENDING", 0)]


# --- all or nothing -------------------------------------------------------------------------------


@pytest.mark.parametrize("failing", ["t", "u"])
def test_a_part_that_fails_leaves_nothing_of_the_others(log, failing):
    log.create("t", "u")
    before = log.counts()
    parts = [
        log.part(name, remove("nosuch") if name == failing else add("f")) for name in ("t", "u")
    ]
    with pytest.raises(ConcurrentDeleteDelete, match="nosuch") as raised:
        log.submit(*parts)
    assert raised.value.table == failing
    assert log.counts() == before


def test_a_table_that_cannot_be_created_leaves_nothing_of_the_rest(log):
    log.create("t", "u")
    before = log.counts()
    for name, location in (("t", "file:///n"), ("n", "file:///u")):
        new = TableCommit((PROTOCOL, metadata()), "CREATE TABLE", create=NewTable(name, location))
        with pytest.raises(TableAlreadyExists):
            log.submit(log.part("t", add("f")), new)
    assert log.counts() == before
    assert log.registry.heads() == {"t": 0, "u": 0}


def test_the_same_id_is_committed_once(log):
    log.create("t", "u")
    part, other = log.part("t", add("f")), log.part("u", add("g"))
    first = log.submit(part, transaction_id="id")
    again = log.submit(part, transaction_id="id")
    different = log.submit(other, transaction_id="id")
    assert first == again == different
    assert [r.repeated for r in (first, again, different)] == [False, True, True]
    assert log.writer.find("id") == first
    assert log.writer.find("other") is None
    assert log.registry.heads() == {"t": 1, "u": 0}


# --- tables that take no writes -------------------------------------------------------------------


def test_a_diverged_table_is_read_and_not_written(log):
    log.create("t", "u")
    with log.database.write() as session:
        session.run("UPDATE dl_tables SET status = 'diverged' WHERE name = ?", ("t",))
    with pytest.raises(TableDiverged) as raised:
        log.commit("t", add("f"))
    assert (raised.value.table, raised.value.reason) == ("t", "diverged")
    guard = log.part("t", reads=ReadSet(whole_table=True), guard=True)
    assert log.submit(guard, log.part("u", add("f"))).versions == {"u": 1}


def test_a_renamed_table_is_still_the_same(log):
    log.create("t")
    part = log.part("t", add("f"))
    log.registry.rename("t", "renamed")
    log.submit(part)
    assert log.paths("renamed") == ["f"]


def test_a_name_that_is_free_again_belongs_to_another_table(log):
    log.create("t")
    log.commit("t", add("old"))
    log.registry.drop("t")
    log.create("t")
    assert log.snapshot("t").version == 0
    assert log.paths("t") == []


# --- files ----------------------------------------------------------------------------------------


def totals(log, version=None):
    found = log.snapshot("t", version)
    return found.num_files, found.size_bytes, found.num_records


def test_totals_follow_every_kind_of_change(log):
    log.create("t")
    assert totals(log) == (0, 0, 0)
    log.commit("t", add("a", size=1, stats=stats(10)), add("b", size=2, stats=stats(20)))
    assert totals(log) == (2, 3, 30)
    log.commit("t", add("c", size=4))
    assert totals(log) == (3, 7, None)
    log.commit("t", add("c", size=5, stats=stats(1), data_change=False))
    assert totals(log) == (3, 8, 31)
    dv = vector("v", cardinality=4)
    log.commit("t", remove("a"), add("a", size=1, stats=stats(10), deletion_vector=dv))
    assert totals(log) == (3, 8, 27)
    newer = vector("w", cardinality=9)
    log.commit(
        "t",
        remove("a", deletion_vector=dv),
        add("a", size=1, stats=stats(10), deletion_vector=newer),
    )
    assert totals(log) == (3, 8, 22)
    log.commit("t", remove("a", deletion_vector=newer), remove("b"), remove("c"))
    assert totals(log) == (0, 0, 0)
    assert [totals(log, v)[0] for v in range(7)] == [0, 2, 3, 3, 3, 3, 0]


def test_a_removed_file_is_found_by_another_spelling_of_its_path(log):
    log.create("t")
    log.commit("t", add("p=a%20b/f"), add("p=ä/g"), add("s3a://b/x y"))
    log.commit("t", remove("p=a b/f"), remove("p=%C3%A4/g"), remove("s3://b/x%20y"))
    assert log.paths("t") == []
    removed = [a.path for a in log.reader("t").actions(2)[1:]]
    assert removed == ["p=a%20b/f", "p=ä/g", "s3a://b/x y"]


def test_a_file_added_again_by_another_spelling_is_the_same_file(log):
    log.create("t")
    log.commit("t", add("p=a%20b/f", size=1))
    log.commit("t", add("p=a b/f", size=2, data_change=False))
    assert log.paths("t") == ["p=a b/f"]
    assert totals(log)[:2] == (1, 2)


def test_a_removed_file_is_removed_once(log):
    log.create("t")
    log.commit("t", add("f"))
    log.commit("t", remove("f"))
    with pytest.raises(ConcurrentDeleteDelete, match="not a live file"):
        log.commit("t", remove("f"))
    log.commit("t", add("f"))
    assert log.paths("t") == ["f"]


def test_a_thousand_files_come_and_go(log):
    log.create("t")
    names = [f"f{n:04}" for n in range(1_203)]
    log.commit("t", *(add(name, stats=stats(1, id=(n, n))) for n, name in enumerate(names)))
    log.commit("t", *map(remove, names[:1_101]))
    assert log.paths("t") == names[1_101:]
    assert totals(log) == (102, 1_020, 102)
    log.commit("t", *(add(name, data_change=False) for name in names[1_100:]))
    assert log.paths("t") == names[1_100:]
    assert totals(log) == (103, 1_030, None)


# --- winners --------------------------------------------------------------------------------------


def test_winners_as_the_conflict_rules_need_them(log):
    log.create("t")
    old = add("old", stats=stats(1))
    log.commit("t", old, add("kept"))
    txn, domain = Txn(app_id="x", version=1), DomainMetadata(domain="d", configuration="")
    newer = add("kept", data_change=False, stats=stats(2))
    log.commit("t", remove("old"), newer, txn, domain, operation="MERGE")
    changed = metadata(a="1")
    log.commit("t", changed, protocol("domainMetadata"))
    one, two, three = winners(log)
    assert [w.version for w in (one, two, three)] == [1, 2, 3]
    assert (one.is_blind_append, list(one.adds), list(one.removes)) == (
        True,
        [old, add("kept")],
        [],
    )
    assert (two.operation, two.is_blind_append) == ("MERGE", False)
    assert list(two.adds) == [newer]
    assert list(two.removes) == [old], "a file that is added again was not removed"
    assert (list(two.txns), list(two.domains)) == ([txn], [domain])
    assert (three.metadata, three.protocol) == (changed, protocol("domainMetadata"))
    assert winners(log, after=3) == []


def test_new_statistics_do_not_stand_in_the_way_of_a_removal(log):
    log.create("t")
    log.commit("t", add("f"))
    mine = log.part("t", remove("f"))
    log.commit("t", add("f", data_change=False, stats=stats(1)))
    log.submit(mine)
    assert log.paths("t") == []


def test_new_statistics_do_not_bring_a_removed_file_back(log):
    log.create("t")
    log.commit("t", add("f"))
    mine = log.part("t", add("f", data_change=False, stats=stats(1)))
    log.commit("t", remove("f"))
    with pytest.raises(ConcurrentDeleteRead):
        log.submit(mine)
    assert log.paths("t") == []


def test_a_stale_append_lands_behind_the_winners(log):
    log.create("t")
    stale = log.part("t", add("mine"))
    log.commit("t", add("a"))
    log.commit("t", remove("a"), add("b"))
    assert log.submit(stale).versions == {"t": 3}
    assert log.paths("t") == ["b", "mine"]
    with pytest.raises(ConcurrentDeleteDelete):
        log.submit(replace(stale, actions=(remove("a"),)))


def test_row_counts_that_cannot_be_are_not_believed(log):
    log.create("t")
    log.commit("t", add("f", stats='{"numRecords":-5}'))
    assert totals(log) == (1, 10, None)
    with pytest.raises(InvalidCommit):
        log.commit("t", protocol("domainMetadata", "rowTracking"), add("g", stats="{}"))
