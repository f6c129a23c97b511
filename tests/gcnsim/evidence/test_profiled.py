"""A profiler's traces as a side of a comparison."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gcnsim.api import compare, render_comparison
from gcnsim.core.errors import ScenarioError
from gcnsim.evidence.iteration_report import IterationReport, report_of_profile
from gcnsim.timeline.breakdown import iteration_s
from tests.gcnsim.records.made_traces import cuda_events, document, folder, write

SCENARIO = {
    "schema": "gcnsim.scenario/1",
    "cluster": {"gpus": 2, "gpus_per_server": 1, "bandwidth": "10Gbps"},
    "workload": {"dataset": "reddit"},
    "method": {"name": "full-graph"},
    "run": {"iterations": 3},
}


def test_a_trace_is_a_side_in_the_same_parts(tmp_path: Path) -> None:
    side: IterationReport = report_of_profile(folder(tmp_path / "traces"), "mine")
    assert (side.kind, side.slowest, side.links) == ("trace", 1, {})
    assert side.setting == "2 GPUs, 4 iterations, measured by the PyTorch profiler"
    assert side.iteration_s == pytest.approx(0.1)
    assert (side.low_s, side.high_s) == pytest.approx((0.1, 0.1))
    assert side.facts == {"cluster.gpus": "2", "cluster.device": "t4"}
    assert side.beneath == pytest.approx({"hidden_comm_s": 0.005, "sampling_s": 0.005})
    for own in side.workers:
        assert iteration_s(own) == pytest.approx(0.1)


def test_a_trace_beside_a_simulated_scenario(tmp_path: Path) -> None:
    found = compare(folder(tmp_path / "traces"), SCENARIO)
    assert found["detailed"]
    assert [found["a"]["kind"], found["b"]["kind"]] == ["trace", "scenario"]
    assert found["differs"] == [], "what a trace does not say is no difference"
    parts = {part["part"]: part["a"] for part in found["parts"]}
    assert parts["compute_s"] == pytest.approx(0.05)
    assert parts["exposed_comm_s"] == pytest.approx(0.025)
    assert len(found["workers"]["a"]) == 2
    notes = "\n".join(found["notes"])
    assert "is a profiler's trace: profiling itself lengthens iterations" in notes
    assert "the first recorded, is left out" in notes
    assert "one side is measured, the other predicted" in notes
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert "measured by the PyTorch profiler" in render_comparison(found)


def test_an_unknown_gpu_is_told_as_the_driver_calls_it(tmp_path: Path) -> None:
    made = document(cuda_events())
    made["deviceProperties"] = [{"id": 0, "name": "Radiant 9"}]
    side = report_of_profile(write(tmp_path / "t.json", made), "mine")
    assert side.facts == {"cluster.gpus": "1", "cluster.device": "Radiant 9"}
    assert side.setting.startswith("1 GPU, 4 iterations, ")
    made["deviceProperties"] = None
    assert report_of_profile(write(tmp_path / "t.json", made), "mine").facts == {"cluster.gpus": "1"}


def test_names_count_for_traces_alone(tmp_path: Path) -> None:
    names = tmp_path / "names.yaml"
    names.write_text("schema: gcnsim.trace-names/1\nnames: {ignore: ['*nccl*']}\n")
    traces = folder(tmp_path / "traces")
    found = compare(traces, traces, names=names)
    assert next(part["a"] for part in found["parts"] if part["part"] == "exposed_comm_s") == pytest.approx(0.01)
    with pytest.raises(ScenarioError, match=r"^--names: neither A nor B is a profiler's trace"):
        compare(SCENARIO, SCENARIO, names=names)
