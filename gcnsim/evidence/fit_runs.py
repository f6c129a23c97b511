"""Coefficients refined so that the simulator reproduces a few recorded runs.

What micro-benchmarks cannot tell is fitted here, each as a factor on what they gave: of workers on cores how much
processor time a byte costs on this network's path, what its queues hold, and how much slower cores are among all
threads of a run; of GPUs how fast sums over neighbours are on each graph (its locality), what a call of the host costs,
what copies and the network carry. Factors are held near one: a factor of e counts like a whole iteration's error of
`PRIOR`, so that a coefficient the runs say nothing about stays where the benchmarks put it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import exp, log
from tempfile import TemporaryDirectory
from typing import Final

import numpy as np

from gcnsim.core.ids import FloatArray
from gcnsim.core.processes import parallel_map
from gcnsim.evidence.recorded_run import scenario_of
from gcnsim.hardware import device
from gcnsim.records.calibration import Calibration, Fitted, Residual, write_calibration
from gcnsim.records.compute_facts import MeasuredCompute
from gcnsim.records.recorded_run import RecordedRun
from gcnsim.scenario import Scenario
from gcnsim.simulation import simulate_scenario
from gcnsim.simulation.open_source import open_source

PRIOR: Final = 0.15
"""The relative error of an iteration that costs as much as a coefficient off by a factor of e."""

GRAPH_PRIOR: Final = 0.04
"""The same for the speed of aggregation on a graph; benchmarks did not see that graph, so their prior is weak."""

PHASE_WEIGHT: Final = 0.5
"""The weight of a phase's error (as a share of the iteration) relative to the error of the iteration."""

MOST: Final = log(8.0)
"""The largest factor by which a coefficient may change in either direction."""

APART: Final = 0.15
"""The step in the logarithm of a coefficient for numerical derivatives."""

EVALUATIONS: Final = 8
FEWEST: Final = 3
"""The fewest runs from which the error of an unseen run can be estimated."""

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Coefficient:
    """A coefficient to fit: a figure of a part, or the SpMM factor of a graph (part `graphs`)."""

    part: str
    name: str
    reference: str


COEFFICIENTS: Final = (
    Coefficient("host", "socket_bandwidth", "processor time per byte on the runs' network"),
    Coefficient("network", "queue", "queues of the runs' links"),
    Coefficient("host", "busy_core_rate", "cores shared by all threads of the runs"),
)
"""Of workers on cores, whose compute was measured."""

OF_GPUS: Final = (
    Coefficient("host", "call_s", "calls of the runs' host"),
    Coefficient("copies", "efficiency", "copies between the runs' GPUs and their hosts"),
    Coefficient("network", "efficiency", "payload on the runs' network"),
    Coefficient("network", "latency_s", "messages on the runs' network"),
)
SHARES: Final = ("busy_core_rate", "efficiency")
"""Figures that are at most one."""


def refine(
    record: Calibration,
    runs: Sequence[RecordedRun],
    progress: Progress = lambda _: None,
    processes: int = 1,
    measured: Sequence[MeasuredCompute] = (),
) -> Calibration:
    """Return `record` with its coefficients refined on `runs`, and the expected error of an unseen run.

    measured: measured compute times of the runs' parts, which replace the laws of kernels. The expected error exceeds
    the residual, because the fit has seen these runs. With n runs and p degrees of freedom used, errors have the
    variance RSS / (n - p), and a prediction's variance is 1 + p / n times that on average. The 90 % interval is
    Student's t with n - p degrees of freedom (Seber and Lee, Linear Regression Analysis, 2003, chapters 3 and 5). Fewer
    than FEWEST runs are not enough.
    """
    from scipy.special import stdtrit

    progress(f"fitting to {len(runs)} runs")
    best, freedom = _fitted(record, runs, processes, measured)
    best = replace(best, spread=spread_of_repeats(runs))
    errors = _errors(best, runs, processes, measured)[:, 0]
    left = [_residual("iterations of the runs", errors)]
    if len(runs) < FEWEST:
        return replace(best, residuals=(*record.residuals, *left))
    n = len(runs)
    unseen = errors * float(np.sqrt((n + freedom) / (n - freedom)))
    left.append(_residual("the same of a run not fitted to", unseen))
    half = float(stdtrit(n - freedom, 0.95) * np.sqrt(np.mean(np.square(unseen))))
    return replace(best, residuals=(*record.residuals, *left), error=half)


def spread_of_repeats(runs: Sequence[RecordedRun]) -> float | None:
    """The pooled relative standard deviation of runs about the mean of their configuration; None without repeats."""
    groups: dict[object, list[float]] = {}
    for run in runs:
        requested = scenario_of(run)
        alike = replace(
            requested, workload=replace(requested.workload, trace="run"), run=replace(requested.run, seed=0)
        )
        groups.setdefault((alike, run.graph["hash"], run.options["method"]), []).append(run.iteration_s)
    repeated = [np.array(times) for times in groups.values() if len(times) > 1]
    if not repeated:
        return None
    squares = sum(float(np.square(times / times.mean() - 1.0).sum()) for times in repeated)
    return float(np.sqrt(squares / sum(times.size - 1 for times in repeated)))


def _residual(term: str, errors: FloatArray) -> Residual:
    size = np.abs(errors)
    return Residual(term, errors.size, float(size.mean()), float(np.percentile(size, 90)), float(errors.mean()))


def _fitted(
    record: Calibration, runs: Sequence[RecordedRun], processes: int, measured: Sequence[MeasuredCompute]
) -> tuple[Calibration, float]:
    """`record` with the coefficients that fit `runs` best, and the degrees of freedom that the fit used."""
    from scipy.optimize import least_squares

    on_cores = device(record.device).kind == "cpu"
    graphs = list(dict.fromkeys(run.graph["hash"] for run in runs))
    known = COEFFICIENTS if on_cores else OF_GPUS
    record = as_measured(record) if on_cores and record.beside_busy else record
    chosen = [one for one in known if one.name in record.figures.get(one.part, {})]
    if not measured:
        chosen += [Coefficient("graphs", graph, "sums over neighbours on this graph") for graph in graphs]
    # What a link carries is near the most it can: there is something to see on the way down only.
    steps = np.array([-APART if one.name in SHARES else APART for one in chosen])
    priors = np.array([GRAPH_PRIOR if one.part == "graphs" else PRIOR for one in chosen])

    def misfit(logs: FloatArray) -> FloatArray:
        errors = _errors(moved(record, chosen, logs), runs, processes, measured)
        return np.concatenate([errors.ravel(), priors * logs])

    def slopes(logs: FloatArray) -> FloatArray:
        # Use wide steps: the scheduling of cores is discrete, so a narrow step would measure noise.
        here = misfit(logs)
        return np.stack(
            [(misfit(logs + move) - here) / step for step, move in zip(steps, np.diag(steps), strict=True)], axis=1
        )

    start = np.zeros(len(chosen))
    found = least_squares(misfit, start, slopes, bounds=(-MOST, MOST), x_scale=0.3, max_nfev=EVALUATIONS)
    return moved(record, chosen, found.x), freedom_over(np.asarray(found.jac), len(runs))


def freedom_over(slopes: FloatArray, runs: int) -> float:
    """The effective degrees of freedom: how many of the runs' iterations the coefficients could match, from 0 to their
    number.

    slopes: derivatives by coefficient of equally many errors of every run (the iteration's first), followed by the rows
    of the prior. The result is the trace of the projection onto the slopes, over the rows of iterations.
    """
    each_has = (slopes.shape[0] - slopes.shape[1]) // runs
    onto = np.diag(slopes @ np.linalg.pinv(slopes))
    return float(onto[: runs * each_has : each_has].sum())


def as_measured(record: Calibration) -> Calibration:
    """`record` with cores as fast as they were measured; runs show how much slower they are among all other threads."""
    figures = {part: dict(given) for part, given in record.figures.items()}
    figures["host"] |= {"busy_core_rate": Fitted(1.0, "compute was measured beside busy cores")}
    return replace(record, figures=figures)


def moved(record: Calibration, chosen: Sequence[Coefficient], logs: FloatArray) -> Calibration:
    """`record` with each chosen coefficient multiplied by e to the power of its log."""
    figures = {part: dict(given) for part, given in record.figures.items()}
    graphs = dict(record.graphs)
    for one, by in zip(chosen, logs.tolist(), strict=True):
        if one.part == "graphs":
            graphs[one.name] = graphs.get(one.name, 1.0) * exp(by)
        else:
            old = figures[one.part][one.name]
            value = old.value * exp(by)
            if one.name in SHARES:
                value = min(value, 1.0)
            figures[one.part][one.name] = Fitted(value, f"{old.reference}; then {one.reference}", old.error)
    return replace(record, figures=figures, graphs=graphs)


def _errors(
    record: Calibration, runs: Sequence[RecordedRun], processes: int, measured: Sequence[MeasuredCompute]
) -> FloatArray:
    """Per run, the signed errors of the iteration and of its phases, as shares of the measured iteration, [runs, 4]."""
    with TemporaryDirectory(prefix="gcnsim-calibrate-") as folder:
        path = f"{folder}/calibration.json"
        write_calibration(path, record)
        scenarios = [scenario_of(run, path, measured) for run in runs]
        found = parallel_map(_predicted, scenarios, processes)
    rows = []
    for run, (iteration, compute, comm) in zip(runs, found, strict=True):
        whole, phases = run.iteration_s, run.phases
        rows.append(
            [
                iteration / whole - 1.0,
                PHASE_WEIGHT * (compute - phases["compute"]) / whole,
                PHASE_WEIGHT * (comm - phases["exposed_comm"]) / whole,
                PHASE_WEIGHT * (iteration - compute - comm - phases["exposed_other"]) / whole,
            ]
        )
    return np.array(rows)


def _predicted(scenario: Scenario) -> tuple[float, float, float]:
    metrics = simulate_scenario(scenario, open_source(scenario)).metrics
    return metrics.iteration_s, metrics.compute_s, metrics.exposed_comm_s
