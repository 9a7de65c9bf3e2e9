"""One history, many witnesses: three databases, pure replay, and delta-rs over the same log.

At every version all of them must agree on everything there is to know of a table.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from tempfile import TemporaryDirectory

import deltalake
import msgspec
import pyarrow as pa
from hypothesis import event, given, settings

from deltalakedb.errors import ConcurrentModification
from deltalakedb.log.base import NewTable, TableCommit
from deltalakedb.log.files import FileTxnLogReader
from deltalakedb.log.matching import file_matcher, num_records
from deltalakedb.model.actions import CommitInfo
from deltalakedb.model.codec import encode, encode_commit
from deltalakedb.model.expr import parse
from deltalakedb.model.replay import replay
from support.histories import APPS, histories

numbers = itertools.count()


def play(log, history, prefix):
    """Commit the history; ids of transactions and names of tables are the same on every engine.

    Every commit is tried as one that has not seen the last two versions, then as one that has.
    """
    for number, transaction in enumerate(history):
        named = {f"{prefix}_{name}": actions for name, actions in transaction.items()}
        log.clock.advance(7 if number % 2 else -50)
        try:
            log.submit(*parts(log, named, behind=2), transaction_id=f"{prefix}-{number}")
            event("rebased or new")
        except ConcurrentModification as conflict:
            event(type(conflict).__name__)
            log.submit(*parts(log, named, behind=0), transaction_id=f"{prefix}-{number}")


def parts(log, transaction, behind):
    heads = log.registry.heads()
    for table, actions in transaction.items():
        if table not in heads:
            new = NewTable(table, f"file:///{table}")
            yield TableCommit(tuple(actions), "MANY", create=new)
        else:
            base = log.snapshot(table, max(0, heads[table] - behind))
            yield log.part(table, *actions, base=base, operation="MANY")


def states(history, name):
    """The states after each of the table's versions, by pure replay."""
    state, made = None, []
    for actions in (t[name] for t in history if name in t):
        state = replay([(len(made), actions)], state)
        made.append((actions, state))
    return made


def known(add):
    """Without what listings leave out: fields that this build does not know."""
    return msgspec.structs.replace(add, extra={})


def check_against_replay(log, table, version, actions, state):
    reader = log.reader(table)
    snapshot = reader.snapshot(version)
    live = list(state.files.values())
    files = log.files(table, version)
    assert {(f.path, f.dv_id): f for f in files} == {(f.path, f.dv_id): known(f) for f in live}
    assert len(files) == len(live)
    assert (snapshot.metadata, snapshot.protocol) == (state.metadata, state.protocol)
    assert snapshot.num_files == len(live)
    assert snapshot.size_bytes == sum(f.size for f in live)
    counts = [None if (n := num_records(f.stats)) is None else n - _deleted(f) for f in live]
    assert snapshot.num_records == (None if None in counts else sum(counts))
    where = parse("id >= 3 OR p = 'x y'", snapshot.schema)
    keeps = file_matcher(where, snapshot)
    assert log.paths(table, version, where) == sorted(f.path for f in live if keeps(f))
    for app in APPS:
        found = state.txns.get(app)
        assert reader.txn_version(app, snapshot) == (found.version if found else None)
    assert reader.domains(snapshot) == state.domains
    info, *back = reader.actions(version)
    assert isinstance(info, CommitInfo)
    assert sorted(map(encode, back)) == sorted(map(encode, actions))
    assert sorted(map(repr, back)) == sorted(map(repr, actions))


def _deleted(file):
    return file.deletion_vector.cardinality if file.deletion_vector else 0


def check_against_delta_rs(peer, log, table, version):
    snapshot = log.snapshot(table, version)
    theirs = pa.table(peer.get_add_actions()).to_pylist()
    ours = log.files(table, version)
    assert sorted((f["path"], f["size_bytes"], f["modification_time"]) for f in theirs) == sorted(
        (f.path, f.size, f.modification_time) for f in ours
    )
    counts = {f.path: num_records(f.stats) for f in ours}
    partitions = {f.path: f.partition_values["p"] for f in ours}
    for file in theirs:
        assert file["num_records"] in (None, counts[file["path"]])
        assert file["partition"] == {"p": partitions[file["path"]]}
    assert msgspec.json.decode(peer.schema().to_json()) == msgspec.json.decode(
        snapshot.metadata.schema_string
    )
    protocol, metadata = peer.protocol(), peer.metadata()
    assert set(protocol.reader_features) == set(snapshot.protocol.reader_features)
    assert set(protocol.writer_features) == set(snapshot.protocol.writer_features)
    assert metadata.configuration == dict(snapshot.metadata.configuration)
    assert (metadata.name, metadata.description) == (
        snapshot.metadata.name,
        snapshot.metadata.description,
    )
    for app in APPS:
        assert peer.transaction_version(app) == log.reader(table).txn_version(app, snapshot)


def check_against_files(reader, log, table, version):
    snapshot, ours = reader.snapshot(version), log.snapshot(table, version)
    columns = ("path", "size", "stats", "dv_path", "dv_cardinality", "num_records")
    assert sorted(
        map(repr, reader.files(snapshot, columns=columns).read_all().to_pylist())
    ) == sorted(map(repr, log.reader(table).files(ours, columns=columns).read_all().to_pylist()))
    assert (snapshot.metadata, snapshot.protocol) == (ours.metadata, ours.protocol)
    assert reader.domains(snapshot) == log.reader(table).domains(ours)


@settings(max_examples=20)
@given(histories())
def test_all_witnesses_agree(logs, history):
    prefix = f"h{next(numbers)}"
    start = logs["sqlite"].clock.ms
    for log in logs.values():
        log.clock.ms = start
        play(log, history, prefix)
    event(f"{len(history)} transactions")
    sqlite = logs["sqlite"]
    for name in {name for transaction in history for name in transaction}:
        table = f"{prefix}_{name}"
        made = states(history, name)
        for log in logs.values():
            assert log.registry.heads()[table] == len(made) - 1
            for version, (actions, state) in enumerate(made):
                check_against_replay(log, table, version, actions, state)
        texts = [
            [encode_commit(log.reader(table).actions(v)) for v in range(len(made))]
            for log in logs.values()
        ]
        assert texts[0] == texts[1] == texts[2], "the mirror would not be the same"
        times = [
            [log.snapshot(table, v).timestamp for v in range(len(made))] for log in logs.values()
        ]
        assert times[0] == times[1] == times[2]
        assert times[0] == sorted(set(times[0])), "time does not move on"
        check_as_log(sqlite, table, texts[0])


def check_as_log(log, table, texts):
    """Written as a plain table, other readers see the same."""
    with TemporaryDirectory() as folder:
        place = Path(folder) / "_delta_log"
        place.mkdir()
        for version, text in enumerate(texts):
            (place / f"{version:020}.json").write_bytes(text)
        peer, reader = deltalake.DeltaTable(folder), FileTxnLogReader(folder)
        assert peer.version() == reader.version_range()[1] == len(texts) - 1
        for version in range(len(texts)):
            peer.load_as_version(version)
            check_against_delta_rs(peer, log, table, version)
            check_against_files(reader, log, table, version)
