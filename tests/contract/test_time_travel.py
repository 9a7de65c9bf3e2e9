"""Any version, any moment; and all tables of a catalog as of one."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pytest

import deltalakedb as dl
from deltalakedb.errors import InvalidArgument, TableNotFound, VersionNotFound
from support.catalogs import put, rows


def one(n):
    return pa.table({"n": [n]})


@pytest.fixture
def times(catalog, clock):
    """Versions 0 to 3 of table t, a minute apart; the time of each."""
    found = []
    for n in range(4):
        found.append(clock.advance(60_000))
        put(catalog, "t", one(n), mode="overwrite" if n == 2 else "append")
    return found


CONTENT = [[0], [0, 1], [2], [2, 3]]


def numbers(table):
    return sorted(table.to_arrow()["n"].to_pylist())


def test_every_version_can_be_opened(catalog, times):
    uri = catalog.uri.with_table("t").render()
    for version, expected in enumerate(CONTENT):
        for table in (
            catalog.table("t", version=version),
            dl.DeltaTable(uri, version=version),
            dl.DeltaTable.open(uri, version=version),
        ):
            assert table.version() == version
            assert numbers(table) == expected
            assert table.count() == len(expected)
            assert table.snapshot.timestamp == times[version]


def test_a_moment_opens_the_last_version_at_or_before_it(catalog, times):
    for version, ms in enumerate(times):
        for delta in (0, 1, 59_999):
            assert catalog.table("t", timestamp=ms + delta).version() == version
    moment = datetime.fromtimestamp(times[1] / 1000, UTC)
    for spelling in (
        moment,
        moment.replace(tzinfo=None),
        moment.isoformat(),
        moment.strftime("%Y-%m-%dT%H:%M:%SZ"),
        moment.strftime("%Y-%m-%d %H:%M:%S"),
    ):
        assert catalog.table("t", timestamp=spelling).version() == 1, spelling
    assert catalog.table("t", timestamp="2999-01-01").version() == 3


def test_a_table_can_move_through_time(catalog, times):
    table = catalog.table("t")
    table.load_as_version(1)
    assert numbers(table) == [0, 1]
    table.load_as_version(datetime.fromtimestamp(times[2] / 1000, UTC))
    assert numbers(table) == [2]
    table.update_incremental()
    assert table.version() == 3


def test_a_version_that_does_not_exist_names_those_that_do(catalog, times):
    for version in (4, -1, 10**12):
        with pytest.raises(VersionNotFound, match="versions 0 to 3") as caught:
            catalog.table("t", version=version)
        error = caught.value
        assert (error.table, error.version) == ("t", version)
        assert (error.earliest, error.latest) == (0, 3)
    with pytest.raises(VersionNotFound):
        catalog.table("t").load_as_version(9)


def test_a_moment_before_the_table_names_the_times_that_exist(catalog, times):
    with pytest.raises(VersionNotFound, match=r"2026-01-01T00:01:00\.000Z to") as caught:
        catalog.table("t", timestamp=times[0] - 1)
    assert caught.value.earliest_timestamp == times[0]
    assert caught.value.latest_timestamp == times[3]
    with pytest.raises(VersionNotFound):
        catalog.table("t", timestamp="1999-12-31")


def test_a_moment_must_be_one(catalog, times):
    with pytest.raises(InvalidArgument, match="yesterday"):
        catalog.table("t", timestamp="yesterday")
    with pytest.raises(InvalidArgument, match="not both"):
        catalog.table("t", version=1, timestamp=times[1])


def test_an_old_version_keeps_its_schema_properties_and_protocol(catalog):
    table = put(catalog, "t", one(1))
    table.alter.add_columns([("extra", pa.string())])
    table.alter.set_table_properties({"delta.enableChangeDataFeed": "true"})
    old = catalog.table("t", version=0)
    assert old.schema().names == ["n"]
    assert old.metadata().configuration == {}
    assert old.protocol().min_writer_version == 2
    assert old.to_arrow().column_names == ["n"]
    assert catalog.table("t", version=1).schema().names == ["n", "extra"]
    assert catalog.table("t").protocol().min_writer_version == 4


def test_history_is_newest_first_and_can_be_limited(catalog, times):
    history = catalog.table("t").history()
    assert [r.version for r in history] == [3, 2, 1, 0]
    assert [r.timestamp for r in history] == times[::-1]
    assert [r.parameters.get("mode") for r in history[:3]] == ["Append", "Overwrite", "Append"]
    assert [r.version for r in catalog.table("t").history(2)] == [3, 2]
    assert catalog.table("t").history(0) == []


def test_commits_never_go_back_in_time(catalog, clock):
    put(catalog, "t", one(1))
    clock.advance(-3_600_000)
    put(catalog, "t", one(2))
    put(catalog, "t", one(3))
    newest, middle, oldest = (r.timestamp for r in catalog.table("t").history())
    assert newest == middle + 1 == oldest + 2


@pytest.fixture
def story(catalog, clock):
    """Transactions over several tables, in order."""
    found = []

    def commit(**writes):
        clock.advance(1_000)
        with catalog.begin() as tx:
            for table, n in writes.items():
                tx.write(table, one(n))
        found.append(tx.result)

    commit(a=1)
    commit(b=2)
    commit(a=3, b=4)
    commit(b=5, c=6)
    commit(a=7)
    return found


def state(snapshot):
    return {name: numbers(snapshot.table(name)) for name in snapshot.list_tables()}


STORY = [
    {"a": [1]},
    {"a": [1], "b": [2]},
    {"a": [1, 3], "b": [2, 4]},
    {"a": [1, 3], "b": [2, 4, 5], "c": [6]},
    {"a": [1, 3, 7], "b": [2, 4, 5], "c": [6]},
]


def test_all_tables_as_of_a_transaction(catalog, story):
    for result, expected in zip(story, STORY, strict=True):
        assert state(catalog.at(transaction_id=result.transaction_id)) == expected


def test_all_tables_as_of_a_moment(catalog, story):
    for result, expected in zip(story, STORY, strict=True):
        for delta in (0, 999):
            assert state(catalog.at(timestamp=result.timestamp + delta)) == expected
    assert state(catalog.at(timestamp=story[0].timestamp - 1)) == {}


def test_versions_of_all_tables_as_of_a_transaction(catalog, story):
    assert catalog.at(transaction_id=story[2].transaction_id).versions() == {"a": 1, "b": 1}


def test_a_table_that_did_not_exist_then_is_not_found(catalog, story):
    then = catalog.at(transaction_id=story[1].transaction_id)
    with pytest.raises(VersionNotFound, match="c"):
        then.table("c")
    with pytest.raises(TableNotFound, match="'never'"):
        then.table("never")


def test_a_past_state_can_only_be_read(catalog, story, unchanged):
    table = catalog.at(transaction_id=story[0].transaction_id).table("a")
    with unchanged(), pytest.raises(dl.errors.UnsupportedByBackend):
        table.delete()


def test_an_unknown_transaction_is_named(catalog, story):
    with pytest.raises(VersionNotFound, match="'no-such-id'"):
        catalog.at(transaction_id="no-such-id")
    with pytest.raises(InvalidArgument):
        catalog.at()
    with pytest.raises(InvalidArgument):
        catalog.at(transaction_id="x", timestamp=0)


def test_transactions_list_every_commit_of_every_table_newest_first(catalog, story):
    found = [(r.table, r.version, r.transaction_id) for r in catalog.transactions()]
    ids = [result.transaction_id for result in story]
    assert found == [
        ("a", 2, ids[4]),
        ("b", 2, ids[3]),
        ("c", 0, ids[3]),
        ("a", 1, ids[2]),
        ("b", 1, ids[2]),
        ("b", 0, ids[1]),
        ("a", 0, ids[0]),
    ]
    assert [r.transaction_id for r in catalog.transactions(limit=2)] == [ids[4], ids[3]]


def test_the_past_survives_rename_and_compaction_of_names(catalog, story):
    catalog.rename_table("a", "z")
    assert state(catalog.at(transaction_id=story[0].transaction_id)) == {"z": [1]}
    assert rows(catalog.table("z", version=1)) == [{"n": 1}, {"n": 3}]
