"""What kernels take in recorded runs, over what the laws have for them: how busy cores beside slow down each kind."""

from __future__ import annotations

from collections.abc import Sequence
from tempfile import TemporaryDirectory
from typing import Final

import numpy as np

from gcnsim.calibration_record.record import Calibration, Fitted, write_calibration
from gcnsim.evidence import scenario_of
from gcnsim.ids import FloatArray
from gcnsim.runs.recorded_run import COMPUTE, SETTLED, TIMELINE, RecordedRun
from gcnsim.scenario import Scenario
from gcnsim.simulation import study
from gcnsim.sources import open_source
from gcnsim.timeline import KIND_CODE, PS_PER_S, OpKind

SUMS, PRODUCTS = OpKind.AGGREGATE, OpKind.UPDATE
SOURCE: Final = (
    "sums over neighbours over learnt maps in runs that compute and exchange in turn, with a core for each worker; "
    "each over its law"
)


def busy_sums_ratio(record: Calibration, runs: Sequence[RecordedRun]) -> Fitted | None:
    """How much longer sums over neighbours take than learnt maps in `runs`, each over its law: the geometric mean.

    None where no run tells: of several workers, each with a core of its own, over the whole graph and without
    attention or dropout, which exchange only while they do not compute (`--overlap none`).
    """
    told = [run for run in runs if _tells(run)]
    if not told:
        return None
    with TemporaryDirectory(prefix="gcnsim-calibrate-") as folder:
        path = f"{folder}/calibration.json"
        write_calibration(path, record)
        found = [np.log(_measured(run) / _by_law(scenario_of(run, path))) for run in told]
    return Fitted(float(np.exp(np.mean([sums - products for sums, products in found]))), SOURCE)


def _tells(run: RecordedRun) -> bool:
    asked = run.options
    return (
        1 < run.workers <= int(run.hardware["cores"])
        and asked["method"] == "full-graph"
        and asked["overlap"] == "none"
        and asked["model"] != "gat"
        and not asked.get("dropout")
        and (run.path / TIMELINE).is_file()
    )


def _measured(run: RecordedRun) -> FloatArray:
    """Seconds a worker and iteration takes for sums and for maps."""
    spans = run.timeline()
    computes = np.array([name == COMPUTE for name in spans.streams])[spans.stream] & (spans.iteration >= SETTLED)
    iterations = int(spans.iteration.max(initial=0)) + 1 - SETTLED
    lasted = (spans.end_ps - spans.start_ps) / PS_PER_S
    each = [float(lasted[computes & (spans.kind == KIND_CODE[kind])].sum()) for kind in (SUMS, PRODUCTS)]
    return np.array(each) / (run.workers * iterations)


def _by_law(scenario: Scenario) -> FloatArray:
    """The same by the laws, on a core alone."""
    schedule = study(scenario, open_source(scenario)).run.schedule
    kinds, demand = np.array([op.kind for op in schedule.ops]), schedule.demand.mean(axis=0)
    return np.array([float(demand[kinds == kind].sum()) for kind in (SUMS, PRODUCTS)]) / schedule.workers
