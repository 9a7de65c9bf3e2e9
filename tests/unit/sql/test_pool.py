"""Connections are reused, limited, and dropped when they break."""

from __future__ import annotations

import itertools
import threading

import pytest

from deltalakedb.errors import CatalogError, CatalogUnavailable
from deltalakedb.sql.pool import Pool


class Maker:
    def __init__(self) -> None:
        self.numbers = itertools.count()
        self.closed: list[int] = []

    def pool(self, **options: object) -> Pool[int]:
        return Pool("catalog", lambda: next(self.numbers), self.closed.append, **options)


def test_the_connection_used_last_is_used_next() -> None:
    pool = Maker().pool()
    one, two = pool.take(), pool.take()
    pool.give(one)
    pool.give(two)
    assert pool.take() == two


def test_a_broken_connection_takes_the_idle_ones_with_it() -> None:
    maker = Maker()
    pool = maker.pool()
    taken = [pool.take() for _ in range(3)]
    pool.give(taken[0])
    pool.give(taken[1], broken=True)
    assert sorted(maker.closed) == [0, 1]
    pool.give(taken[2])
    assert pool.take() == 2


def test_a_connection_that_went_stale_is_replaced() -> None:
    maker = Maker()
    pool = maker.pool(usable=lambda n: n > 1)
    for n in [pool.take(), pool.take()]:
        pool.give(n)
    assert pool.take() == 2
    assert sorted(maker.closed) == [0, 1]


def test_a_full_pool_makes_wait_and_then_gives_up() -> None:
    pool = Maker().pool(size=1, timeout_secs=0.05)
    taken = pool.take()
    with pytest.raises(CatalogUnavailable, match="all 1 connections are in use"):
        pool.take()
    timer = threading.Timer(0.01, pool.give, [taken])
    pool.timeout_secs = 10
    timer.start()
    assert pool.take() == taken


def test_a_connection_that_cannot_be_made_keeps_no_place() -> None:
    def fail() -> int:
        raise ZeroDivisionError

    pool: Pool[int] = Pool("catalog", fail, lambda _: None, size=1, timeout_secs=0.05)
    for _ in range(3):
        with pytest.raises(ZeroDivisionError):
            pool.take()


def test_a_closed_pool_closes_what_comes_back() -> None:
    maker = Maker()
    pool = maker.pool()
    idle, used = pool.take(), pool.take()
    pool.give(idle)
    pool.close()
    assert maker.closed == [idle]
    pool.give(used)
    assert maker.closed == [idle, used]
    with pytest.raises(CatalogError, match="closed"):
        pool.take()
