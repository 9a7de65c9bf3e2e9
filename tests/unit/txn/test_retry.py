from __future__ import annotations

import pytest

from deltalakedb.errors import CatalogLocked, ConcurrentAppend
from deltalakedb.txn.retry import Backoff, retrying

BACKOFF = Backoff(attempts=6, first_secs=1.0, cap_secs=5.0)


class Busy:
    """Fails a number of times before it answers."""

    def __init__(self, failures, error=CatalogLocked):
        self.failures, self.error, self.calls = failures, error, 0

    def __call__(self):
        self.calls += 1
        if self.calls <= self.failures:
            raise self.error("busy")
        return "done"


def run(act, *draws, backoff=BACKOFF):
    waits, source = [], iter(draws)
    answer = retrying(act, backoff, sleep=waits.append, draw=lambda: next(source))
    return answer, waits


def test_what_works_is_not_repeated():
    assert run(Busy(0)) == ("done", [])


def test_waits_double_up_to_a_cap():
    assert run(Busy(5), 1, 1, 1, 1, 1) == ("done", [1, 2, 4, 5, 5])


def test_every_wait_is_drawn_between_nothing_and_its_cap():
    assert run(Busy(4), 0, 0.25, 0.5, 0.5) == ("done", [0, 0.5, 2, 2.5])


def test_the_last_attempt_decides():
    act = Busy(6)
    with pytest.raises(CatalogLocked):
        run(act, 0, 0, 0, 0, 0)
    assert act.calls == 6


def test_one_attempt_is_one_attempt():
    act = Busy(1)
    with pytest.raises(CatalogLocked):
        run(act, backoff=Backoff(1, 1.0, 1.0))
    assert act.calls == 1


def test_a_conflict_does_not_pass_by_itself():
    act = Busy(1, ConcurrentAppend)
    with pytest.raises(ConcurrentAppend):
        run(act)
    assert act.calls == 1
