"""Time moves on for every table, whatever the clock does, and travel in time agrees with it."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltalakedb.errors import VersionNotFound
from support.actions import add

numbers = itertools.count()
TABLES = ("a", "b", "c")

clocks = st.lists(
    st.tuples(
        st.sampled_from([0, 1, 2, 1_000, -1, -3, -5_000]),
        st.sets(st.sampled_from(TABLES), min_size=1),
    ),
    min_size=1,
    max_size=8,
)


@settings(max_examples=12)
@given(clocks)
def test_travel(logs, steps):
    prefix = f"t{next(numbers)}"
    start = next(iter(logs.values())).clock.ms
    for log in logs.values():
        log.clock.ms = start
        check(log, prefix, steps)


def check(log, prefix, steps):
    names = [f"{prefix}{name}" for name in TABLES]
    log.create(*names)
    created = log.registry.transactions(1)[0].timestamp
    times = {name: [created] for name in names}
    results = []
    for jump, changed in steps:
        log.clock.advance(jump)
        now = log.clock()
        parts = [log.part(f"{prefix}{name}", add("f")) for name in sorted(changed)]
        result = log.submit(*parts)
        before = max(times[part.table][-1] for part in parts)
        assert result.timestamp == max(now, before + 1)
        for table, version in result.versions.items():
            times[table].append(result.timestamp)
            assert version == len(times[table]) - 1
        results.append(result)

    for name in names:
        reader = log.reader(name)
        assert times[name] == [reader.snapshot(v).timestamp for v in range(len(times[name]))]
        for version, moment in enumerate(times[name]):
            assert reader.snapshot(timestamp=moment).version == version
            following = times[name][version + 1 :]
            until = following[0] - 1 if following else moment + 10**9
            assert reader.snapshot(timestamp=until).version == version
        with pytest.raises(VersionNotFound) as raised:
            reader.snapshot(timestamp=times[name][0] - 1)
        assert raised.value.earliest_timestamp == times[name][0]
        assert raised.value.latest_timestamp == times[name][-1]

    check_catalog(log, names, times, results)


def check_catalog(log, names, times, results):
    """All tables as of a moment and as of a transaction: whole transactions, in their order."""
    for moment in {time + shift for known in times.values() for time in known for shift in (-1, 0)}:
        found = log.registry.versions_at(seq=None, timestamp=moment)
        expected = {n: sum(t <= moment for t in times[n]) - 1 for n in names}
        assert {n: found[n] for n in names if n in found} == {
            n: v for n, v in expected.items() if v >= 0
        }
    heads = dict.fromkeys(names, 0)
    for result in results:
        heads |= result.versions
        seq = log.registry.seq_of(result.transaction_id)
        found = log.registry.versions_at(seq=seq, timestamp=None)
        assert {n: found[n] for n in names} == heads
