"""Recorded runs on mini-batches: what is asked about them, and whether their batches are their own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gcnsim.core.errors import ScenarioError
from gcnsim.evidence.recorded_run import refuse_other_trace, scenario_of
from gcnsim.records.recorded_run import read_recorded_run
from gcnsim.simulation.open_source import open_source
from gcnsim.simulation.source import RangeEnd
from gcnsim.trace import BatchOrigin, BatchTrace, packed, write_batch_trace
from tests.gcnsim.evidence.conftest import WriteRun

NODES = 16


@pytest.fixture
def folder(write_run: WriteRun) -> Path:
    """A run of graphsage with its batches: 8 input rows of 16, 3 nodes."""
    run = write_run("a", method="graphsage", knobs={"batch": 3, "fanout": None, "layer_sizes": None})
    write_batch_trace(run / "access.trace", trace_of(run))
    return run


def trace_of(folder: Path, **origin: Any) -> BatchTrace:
    """The batches of the run in `folder`, of an `origin` that may be another."""
    run = read_recorded_run(folder)
    layers, workers = len(run.widths) - 1, run.workers
    levels = np.linspace(8, 3, layers + 1).astype(np.int64)
    read, none = np.arange(NODES) < 8, np.zeros(NODES, np.bool_)
    own = BatchOrigin("tiny", run.graph["hash"], "graphsage", run.options["seed"], 4)
    return BatchTrace(
        replace(own, **origin),
        NODES,
        np.broadcast_to(levels, (2, workers, layers + 1)).copy(),
        np.full((2, workers, layers), 9, np.int64),
        np.full((2, workers), 9 * layers, np.int64),
        (packed(np.stack([read] * 2)),) * workers,
        (packed(none),) * workers,
        np.full(workers, NODES, np.int64),
        (np.arange(NODES) % workers).astype(np.int32),
    )


def test_a_run_is_asked_with_its_own_batches(folder: Path) -> None:
    run = read_recorded_run(folder)
    scenario = scenario_of(run)
    refuse_other_trace(run, scenario)
    assert (scenario.method.name, scenario.method.values()["batch"]) == ("graphsage", 3)
    batches = open_source(scenario).counts(scenario, run.widths[0], RangeEnd.LIKELY).batches
    assert batches is not None
    assert batches.levels[:, :, 0].tolist() == [[8] * run.workers] * 2
    assert batches.wanted.sum(axis=2).tolist() == [[8] * run.workers] * 2


@pytest.mark.parametrize(
    ("origin", "message"),
    [
        ({"graph_hash": "f" * 64}, "is of the graph ffffffffffff, the run of"),
        ({"method": "distdgl"}, "was drawn with method distdgl, the run with graphsage"),
        ({"seed": 77}, "was drawn with seed 77, the run with 0"),
    ],
)
def test_batches_of_another_run_are_refused_in_one_line(folder: Path, origin: dict[str, Any], message: str) -> None:
    write_batch_trace(folder / "access.trace", trace_of(folder, **origin))
    run = read_recorded_run(folder)
    with pytest.raises(ScenarioError) as content:
        refuse_other_trace(run, scenario_of(run))
    assert str(content.value).startswith(f"{folder / 'access.trace'}: {message}")
    assert "\n" not in str(content.value)


def test_a_share_of_all_nodes_is_asked_as_it_was_trained(write_run: WriteRun) -> None:
    run = read_recorded_run(write_run("b", method="clustergcn", knobs={"subgraph": 0.05}))
    assert scenario_of(run).method.values()["subgraph"] == 0.05
