"""What all workers do in one pass is what each is told of alone."""

from __future__ import annotations

from typing import Any

import pytest

from gcnsim.simulation import metrics
from gcnsim.simulation.metrics import computing_and_exposed, slowest_of
from gcnsim.simulation.steady import MeasurementWindow
from tests.gcnsim.simulation.faulted import REDDIT, studied

SHORT: dict[str, Any] = REDDIT | {"run": {"iterations": 6}, "cluster": {"gpus": 4, "gpus_per_server": 4}}


def check(window: MeasurementWindow) -> None:
    splits = [window.split(rank) for rank in range(window.schedule.workers)]
    computing, exposed = computing_and_exposed(window)
    assert computing == [window.computing(rank).length for rank in range(window.schedule.workers)]
    assert exposed == [split.exposed.length for split in splits]
    own = [split.compute + split.other for split in splits]
    assert slowest_of(window, exposed) == own.index(max(own))


@pytest.mark.parametrize("name", ["full-graph", "psc-gcn", "cagnet-1.5d", "dgl"])
def test_all_workers_at_once_are_as_each_alone(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    result = studied(SHORT | {"method": {"name": name}})
    window = MeasurementWindow(result.run, result.warm_up)
    check(window)
    monkeypatch.setattr(metrics, "AT_ONCE", 2 * window.run.ends.size // window.schedule.workers)
    assert [len(item) for item in metrics._together(window)] == [2] * (window.schedule.workers // 2)
    check(window)


@pytest.mark.parametrize("more", [{"tau": 2, "epsilon": 0.1}, {"epsilon": 0.3, "cache": "20%"}])
def test_waits_for_samplers_and_pauses_are_told_apart(more: dict[str, Any]) -> None:
    question = SHORT | {"method": {"name": "psc-gcn", **more}}
    faults = ("pause:worker=1,seconds=300ms,iteration=2", "slow-gpu:worker=2,factor=3")
    for result in (studied(question), studied(question, *faults)):
        check(MeasurementWindow(result.run, result.warm_up))
