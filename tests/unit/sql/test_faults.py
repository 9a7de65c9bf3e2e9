"""Faults strike where and when they are told to."""

from __future__ import annotations

import pytest

from deltalakedb.errors import CatalogError, ConfigError
from deltalakedb.sql import faults


def test_nothing_is_armed_by_default() -> None:
    faults.point("before_commit")
    faults.point("anything")


def test_a_fault_strikes_once_at_its_point() -> None:
    with faults.armed("here:raise"):
        faults.point("there")
        with pytest.raises(CatalogError, match="here") as caught:
            faults.point("here")
        assert caught.value.point == "here"
        faults.point("here")
    faults.point("here")


def test_a_fault_may_wait_for_its_turn() -> None:
    with faults.armed("here:raise@3"):
        faults.point("here")
        faults.point("here")
        with pytest.raises(CatalogError):
            faults.point("here")


def test_losing_a_connection_is_left_to_its_owner() -> None:
    lost = []
    with faults.armed("here:lose_connection"):
        faults.point("here", lambda: lost.append(1))
    assert lost == [1]


@pytest.mark.parametrize("text", ["here", "here:", "here:explode", ":kill", "here:kill@x", ""])
def test_a_fault_that_makes_no_sense_is_an_error(text: str) -> None:
    with pytest.raises(ConfigError, match="POINT:ACTION"), faults.armed(text):
        pass
