"""Time travel and history over the tables."""

from __future__ import annotations

import pytest

from conformance.tables import OPENED, TABLES
from deltalakedb.errors import VersionNotFound
from deltalakedb.log.files import FileTxnLogReader

pytestmark = pytest.mark.conformance


@pytest.mark.parametrize("name", OPENED)
def test_each_version_is_found_by_its_time(name):
    reader = FileTxnLogReader(str(TABLES[name]))
    first, last = reader.version_range()
    times = [reader.snapshot(version).timestamp for version in range(first, last + 1)]
    assert times == sorted(set(times))
    for version, moment in enumerate(times, start=first):
        assert reader.snapshot(timestamp=moment).version == version
    assert reader.snapshot(timestamp=times[-1] + 10**9).version == last
    with pytest.raises(VersionNotFound) as caught:
        reader.snapshot(timestamp=times[0] - 1)
    assert (caught.value.earliest, caught.value.latest) == (first, last)


@pytest.mark.parametrize("name", OPENED)
def test_versions_outside_the_range_are_not_found(name):
    reader = FileTxnLogReader(str(TABLES[name]))
    first, last = reader.version_range()
    for version in (first - 1, last + 1):
        with pytest.raises(VersionNotFound) as caught:
            reader.snapshot(version)
        assert (caught.value.earliest, caught.value.latest) == (first, last)


@pytest.mark.parametrize("name", OPENED)
def test_history_goes_back_commit_by_commit(name):
    reader = FileTxnLogReader(str(TABLES[name]))
    first, last = reader.version_range()
    history = reader.history()
    versions = [record.version for record in history]
    assert versions == list(range(last, last - len(versions), -1))
    assert not versions or versions[-1] <= first + 1  # the first may be a checkpoint only
    assert reader.history(limit=2) == history[:2]
    for record in history:
        if record.version >= first:
            assert record.timestamp == reader.snapshot(record.version).timestamp
        assert record.operation == record.commit_info.get("operation")
        assert isinstance(reader.actions(record.version), list)
