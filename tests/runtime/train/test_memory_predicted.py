"""What the runtime's tensors take, counted where they are held, beside what the simulator predicts for the same run."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gcnsim.cost import Memory
from gcnsim.evidence.recorded_run import scenario_of
from gcnsim.records.recorded_run import read_recorded_run
from gcnsim.simulation.model import resolve_model
from gcnsim.simulation.open_source import open_source
from gcnsim.simulation.run import memory_of
from gcnsim.simulation.source import RangeEnd
from runtime.record import read_run
from runtime.train.memory_usage import COMPONENTS
from tests.runtime.conftest import MakeOptions
from tests.runtime.crew import Crew
from tests.runtime.session_jobs import ran

WITHIN = 0.1
"""The error that a prediction of a run's tensors may have."""

METHODS: list[tuple[str, dict[str, Any]]] = [
    ("full-graph", {}),
    ("pipegcn", {}),
    ("pipegcn-gf", {"gamma": 0.9}),
    ("psc-gcn", {"tau": 2, "epsilon": 0.3, "cache": "30%"}),
    ("bns-gcn", {"rate": 0.3}),
]
NAMES = [name for name, _ in METHODS]


def predicted(folder: Path) -> tuple[Memory, ...]:
    """Of every worker of the recorded run."""
    scenario = scenario_of(read_recorded_run(folder))
    accesses = open_source(scenario)
    model = resolve_model(scenario.workload, accesses.declared)
    memories = memory_of(scenario, accesses.counts(scenario, model.features, RangeEnd.LIKELY), model.shapes)
    assert memories is not None
    return memories


def counted(folder: Path) -> list[dict[str, int]]:
    """Of every worker."""
    content = read_run(folder).record.tensors
    assert content is not None
    return [dict(item) for item in content]


@pytest.mark.parametrize(("method", "knobs"), METHODS, ids=NAMES)
def test_tensors_are_counted_by_component(
    crew: Crew, options: MakeOptions, tmp_path: Path, method: str, knobs: dict[str, Any]
) -> None:
    folder = tmp_path / "run"
    requested = options(
        method, knobs, workers=2, iterations=8, warmup=4, threads=1, out=str(folder), record=True, dtype="float32"
    )
    requested = replace(requested, save_trace=str(tmp_path / "access.trace"))
    crew.run(2, ran, requested)
    for memory, tensors in zip(predicted(folder), counted(folder), strict=True):
        assert set(tensors) == set(COMPONENTS)
        # A test's graph is so small that what the laws leave out (the loss, its indices) counts: the parts that do not.
        for name in ("model", "optimizer"):
            assert tensors[name] == pytest.approx(getattr(memory, name), rel=0.02, abs=64), name
        for name in ("adjacency", "boundary", "cache"):
            assert tensors[name] == pytest.approx(getattr(memory, name), rel=0.15, abs=4096), name
        assert tensors["gradients"] == memory.gradients + 4 * 8, "eight sums travel with them"
        assert tensors["features"] >= memory.features


@pytest.mark.slow
@pytest.mark.parametrize("dataset", ["amazon_cs", "acl_papers"])
@pytest.mark.parametrize(("method", "knobs"), METHODS, ids=NAMES)
def test_predicted_within_a_tenth(
    crew: Crew,
    options: MakeOptions,
    data_dir: Path,
    tmp_path: Path,
    dataset: str,
    method: str,
    knobs: dict[str, Any],
) -> None:
    folder = tmp_path / "run"
    facts = {
        "graph": None,
        "dataset": dataset,
        "feature_dim": 128,
        "layers": 3,
        "hidden": 128,
        "eval_every": 0,
        "dtype": "float32",
        "partition_method": "metis",
    }
    requested = options(
        method, knobs, workers=2, iterations=7, warmup=5, threads=1, out=str(folder), record=True, **facts
    )
    crew.run(2, ran, replace(requested, save_trace=str(tmp_path / "access.trace")))
    for memory, tensors in zip(predicted(folder), counted(folder), strict=True):
        held = sum(nbytes for name, nbytes in tensors.items() if name != "evaluation")
        assert memory.held == pytest.approx(held, rel=WITHIN)


def test_a_record_without_the_count_is_read(crew: Crew, options: MakeOptions, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    crew.run(2, ran, options("full-graph", {}, workers=2, iterations=2, out=str(folder), record=True))
    document = json.loads((folder / "run.json").read_text())
    del document["tensors"]
    (folder / "run.json").write_text(json.dumps(document))
    assert read_run(folder).record.tensors is None
