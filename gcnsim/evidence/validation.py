"""Predictions beside measurements of other runs: how far off, in which phase, and whether the ranking holds."""

from __future__ import annotations

import platform
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from gcnsim import __version__
from gcnsim.core.errors import FileError, ScenarioError, plural
from gcnsim.core.processes import parallel_map
from gcnsim.evidence.recorded_run import refuse_other_trace, refuse_unmeasured, scenario_of
from gcnsim.records.calibration import Calibration, beyond, content_hash, read_calibration
from gcnsim.records.compute_reading import measured_compute, measured_files
from gcnsim.records.recorded_run import (
    RecordedRun,
    first_repeat,
    link_notes,
    quota_notes,
    read_recorded_run,
    session_notes,
    trace_notes,
    version_notes,
)
from gcnsim.scenario import Scenario
from gcnsim.simulation import Result, answering, simulate_scenario
from gcnsim.simulation.open_source import open_source
from gcnsim.timeline.breakdown import PHASES
from gcnsim.workload.knobs import KNOBS, TRAINING_KNOBS

SHOWN: Final = ("tau", "epsilon", "cache", "rate")
USUAL: Final = {knob.name: knob.default for knob in (*KNOBS.values(), *TRAINING_KNOBS)}
"""Knobs that stand where they do by default are not told."""

TRAINED: Final[Mapping[str, object]] = {
    "norm": "none",
    "heads": 1,
    "bias": True,
    "sage_mean": "neighbours",
    "dropout": 0.0,
    "dropout_order": "exchange-first",
    "preaggregate": False,
    "optimizer": "adam",
    "lr": 0.01,
    "weight_decay": 0.0,
    "init_weights": None,
    "feature_norm": "none",
    "partition": None,
    "partition_method": "metis",
    "objective": "vol",
    "balance": "nodes",
    "partition_seed": 0,
    "device": "cpu",
    "dtype": "float32",
    "aggregator": "plain",
}
"""Other options that change what is trained, each as it stands by default: only what differs is told."""

Progress = Callable[[str], None]


class Prediction(NamedTuple):
    """Seconds per iteration: the mean, its 90 % interval, and the slowest worker's phases by the names of PHASES."""

    iteration_s: float
    low_s: float
    high_s: float
    phases: Mapping[str, float]

    @classmethod
    def of(cls, result: Result, low_s: float, high_s: float) -> Prediction:
        """A result with its interval."""
        metrics = result.metrics
        phases = (metrics.compute_s, metrics.exposed_comm_s, metrics.exposed_other_s)
        return cls(metrics.iteration_s, low_s, high_s, dict(zip(PHASES, phases, strict=True)))


def simulated(scenario: Scenario) -> Prediction:
    """A simulation at the stated values. Its interval leaves out the ranges of assumptions."""
    result = simulate_scenario(scenario, open_source(scenario))
    return Prediction.of(result, result.low_s, result.high_s)


@dataclass(frozen=True, slots=True)
class RunCheck:
    """One run. Seconds per iteration; phases: of the slowest worker, measured and predicted, by the names of PHASES.

    setting: graph and cluster, within which configurations compete; configuration: the method and its knobs.
    low_s, high_s: the 90 % interval. outside: settings beyond those the calibration saw.
    """

    run: str
    setting: str
    configuration: str
    measured_s: float
    predicted_s: float
    low_s: float
    high_s: float
    measured: Mapping[str, float]
    predicted: Mapping[str, float]
    outside: tuple[str, ...]

    @property
    def error(self) -> float:
        """Signed: (predicted - measured) / measured."""
        return self.predicted_s / self.measured_s - 1.0

    @property
    def covered(self) -> bool:
        """Whether the interval holds the measurement."""
        return self.low_s <= self.measured_s <= self.high_s

    def phase_error(self, phase: str) -> float:
        """Signed error of a phase as a share of the measured iteration."""
        return (self.predicted[phase] - self.measured[phase]) / self.measured_s


def judge(
    folders: Sequence[str | Path],
    calibration: str | Path | None,
    *,
    measured: Sequence[str | Path] = (),
    progress: Progress = lambda _: None,
    processes: int = 1,
    predict: Callable[[Scenario], Prediction] = simulated,
) -> tuple[list[RunCheck], list[str]]:
    """Every run in `folders` with its prediction, in that order; and warnings.

    measured: files of compute times (`gcnsim.measured_compute/3`), or folders of them; each run is predicted by the one
    of its graph and parts. Runs on cores need them. predict: can be sent to another process. Raises FileError for a
    folder without a finished, recorded run, and for a run that the calibration used.
    """
    record = None if calibration is None else read_calibration(calibration)
    runs = [read_recorded_run(folder) for folder in folders]
    if not runs:
        raise ScenarioError("--runs: no run folder given; allowed: folders that runtime.train wrote")
    if again := first_repeat(runs):
        raise FileError(f"--runs: a run is given twice, as {again[0].path} and {again[1].path}; allowed: each once")
    warnings = [warning for run in runs for warning in _held_out(run, record)]
    files = [measured_compute(path) for path in measured_files(measured)]
    refuse_unmeasured(runs, files)
    requested = [scenario_of(run, None if calibration is None else str(calibration), files) for run in runs]
    for run, scenario in zip(runs, requested, strict=True):
        answering(scenario)
        refuse_other_trace(run, scenario)
    warnings += [note for run in runs for note in trace_notes(run)]
    unique = list(dict.fromkeys(requested))
    progress(f"predicting {len(unique)} configurations of {len(runs)} runs")
    found = dict(zip(unique, parallel_map(predict, unique, processes), strict=True))
    judged = [_judged(run, found[scenario], record) for run, scenario in zip(runs, requested, strict=True)]
    return judged, list(dict.fromkeys(warnings))


def setting_of(run: RecordedRun) -> str:
    """Graph, model and cluster of a run, in words."""
    place = run.place
    widths = "-".join(map(str, run.widths))
    where = f"{plural(run.workers, 'worker')} on one machine"
    if place is not None:
        where = f"{place['hosts']} x {place['workers_per_host']} at {float(place['bandwidth']) * 8e-6:g} Mbit/s"
        where += f", latency {float(place['latency_s']) * 1e3:g} ms" if place["latency_s"] else ""
    if run.accelerator is not None:
        where += f" with {run.accelerator['name']}"
        slow, others = run.accelerator.get("slow_worker"), run.accelerator.get("background")
        where += "" if slow is None else f", worker {slow} {run.accelerator['slow_factor']:g} times as slow"
        where += f", {others * 8e-6:g} Mbit/s of others" if others else ""
    return f"{run.graph['name']}, {run.options['model']} {widths}, {where}"


def configuration_of(run: RecordedRun) -> str:
    """Method, knobs and what else of the options decides what happens, in words: equal for repeats only."""
    options = run.options
    words = [str(options["method"]), *(f"{name} {value}" for name, value in options["knobs"].items() if name in SHOWN)]
    others = {name: value for name, value in options["knobs"].items() if name not in SHOWN and value != USUAL.get(name)}
    words += [f"{name} {value}" for name, value in others.items()]
    if options["overlap"] != "central":
        words.append("no overlap")
    words += [f"{name} {options[name]}" for name, usual in TRAINED.items() if options.get(name, usual) != usual]
    return ", ".join(words)


def _judged(run: RecordedRun, found: Prediction, record: Calibration | None) -> RunCheck:
    return RunCheck(
        run=run.path.name,
        setting=setting_of(run),
        configuration=configuration_of(run),
        measured_s=run.iteration_s,
        predicted_s=found.iteration_s,
        low_s=found.low_s,
        high_s=found.high_s,
        measured=run.phases,
        predicted=found.phases,
        outside=() if record is None else outside(run, record),
    )


def outside(run: RecordedRun, record: Calibration) -> tuple[str, ...]:
    """The settings of `run` that the calibration never saw or that are beyond its ranges, in words."""
    return tuple(beyond(run.settings, record.ranges, run.graph["name"]))


def _held_out(run: RecordedRun, record: Calibration | None) -> list[str]:
    """Refuse a run that the calibration used; warnings about its links, machine and versions."""
    found = [*link_notes(run), *session_notes(run), *quota_notes(run)]
    if record is None:
        return found
    if record.used(run.sha256):
        raise FileError(f"{run.path}: the calibration used this run; allowed: runs it has not seen")
    for name in ("cpu", "cores"):
        if run.hardware.get(name) != record.machine.get(name):
            found.append(f"{run.path}: {name} {run.hardware.get(name)}, calibrated on {record.machine.get(name)}")
    return [*found, *version_notes(run, record.versions, "calibrated")]


def summarise(judged: Sequence[RunCheck]) -> dict[str, Any]:
    """Errors over runs: mean, median, 90th percentile and largest absolute relative error, signed mean (bias).

    phases: mean signed and 90th percentile absolute error of each, as shares of the iteration. kendall: rank agreement
    of configurations within their settings, tau-a over all their pairs; regret: how much slower than the measured best
    the predicted best was, mean and largest over settings (both None where no setting has two configurations).
    coverage: share of runs within their interval. spread: how far repeats are from their mean.
    """
    errors = np.array([run_check.error for run_check in judged])
    size = np.abs(errors)
    return {
        "runs": len(judged),
        "configurations": len({(run_check.setting, run_check.configuration) for run_check in judged}),
        "mape": float(size.mean()),
        "median_ape": float(np.median(size)),
        "p90_ape": float(np.percentile(size, 90)),
        "max_ape": float(size.max()),
        "bias": float(errors.mean()),
        "phases": {phase: _phase(judged, phase) for phase in PHASES},
        "kendall": kendall(judged),
        "regret": regret(judged),
        "coverage": coverage(judged),
        "spread": spread(judged),
    }


def by_configuration(judged: Sequence[RunCheck]) -> dict[str, dict[str, tuple[float, float]]]:
    """Per setting and configuration, mean measured and predicted seconds of its repeats."""
    groups: dict[str, dict[str, list[RunCheck]]] = defaultdict(lambda: defaultdict(list))
    for run_check in judged:
        groups[run_check.setting][run_check.configuration].append(run_check)
    return {
        setting: {
            name: (
                float(np.mean([repeat.measured_s for repeat in repeats])),
                float(np.mean([repeat.predicted_s for repeat in repeats])),
            )
            for name, repeats in found.items()
        }
        for setting, found in groups.items()
    }


def kendall(judged: Sequence[RunCheck]) -> float | None:
    """(concordant - discordant) / pairs, over pairs of configurations of one setting."""
    signs = [
        np.sign(a[0] - b[0]) * np.sign(a[1] - b[1])
        for found in by_configuration(judged).values()
        for a, b in combinations(found.values(), 2)
    ]
    return float(np.mean(signs)) if signs else None


def regret(judged: Sequence[RunCheck]) -> dict[str, float] | None:
    """Measured time of the predicted best over the measured best, minus one."""
    lost = []
    for found in by_configuration(judged).values():
        if len(found) > 1:
            chosen = min(found.values(), key=lambda pair: pair[1])
            lost.append(chosen[0] / min(pair[0] for pair in found.values()) - 1.0)
    return {"mean": float(np.mean(lost)), "max": float(np.max(lost))} if lost else None


def coverage(judged: Sequence[RunCheck]) -> float:
    """Share of the runs within their interval."""
    return float(np.mean([run_check.covered for run_check in judged]))


def spread(judged: Sequence[RunCheck]) -> dict[str, float] | None:
    """Relative distance of repeated runs from their configuration's mean."""
    groups: dict[tuple[str, str], list[float]] = defaultdict(list)
    for run_check in judged:
        groups[run_check.setting, run_check.configuration].append(run_check.measured_s)
    far = [abs(value / np.mean(times) - 1.0) for times in groups.values() if len(times) > 1 for value in times]
    return {"mean": float(np.mean(far)), "p90": float(np.percentile(far, 90))} if far else None


def _phase(judged: Sequence[RunCheck], phase: str) -> dict[str, float]:
    errors = np.array([run_check.phase_error(phase) for run_check in judged])
    return {"bias": float(errors.mean()), "p90": float(np.percentile(np.abs(errors), 90))}


SCHEMA = "gcnsim.validation/1"

COLUMNS = (
    "run", "setting", "configuration", "measured_s", "predicted_s", "low_s", "high_s", "error", "covered",
    *(f"measured_{phase}_s" for phase in PHASES), *(f"predicted_{phase}_s" for phase in PHASES), "outside",
)  # fmt: skip


def payload(
    judged: Sequence[RunCheck],
    calibration: str | Path | None,
    warnings: Sequence[str],
    measured: Sequence[str | Path] = (),
) -> dict[str, Any]:
    """The figures over all runs, and a row for each run. measured: files of compute times that predictions rest on."""
    return {
        "schema": SCHEMA,
        **summarise(judged),
        "calibration": None if calibration is None else about(calibration),
        "measured_compute": [
            {"name": Path(path).name, "sha256": content_hash(path)} for path in measured_files(measured)
        ],
        "machine": {"system": platform.system(), "gcnsim": __version__},
        "warnings": list(warnings),
        "rows": [row_of(run_check) for run_check in judged],
    }


def about(calibration: str | Path) -> dict[str, Any]:
    """What a reader must know of the record that predictions rest on."""
    record = read_calibration(calibration)
    return {
        "name": Path(calibration).name,
        "sha256": content_hash(calibration),
        "machine": dict(record.machine),
        "inputs": {kind: sum(source.kind == kind for source in record.inputs) for kind in ("measurements", "run")},
        "error": record.error,
        "minutes": record.seconds / 60.0,
    }


def row_of(judged: RunCheck) -> dict[str, Any]:
    """One run as a flat row; keys are COLUMNS."""
    values = [judged.run, judged.setting, judged.configuration, judged.measured_s, judged.predicted_s, judged.low_s]
    values += [judged.high_s, judged.error, judged.covered]
    values += [judged.measured[phase] for phase in PHASES] + [judged.predicted[phase] for phase in PHASES]
    return dict(zip(COLUMNS, [*values, "; ".join(judged.outside)], strict=True))
