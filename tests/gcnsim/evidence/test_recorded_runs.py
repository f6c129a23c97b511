"""Recorded runs as questions: of batches, with profiler traces, compared."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gcnsim.api import compare, render_comparison
from gcnsim.core.errors import FileError, ScenarioError
from gcnsim.evidence.iteration_report import IterationReport, report_of_profile, report_of_run
from gcnsim.evidence.recorded_run import refuse_other_trace, scenario_of
from gcnsim.records.recorded_run import read_measured, read_recorded_run
from gcnsim.simulation.open_source import open_source
from gcnsim.simulation.source import RangeEnd
from gcnsim.timeline import OpKind
from gcnsim.timeline.breakdown import iteration_s
from gcnsim.timeline.span import write_spans
from gcnsim.trace import AccessTrace, BatchOrigin, BatchTrace, packed, read_trace, write_batch_trace, write_trace
from tests.gcnsim.evidence.conftest import WriteRun, save_trace
from tests.gcnsim.evidence.test_compare import PSC, recorded, spans
from tests.gcnsim.records.made_traces import cuda_events, document, folder, write


def test_two_runs_within_their_spread_are_said_to_be_so_first(write_run: WriteRun) -> None:
    near, far = (recorded(write_run, name) for name in ("near", "far"))
    for run, times in ((near, (0.09, 0.13)), (far, (0.19, 0.23))):
        table = run / "iterations.csv"
        head, *rows = table.read_text().splitlines()
        rows = [row.replace(",0.1,", f",{times[index % 2]},") for index, row in enumerate(rows)]
        table.write_text("\n".join([head, *rows, ""]))
    steady = recorded(write_run, "steady")
    assert compare(near, near)["says"][0].startswith("The difference is within the spread of the iterations")
    assert compare(near, far)["says"][0].startswith("B takes ")
    assert compare(steady, near)["says"][0].startswith("B takes "), "one of them does not vary"


@pytest.mark.parametrize("shorter", [0.0, 0.03])
def test_the_parts_of_a_recorded_iteration_make_the_time_of_its_table(write_run: WriteRun, shorter: float) -> None:
    folder = recorded(write_run, "run")
    # Without what worker 0 writes between two iterations, and the others wait for.
    table = folder / "iterations.csv"
    table.write_text(table.read_text().replace(",0.1,", f",{0.1 - shorter!r},"))
    report = report_of_run(folder, "run")
    assert report.iteration_s == read_measured(folder).iteration_s == pytest.approx(0.1 - shorter)
    for worker in report.workers:
        assert iteration_s(worker) == pytest.approx(0.1 - shorter)
        assert worker.rest_s >= 0.0


def test_an_evaluation_between_two_iterations_belongs_to_neither(write_run: WriteRun) -> None:
    folder = recorded(write_run, "run")
    table = folder / "iterations.csv"
    head, *rows = table.read_text().splitlines()
    rows[7] = rows[7].replace("7,0.1,", "7,0.098,")
    table.write_text("\n".join([head, *rows, ""]))
    (one,) = (worker for worker in report_of_run(folder, "run").workers if worker.worker == 1)
    assert one.rest_s == pytest.approx(0.002 * 4 / 5), "the 2 ms before iteration 7 are none of it"
    assert one.compute_s == pytest.approx(0.02)


def test_a_run_without_spans_of_a_worker_is_refused(write_run: WriteRun) -> None:
    folder = write_run("run")
    write_spans(folder / "timeline.parquet", spans([(OpKind.STEP, 0, "compute", 9, -1, 0, 1, 0.0)]), {})
    with pytest.raises(FileError, match=r"timeline.parquet: has no span of worker 0 in iteration 5"):
        compare(folder, PSC)
    write_spans(folder / "timeline.parquet", spans([(OpKind.WIRE, 0, "f.tx1", 9, 1, 0, 1, -1.0)]), {})
    with pytest.raises(FileError, match=r"timeline.parquet: "):
        compare(folder, PSC)


DRAWN = {"method": "psc-gcn", "knobs": {"tau": 1, "epsilon": 0.3, "sampler": "vr"}}


def check(folder: Path) -> None:
    run = read_recorded_run(folder)
    refuse_other_trace(run, scenario_of(run))


def refusal(folder: Path) -> str:
    with pytest.raises(ScenarioError) as caught:
        check(folder)
    path, end = folder / "access.trace", f"; allowed: the trace of {folder}"
    text = str(caught.value)
    assert text.startswith(f"{path}: ")
    assert text.endswith(end)
    return text.removeprefix(f"{path}: ").removesuffix(end)


@pytest.mark.parametrize("options", [{}, DRAWN, {"method": "pipegcn"}, {"method": "bns-gcn", "knobs": {"rate": 0.2}}])
def test_a_run_has_its_own(write_run: WriteRun, options: dict[str, Any]) -> None:
    check(write_run("a", **options))


def _of(**changes: Any) -> Callable[[AccessTrace], AccessTrace]:
    return lambda trace: replace(trace, origin=replace(trace.origin, **changes))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (_of(graph_hash="ab" * 32), "is of the graph abababababab, the run of "),
        (_of(partition_method="metis"), "is of a partition by metis, the run of one by block"),
        (lambda trace: replace(trace, inner_nodes=trace.inner_nodes + 1), "has 1501 inner nodes of worker 0, the run "),
        (_of(sampler="uniform"), "was drawn with uniform at epsilon 0.3, the run with vr at 0.3"),
        (_of(epsilon=0.25), "was drawn with vr at epsilon 0.25, the run with vr at 0.3"),
        (_of(seed=7), "was drawn with seed 7, the run with 0"),
    ],
)
def test_another_is_refused(write_run: WriteRun, change: Callable[[AccessTrace], AccessTrace], words: str) -> None:
    folder = write_run("a", **DRAWN)
    changed = change(read_trace(folder / "access.trace"))
    write_trace(folder / "access.trace", changed)
    assert refusal(folder).startswith(words)


def test_one_of_other_workers_and_one_of_drawn_graphs_beside_a_run_of_whole_ones(write_run: WriteRun) -> None:
    folder = write_run("a")
    save_trace(folder / "access.trace", workers=3)
    assert refusal(folder) == "has 3 workers, the run 2"
    save_trace(folder / "access.trace", sampler="vr", epsilon=0.3)
    assert refusal(folder) == "was drawn with vr at epsilon 0.3, the run with full at 1"


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


NODES = 16


@pytest.fixture
def batch_folder(write_run: WriteRun) -> Path:
    """A run of graphsage with its batches: 8 input rows of 16, 3 nodes."""
    run = write_run("a", method="graphsage", knobs={"batch": 3, "fanout": None, "layer_sizes": None})
    write_batch_trace(run / "access.trace", trace_of(run))
    return run


def trace_of(batch_folder: Path, **origin: Any) -> BatchTrace:
    """The batches of the run in `batch_folder`, of an `origin` that may be another."""
    run = read_recorded_run(batch_folder)
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


def test_a_run_is_asked_with_its_own_batches(batch_folder: Path) -> None:
    run = read_recorded_run(batch_folder)
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
def test_batches_of_another_run_are_refused_in_one_line(
    batch_folder: Path, origin: dict[str, Any], message: str
) -> None:
    write_batch_trace(batch_folder / "access.trace", trace_of(batch_folder, **origin))
    run = read_recorded_run(batch_folder)
    with pytest.raises(ScenarioError) as content:
        refuse_other_trace(run, scenario_of(run))
    assert str(content.value).startswith(f"{batch_folder / 'access.trace'}: {message}")
    assert "\n" not in str(content.value)


def test_an_unknown_gpu_is_told_as_the_driver_calls_it(tmp_path: Path) -> None:
    made = document(cuda_events())
    made["deviceProperties"] = [{"id": 0, "name": "Radiant 9"}]
    side = report_of_profile(write(tmp_path / "t.json", made), "mine")
    assert side.facts == {"cluster.gpus": "1", "cluster.device": "Radiant 9"}
    assert side.setting.startswith("1 GPU, 4 iterations, ")
    made["deviceProperties"] = None
    assert report_of_profile(write(tmp_path / "t.json", made), "mine").facts == {"cluster.gpus": "1"}
