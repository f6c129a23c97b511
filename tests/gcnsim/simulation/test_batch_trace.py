"""Recorded mini-batches as the simulator's: their own sizes, for their own method and workers alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gcnsim.core.errors import GcnsimError
from gcnsim.methods import create_method
from gcnsim.scenario import SCHEMA, Scenario, from_mapping
from gcnsim.simulation.open_source import open_source
from gcnsim.simulation.source import RangeEnd
from gcnsim.trace import BatchOrigin, BatchTrace, packed, write_batch_trace

NODES = 12


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """Two workers, three batches each of 2 nodes that read 6 and, in the last one, 7 input rows; every third is the
    other's."""
    read = np.zeros((3, NODES), np.bool_)
    read[:, :6] = True
    read[2, 6] = True
    levels = np.array([[[6, 4, 2]] * 2, [[6, 4, 2]] * 2, [[7, 4, 2]] * 2], np.int64)
    trace = BatchTrace(
        BatchOrigin("tiny", "ab12", "graphsage", 0, 5),
        NODES,
        levels,
        np.full((3, 2, 2), 8, np.int64),
        np.full((3, 2), 16, np.int64),
        (packed(read), packed(read)),
        (packed(np.zeros(NODES, np.bool_)),) * 2,
        np.full(2, NODES, np.int64),
        np.arange(NODES, dtype=np.int32) % 3 // 2,
    )
    write_batch_trace(tmp_path / "t", trace)
    return tmp_path / "t"


def make_scenario(path: Path, *, gpus: int = 2, layers: int = 2, **method: Any) -> Scenario:
    return from_mapping(
        {
            "schema": SCHEMA,
            "name": "t",
            "cluster": {"gpus": gpus, "gpus_per_server": 1},
            "workload": {"trace": str(path), "layers": layers, "hidden": 16, "features": 8, "classes": 3},
            "method": {"name": "graphsage", "batch": 2} | method,
        },
        "t",
    )


def test_counts_are_those_that_were_recorded(recorded: Path) -> None:
    scenario = make_scenario(recorded)
    source = open_source(scenario)
    counts = source.counts(scenario, 8, RangeEnd.LIKELY)
    batches = counts.batches
    assert batches is not None
    assert batches.levels[:, 0, 0].tolist() == [6, 6, 7]
    assert batches.wanted[:, 0].tolist() == [[4, 2], [4, 2], [5, 2]]
    assert (batches.per_epoch, counts.rows.sum(), source.name, source.graph_hash) == (5, 0, "tiny", "ab12")
    assert "3 mini-batches of tiny for each of 2 workers" in source.describe(scenario)["text"]
    again = batches.repeated(2)
    assert (again.iterations, again.levels[:, 0, 0].tolist()) == (6, [6, 6, 7] * 2)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"name": "distdgl"}, "method.name: distdgl is not allowed; {path} has mini-batches of graphsage"),
        ({"gpus": 3}, "{path}: has 2 workers, the cluster has 3 GPUs"),
        ({"layers": 3}, "{path}: has mini-batches of 2 layers, the model has 3"),
        ({"batch": 1}, "method.batch: 1 is not allowed; {path} has batches of 2"),
    ],
)
def test_what_was_not_recorded_is_refused_in_one_line(recorded: Path, changed: dict[str, Any], message: str) -> None:
    scenario = make_scenario(recorded, **changed)
    with pytest.raises(GcnsimError) as content:
        open_source(scenario).counts(scenario, 8, RangeEnd.LIKELY)
    assert str(content.value) == message.format(path=recorded)


def test_a_trace_of_exchanges_is_no_trace_of_batches(recorded: Path) -> None:
    scenario = make_scenario(recorded)
    with pytest.raises(GcnsimError, match="batch-trace"):
        open_source(replace(scenario, method=create_method("full-graph")))
