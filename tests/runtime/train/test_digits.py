"""Methods learn: digits, two workers, test accuracy of the weights with the best validation accuracy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from runtime.methods import method_type
from runtime.options import Options
from runtime.record import read_run
from tests.runtime.crew import Crew
from tests.runtime.session_jobs import ran

RUNS: dict[str, tuple[str, dict[str, Any]]] = {
    "psc-gcn gat": ("psc-gcn", {"tau": 1, "epsilon": 0.3}),
    "psc-gcn pool": ("psc-gcn", {"tau": 1, "epsilon": 0.3}),
    "graphsage pool": ("graphsage", {"batch": 200, "fanout": (10, 10)}),
    "cagnet-1d": ("cagnet-1d", {}),
    "cagnet-1.5d": ("cagnet-1.5d", {}),
    "sancus adaptive": ("sancus", {"warm_iterations": 10}),
    "sancus gap": ("sancus", {"stale_test": "gap", "threshold": 0.5, "warm_iterations": 10}),
    "sancus skipping both ways": ("sancus", {"threshold": 4, "warm_iterations": 0, "skip_backward": "yes"}),
}


SEEN_ELSEWHERE = ("psc-gcn pool", "cagnet-1d", "cagnet-1.5d", "sancus skipping both ways")
"""Their losses are compared with references that are full-graph training, or with those of another of these runs."""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name in SEEN_ELSEWHERE)) for name in RUNS]
)
def test_digits_are_told_apart(crew: Crew, tmp_path: Path, name: str) -> None:
    method, knobs = RUNS[name]
    model: dict[str, Any] = {"model": "gat", "heads": 2} if name.endswith("gat") else {}
    if name.endswith("pool"):
        model = {"model": "graphsage", "sage_aggregator": "pool"}
    given = method_type(method).settled(knobs)
    crew.run(2, ran, Options(method, given, iterations=80, out=str(tmp_path / "run"), **model))
    run = read_run(tmp_path / "run")
    accuracy, last = run.record.accuracy, run.iterations[-1].train_accuracy
    assert accuracy["test"] is not None
    assert accuracy["test"] >= 0.95
    assert last is not None
    assert 0.95 <= last <= 1.0
