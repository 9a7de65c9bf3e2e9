from __future__ import annotations

import msgspec
import pytest

from deltalakedb.errors import CorruptLog, InvalidCommit, InvalidSchema, ProtocolError
from deltalakedb.log.base import NewTable
from deltalakedb.model.actions import Cdc, CommitInfo, Protocol, Txn
from deltalakedb.txn.staged import Change, Stage
from deltalakedb.txn.validate import validate
from support.actions import PROTOCOL, add, metadata, protocol, remove, schema, snapshot, vector


def check(*actions, base=snapshot(), **more):
    validate(Stage("t", base, **more).plus(Change("WRITE", "append", actions)))


@pytest.mark.parametrize(
    "actions",
    [
        [add("f"), remove("g"), Cdc(path="c", partition_values={"p": "a"}, size=1)],
        [add("f"), remove("f", deletion_vector=vector("v"))],
        [add("p=a%20b/f"), Txn(app_id="a", version=1), Txn(app_id="b", version=1)],
        [add("s3://elsewhere/f")],
        [metadata(delta__appendOnly="true")],
        [remove("g", partition_values=None)],
    ],
)
def test_what_the_rules_allow(actions):
    check(*actions)


@pytest.mark.parametrize(
    ("actions", "rule"),
    [
        ([add("f"), add("./f")], "at most one add per path in a commit"),
        ([remove("f"), remove("f")], "at most one remove per path in a commit"),
        ([add("f"), remove("f")], "a commit cannot add and remove the same file"),
        ([Txn(app_id="a", version=1)] * 2, "at most one txn per application in a commit"),
        ([CommitInfo("{}")] * 2, "at most one commitInfo in a commit"),
        ([add("../f")], "it climbs out of its folder"),
        ([add("a/%2e%2e/%2E%2E/f")], "it climbs out of its folder"),
        ([add("_delta_log/0.json")], "it lies in the log"),
        ([add("f", size=-1)], "sizes are not negative"),
        ([add("f", partition_values={})], "a file has a value for every partition column"),
        ([add("f", partition_values={"p": "a", "q": "b"})], "a file has a value for every"),
        ([add("f", deletion_vector=vector("v", offset=-1))], "sizes are not negative"),
    ],
)
def test_what_they_forbid(actions, rule):
    with pytest.raises(InvalidCommit, match=r"^t: ") as raised:
        check(*actions)
    assert raised.value.rule.startswith(rule)
    assert raised.value.table == "t"


def test_the_rules_hold_for_all_changes_together():
    stage = Stage("t", snapshot()).plus(Change("WRITE", "append", (add("f"),)))
    validate(stage)
    with pytest.raises(InvalidCommit, match="one add per path"):
        validate(stage.plus(Change("WRITE", "append", (add("f"),))))


def test_append_only_keeps_rows_and_lets_files_go():
    base = snapshot(metadata=metadata(delta__appendOnly="TRUE"))
    check(add("f"), base=base)
    check(remove("g", data_change=False), add("f", data_change=False), base=base)
    with pytest.raises(InvalidCommit) as raised:
        check(remove("g"), base=base)
    assert raised.value.rule == "delta.appendOnly"


def test_a_new_table_needs_metadata_and_protocol():
    new = NewTable("t", "file:///t")
    check(PROTOCOL, metadata(), add("f"), base=None, create=new)
    for actions in ([PROTOCOL], [metadata()], [add("f")]):
        with pytest.raises(InvalidCommit) as raised:
            check(*actions, base=None, create=new)
        assert raised.value.rule == "version 0 has metaData and protocol"


@pytest.mark.parametrize(
    ("given", "missing"),
    [
        (metadata(schema(p="string", t="timestamp_ntz")), ("timestampNtz",)),
        (metadata(delta__constraints__c="id > 0"), ("checkConstraints",)),
        (metadata(delta__enableRowTracking="true"), ("domainMetadata", "rowTracking")),
    ],
)
def test_the_protocol_lists_what_is_used(given, missing):
    with pytest.raises(InvalidCommit) as raised:
        check(given)
    assert raised.value.missing == missing
    writer = Protocol(
        min_reader_version=3,
        min_writer_version=7,
        reader_features=tuple(f for f in missing if f == "timestampNtz"),
        writer_features=missing,
    )
    check(given, writer)


def test_the_protocol_does_not_lose_what_is_used():
    used = metadata(delta__constraints__c="id > 0")
    base = snapshot(metadata=used, protocol=protocol("checkConstraints"))
    check(protocol("checkConstraints", "domainMetadata"), base=base)
    with pytest.raises(InvalidCommit) as raised:
        check(protocol("domainMetadata"), base=base)
    assert raised.value.missing == ("checkConstraints",)


def test_what_had_no_effect_before_is_nobody_s_fault_now():
    base = snapshot(metadata=metadata(delta__enableRowTracking="true"))
    check(add("f"), base=base)
    check(msgspec.structs.replace(base.metadata, name="n"), base=base)


def test_bad_schemas_and_protocols():
    with pytest.raises(InvalidSchema, match="nosuch"):
        check(metadata(partition_by=("nosuch",)))
    with pytest.raises(InvalidSchema, match="case"):
        check(metadata(schema(p="string", a="long", A="long")))
    with pytest.raises(CorruptLog, match="contradicts"):
        check(Protocol(min_reader_version=1, min_writer_version=7))
    with pytest.raises(ProtocolError, match="catalogManaged"):
        check(
            Protocol(
                min_reader_version=3,
                min_writer_version=7,
                reader_features=("catalogManaged",),
                writer_features=("catalogManaged", "inCommitTimestamp"),
            )
        )


def test_files_may_go_when_the_partitioning_changes():
    old = remove("f", partition_values={"p": "a"})
    check(metadata(partition_by=("s",)), old, add("g", partition_values={"s": "x"}))
    with pytest.raises(InvalidCommit, match="value for every partition column"):
        check(metadata(partition_by=("s",)), old, add("g"))
