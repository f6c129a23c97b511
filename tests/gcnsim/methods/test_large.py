"""Schedules of very many ops are kept in 32 bits: the same bounds, estimates and instants."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from gcnsim.engine import simulate
from gcnsim.schedule import bounds, estimate
from tests.cases import Case, method

MakeFacts = Callable[..., Case]


@pytest.mark.parametrize("name", ["full-graph", "pipegcn", "psc-gcn", "cagnet-1d"])
def test_large_schedules_say_the_same(facts: MakeFacts, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    given = facts(workers=6, per_server=2)
    whole = method(name)(given)
    assert whole.columns.worker.dtype == np.int64
    schedule_bounds, guess, run = bounds(whole), estimate(whole), simulate(whole, 5)
    for module in ("columns", "assembly"):
        monkeypatch.setattr(f"gcnsim.schedule.{module}.LARGE", 1)
    monkeypatch.setattr("gcnsim.schedule.assembly._KEPT", {})
    monkeypatch.setattr("gcnsim.schedule.assembly.MOST_KEPT", 0)
    narrow = method(name)(given)
    for column in ("kind", "worker", "stream", "peer", "way", "wait_at", "wait", "lag"):
        assert getattr(narrow.columns, column).dtype == np.int32
        assert np.array_equal(getattr(narrow.columns, column), getattr(whole.columns, column))
    assert (bounds(narrow), estimate(narrow)) == (schedule_bounds, guess)
    again = simulate(narrow, 5)
    assert np.array_equal(again.starts, run.starts)
    assert np.array_equal(again.ends, run.ends)
