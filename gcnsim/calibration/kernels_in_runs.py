"""What kernels take in recorded runs, over what the laws have for them: how busy cores beside slow down each kind."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, log
from tempfile import TemporaryDirectory
from typing import Final

import numpy as np

from gcnsim.calibration_record.record import Calibration, Fitted, write_calibration
from gcnsim.evidence import scenario_of
from gcnsim.methods import is_method, method_type
from gcnsim.methods.method import NO_OVERLAP
from gcnsim.runs.recorded_run import COMPUTE, SETTLED, TIMELINE, RecordedRun
from gcnsim.scenario import Scenario
from gcnsim.simulation import simulate_scenario
from gcnsim.sources import open_source
from gcnsim.timeline import KIND_CODE, OpKind
from gcnsim.workload import MEAN

SUMS, PRODUCTS = OpKind.AGGREGATE, OpKind.UPDATE
WHOLE: Final = {"epsilon": 1.0, "rate": 1.0, "tau": 0}
"""Knobs of a method that sums all entries, of rows of the same iteration."""
SOURCE: Final = (
    "sums over neighbours over learnt maps in runs that compute and exchange in turn on as many cores as workers; "
    "each over its law"
)


def busy_sums_ratio(record: Calibration, runs: Sequence[RecordedRun]) -> Fitted | None:
    """How much longer sums over neighbours take than learnt maps in `runs`, each over its law: the geometric mean.

    None where no run tells: of workers that have the cores of their machine to themselves, one each, over the whole
    graph and without attention, pooling or dropout, which exchange only while they do not compute (`--overlap none`);
    or where `record` does not know what the order of a matrix does to its sums, which would be in the ratio. What the
    laws are wrong by on the runs' graphs is in it. Raises FileError for a run whose spans or trace cannot be read.
    """
    content = [run for run in runs if _tells(run)]
    if not content or record.sums is None:
        return None
    with TemporaryDirectory(prefix="gcnsim-calibrate-") as folder:
        path = f"{folder}/calibration.json"
        write_calibration(path, record)
        pairs = [(*_measured(run), *_by_law(scenario_of(run, path))) for run in content]
    # A run may be too short for a measured iteration, or its model without a sum.
    found = [log(sums / sums_by_law * (maps_by_law / maps)) for sums, maps, sums_by_law, maps_by_law in pairs
             if min(sums, maps, sums_by_law, maps_by_law) > 0]  # fmt: skip
    return Fitted(exp(sum(found) / len(found)), SOURCE) if found else None


def _tells(run: RecordedRun) -> bool:
    requested, cluster, name = run.options, run.cluster, run.options["method"]
    beside = run.workers if cluster is None else cluster.workers_per_host
    drawn = {requested["knobs"].get(knob, whole) != whole for knob, whole in WHOLE.items()}
    return (
        1 < beside == int(run.hardware["cores"]) // run.threads
        and is_method(name)
        and method_type(name).overlaps
        and requested["overlap"] == NO_OVERLAP
        and drawn <= {False}
        and requested["model"] != "gat"
        and requested.get("sage_aggregator", MEAN) == MEAN
        and not requested.get("dropout")
        and (run.path / TIMELINE).is_file()
    )


def _measured(run: RecordedRun) -> tuple[float, float]:
    """Picoseconds that all workers took for sums and for maps, in all measured iterations."""
    spans = run.timeline()
    computes = np.array([name == COMPUTE for name in spans.streams], bool)[spans.stream]
    computes &= spans.iteration >= SETTLED
    lasted = spans.end_ps - spans.start_ps
    sums, maps = (float(lasted[computes & (spans.kind == KIND_CODE[kind])].sum()) for kind in (SUMS, PRODUCTS))
    return sums, maps


def _by_law(scenario: Scenario) -> tuple[float, float]:
    """Core-seconds of both by the laws, of all workers in an iteration."""
    schedule = simulate_scenario(scenario, open_source(scenario)).run.schedule
    kinds, demand = np.array([op.kind for op in schedule.ops]), schedule.demand.mean(axis=0)
    sums, maps = (float(demand[kinds == kind].sum()) for kind in (SUMS, PRODUCTS))
    return sums, maps
