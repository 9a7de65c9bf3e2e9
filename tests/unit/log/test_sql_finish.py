"""What the moment of the commit fills in: provenance, time, row ids."""

from __future__ import annotations

import msgspec
import pytest

from deltalakedb.errors import InvalidCommit
from deltalakedb.model.actions import Add, CommitInfo, DomainMetadata, Metadata, Txn
from deltalakedb.version import ENGINE_INFO
from support.actions import PROTOCOL, add, metadata, protocol, remove, stats
from support.logs import Log

ICT = {"delta__enableInCommitTimestamps": "true"}
WITH_ICT = protocol("inCommitTimestamp")
WITH_ROW_IDS = protocol("domainMetadata", "rowTracking")


@pytest.fixture
def log(new_catalog_uri):
    with Log(new_catalog_uri("sqlite")) as log:
        yield log


def info(log, version=None, table="t"):
    reader = log.reader(table)
    first = reader.actions(reader.snapshot(version).version)[0]
    assert isinstance(first, CommitInfo)
    return first.as_dict()


# --- commitInfo -----------------------------------------------------------------------------------


def test_provenance_of_a_commit(log):
    log.create("t")
    log.clock.advance(7)
    part = log.part(
        "t",
        add("f"),
        parameters={"mode": "Append", "partitionBy": ["p"], "n": 1},
        metrics={"numFiles": 1},
    )
    result = log.submit(part, transaction_id="tx", message="why")
    assert list(info(log).items()) == [
        ("timestamp", log.clock.ms),
        ("operation", "WRITE"),
        ("operationParameters", {"mode": "Append", "partitionBy": '["p"]', "n": "1"}),
        ("readVersion", 0),
        ("isolationLevel", "WriteSerializable"),
        ("isBlindAppend", True),
        ("operationMetrics", {"numFiles": "1"}),
        ("userMetadata", "why"),
        ("engineInfo", ENGINE_INFO),
        ("txnId", "tx"),
    ]
    assert result.timestamp == log.clock.ms
    created = info(log, 0)
    assert "readVersion" not in created
    assert "operationMetrics" not in created


def test_the_version_read_stays_the_one_that_was_read(log):
    log.create("t")
    stale = log.part("t", add("f"))
    log.commit("t", add("g"))
    log.submit(stale)
    assert info(log)["readVersion"] == 0
    assert log.reader("t").history(1)[0].read_version == 0


def test_provenance_that_came_ready_made_stays_as_it_is(log):
    log.create("t")
    text = '{"operation": "MERGE",  "clusterId": 1.0}'
    log.commit("t", add("f"), CommitInfo(text), operation="IMPORT")
    assert log.reader("t").actions(1)[0] == CommitInfo(text)
    assert log.reader("t").history(1)[0].operation == "IMPORT"


# --- time -----------------------------------------------------------------------------------------


def test_in_commit_timestamps_come_first(log):
    log.create("t", actions=[WITH_ICT, metadata(**ICT)])
    log.commit("t", add("f"), CommitInfo('{"operation":"X","inCommitTimestamp":5}'))
    times = [log.snapshot("t", v).timestamp for v in (0, 1)]
    assert times == [log.clock.ms, log.clock.ms + 1]
    for version, time in enumerate(times):
        assert next(iter(info(log, version).items())) == ("inCommitTimestamp", time)
    assert info(log, 1) == {"inCommitTimestamp": times[1], "operation": "X"}
    assert log.snapshot("t").metadata == metadata(**ICT)


def test_switching_them_on_later_is_recorded(log):
    log.create("t")
    log.commit("t", add("f"))
    log.clock.advance(100)
    log.commit("t", WITH_ICT, metadata(**ICT))
    log.commit("t", add("g"))
    switched = log.snapshot("t", 2)
    assert "inCommitTimestamp" not in info(log, 1)
    assert info(log, 2)["inCommitTimestamp"] == switched.timestamp
    assert switched.metadata.configuration == {
        "delta.enableInCommitTimestamps": "true",
        "delta.inCommitTimestampEnablementVersion": "2",
        "delta.inCommitTimestampEnablementTimestamp": str(switched.timestamp),
    }
    assert info(log, 3)["inCommitTimestamp"] == log.snapshot("t").timestamp


# --- row ids --------------------------------------------------------------------------------------


def ids(log, version=None):
    return {f.path: (f.base_row_id, f.default_row_commit_version) for f in log.files("t", version)}


def mark(log, version=None):
    reader = log.reader("t")
    domain = reader.domains(reader.snapshot(version)).get("delta.rowTracking")
    return msgspec.json.decode(domain.configuration)["rowIdHighWaterMark"] if domain else None


def high_water(value):
    return DomainMetadata(
        domain="delta.rowTracking", configuration=f'{{"rowIdHighWaterMark":{value}}}'
    )


def test_new_files_get_the_next_row_ids(log):
    log.create("t", actions=[WITH_ROW_IDS, metadata(), add("a", stats=stats(3))])
    log.commit("t", add("b", stats=stats(2)), add("c", stats=stats(0)), add("d", stats=stats(5)))
    assert ids(log) == {"a": (0, 0), "b": (3, 1), "c": (5, 1), "d": (5, 1)}
    assert (mark(log, 0), mark(log, 1)) == (2, 9)


def test_a_commit_that_follows_another_gets_the_ids_after_it(log):
    log.create("t", actions=[WITH_ROW_IDS, metadata()])
    stale = log.part("t", add("b", stats=stats(4)))
    log.commit("t", add("a", stats=stats(10)))
    log.submit(stale)
    assert ids(log) == {"a": (0, 1), "b": (10, 2)}
    assert mark(log) == 13


def test_a_table_that_began_to_track_rows_meanwhile(log):
    log.create("t", actions=[protocol("domainMetadata"), metadata()])
    stale = log.part("t", add("b", stats=stats(4)))
    log.commit("t", WITH_ROW_IDS)
    log.submit(stale)
    assert ids(log) == {"b": (0, 2)}


def test_files_that_move_keep_their_ids(log):
    log.create("t", actions=[WITH_ROW_IDS, metadata(), add("a", stats=stats(3))])
    moved = add("a", stats=stats(3), data_change=False, base_row_id=0, default_row_commit_version=0)
    log.commit("t", moved)
    assert ids(log) == {"a": (0, 0)}
    assert [a for a in log.reader("t").actions(1) if isinstance(a, DomainMetadata)] == []
    assert mark(log) == 2


def test_the_mark_never_falls_behind_ids_that_came_ready_made(log):
    log.create("t", actions=[WITH_ROW_IDS, metadata()])
    given = add("a", stats=stats(10), base_row_id=100, default_row_commit_version=0)
    log.commit("t", given, add("b", stats=stats(1)), high_water(50))
    assert ids(log) == {"a": (100, 0), "b": (110, 1)}
    assert mark(log) == 110
    log.commit("t", Txn(app_id="x", version=1), high_water(5))
    assert mark(log) == 110


def test_rows_must_be_counted_to_be_numbered(log):
    log.create("t", actions=[WITH_ROW_IDS, metadata()])
    with pytest.raises(InvalidCommit, match="numRecords") as raised:
        log.commit("t", add("a"))
    assert raised.value.table == "t"
    assert log.snapshot("t").version == 0


def test_nothing_is_numbered_without_the_feature(log):
    log.create("t")
    log.commit("t", add("a", stats=stats(1)))
    assert ids(log) == {"a": (None, None)}
    assert mark(log) is None


def test_the_order_of_actions_in_the_log(log):
    log.create("t")
    log.commit("t", add("old"))
    log.commit("t", add("f"), remove("old"), Txn(app_id="x", version=1), metadata(a="1"), PROTOCOL)
    kinds = [type(a) for a in log.reader("t").actions(2)]
    assert kinds[0] is CommitInfo
    assert kinds.index(Metadata) < kinds.index(Txn) < kinds.index(Add)
