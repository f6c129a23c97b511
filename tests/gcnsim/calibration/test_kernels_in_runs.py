"""How busy cores slow down sums more than products: told by the spans of runs, used where workers share cores."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gcnsim.calibration import calibrate
from gcnsim.calibration.kernels_in_runs import busy_sums_ratio
from gcnsim.calibration.runs import outside_kernels
from gcnsim.calibration_record.record import Calibration, Fitted, write_calibration
from gcnsim.evidence import scenario_of
from gcnsim.hardware.profiles import TERMS, SumFigures
from gcnsim.runs.recorded_run import COMPUTE, RecordedRun, read_recorded_run
from gcnsim.schedule import Schedule
from gcnsim.simulation import simulate_scenario
from gcnsim.sources import open_source
from gcnsim.timeline import KIND_CODE, PS_PER_S, OpKind, Timeline
from gcnsim.timeline.parquet import write_spans
from tests.gcnsim.calibration.made import write_measurements
from tests.gcnsim.validation.conftest import WriteRun

WORKERS, ITERATIONS = 2, 10


@pytest.fixture
def measured(tmp_path: Path) -> Calibration:
    """A record that knows what the order of a matrix does to its sums."""
    sums = SumFigures((48e3, 2e6, 4e7), dict.fromkeys(TERMS, 2e-10))
    return replace(calibrate(write_measurements(tmp_path / "profile.json")), sums=sums)


def with_kernels(folder: Path, sums_s: float, maps_s: float) -> RecordedRun:
    """The run in `folder`, with one sum, one map and as long a message in each iteration of each worker."""
    each = ((OpKind.AGGREGATE, 0, sums_s), (OpKind.UPDATE, 0, maps_s), (OpKind.AGGREGATE, 1, 9.0))
    rows = [(KIND_CODE[kind], worker, stream, t, s) for t in range(ITERATIONS) for worker in range(WORKERS)
            for kind, stream, s in each]  # fmt: skip
    kind, worker, stream, iteration, lasted = (np.array(column) for column in zip(*rows, strict=True))
    none = np.full(kind.size, -1, np.int32)
    # The first iterations are not measured, whatever they took.
    starts = np.arange(kind.size, dtype=np.int64) * 10 * PS_PER_S
    ends = starts + (np.where(iteration < 5, 7.0, lasted) * PS_PER_S).astype(np.int64)
    spans = Timeline(
        kind.astype(np.uint8), worker.astype(np.int32), stream.astype(np.int32), iteration.astype(np.int32), none,
        np.zeros(kind.size, np.uint8), none, starts, ends, np.zeros(kind.size), (COMPUTE, "sampler"),
    )  # fmt: skip
    write_spans(folder / "timeline.parquet", spans, {})
    return read_recorded_run(folder)


def test_the_ratio_is_that_of_spans_over_laws(tmp_path: Path, measured: Calibration, write_run: WriteRun) -> None:
    run = with_kernels(write_run("a", method="full-graph", overlap="none", workers=WORKERS), 0.3, 0.2)
    write_calibration(tmp_path / "record.json", measured)
    scenario = scenario_of(run, str(tmp_path / "record.json"))
    schedule = simulate_scenario(scenario, open_source(scenario)).run.schedule
    sums, maps = (_demand(schedule, kind) / WORKERS for kind in (OpKind.AGGREGATE, OpKind.UPDATE))
    fitted = busy_sums_ratio(measured, [run])
    assert fitted is not None
    assert fitted.value == pytest.approx(0.3 / sums / (0.2 / maps), rel=1e-9)
    longer = with_kernels(write_run("b", method="full-graph", overlap="none", workers=WORKERS), 1.2, 0.2)
    both = busy_sums_ratio(measured, [run, longer])
    assert both is not None
    assert both.value == pytest.approx(2.0 * fitted.value)
    assert outside_kernels(measured, [run]).figures["host"]["busy_sums_ratio"] == fitted


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"method": "full-graph", "overlap": "central"}, id="sums beneath messages"),
        pytest.param({"method": "pipegcn", "overlap": "none"}, id="messages beneath all"),
        pytest.param({"method": "full-graph", "overlap": "none", "workers": 4}, id="no core for each"),
        pytest.param({"method": "psc-gcn", "overlap": "none", "knobs": {"epsilon": 0.5}}, id="drawn entries"),
        pytest.param({"method": "full-graph", "overlap": "none", "model": "gat"}, id="attention"),
        pytest.param({"method": "full-graph", "overlap": "none", "dropout": 0.5}, id="dropout"),
    ],
)
def test_other_runs_do_not_tell_it(measured: Calibration, write_run: WriteRun, options: dict[str, object]) -> None:
    folder = write_run("a", **({"workers": WORKERS, "emulation": None} | options))
    assert busy_sums_ratio(measured, [with_kernels(folder, 0.3, 0.2)]) is None


@pytest.mark.parametrize("shared", [True, False])
def test_sums_take_longer_and_products_less_where_workers_share_cores(
    tmp_path: Path, measured: Calibration, write_run: WriteRun, shared: bool
) -> None:
    run = read_recorded_run(write_run("a", method="full-graph", workers=WORKERS))
    demands = []
    for ratio in (1.0, 1.44):
        figures = {part: dict(given) for part, given in measured.figures.items()}
        figures["host"]["busy_sums_ratio"] = Fitted(ratio, "chosen for a test")
        write_calibration(tmp_path / "record.json", replace(measured, figures=figures))
        scenario = scenario_of(run, str(tmp_path / "record.json"))
        scenario = replace(scenario, cluster=replace(scenario.cluster, shared_cores=shared))
        schedule = simulate_scenario(scenario, open_source(scenario)).run.schedule
        demands.append([_demand(schedule, kind) for kind in (OpKind.AGGREGATE, OpKind.UPDATE)])
    (sums, maps), (more, less) = demands
    assert (more > sums, less < maps) == (shared, shared)
    assert more <= 1.2 * sums * (1 + 1e-9)
    assert less >= maps / 1.2 * (1 - 1e-9)


def _demand(schedule: Schedule, kind: OpKind) -> float:
    return sum(float(schedule.demand[:, op.index].mean()) for op in schedule.ops if op.kind is kind)
