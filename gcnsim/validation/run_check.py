"""Each recorded run beside its prediction, phase by phase."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gcnsim.breakdown import PHASES
from gcnsim.calibration_record.coverage import beyond
from gcnsim.calibration_record.record import Calibration, read_calibration
from gcnsim.errors import FileError, ScenarioError, plural
from gcnsim.evidence import CORE, device_of, refuse_other_kernels, refuse_other_trace, scenario_of
from gcnsim.hardware import PLAIN_KERNELS
from gcnsim.knobs import KNOBS, TRAINING_KNOBS
from gcnsim.measured_compute import measured_compute
from gcnsim.processes import parallel_map
from gcnsim.runs.notes import first_repeat, link_notes, quota_notes, session_notes, trace_notes, version_notes
from gcnsim.runs.recorded_run import RecordedRun, read_recorded_run
from gcnsim.scenario import Scenario
from gcnsim.simulation import study
from gcnsim.sources import open_source

SHOWN: Final = ("tau", "epsilon", "cache", "rate")
USUAL: Final = {knob.name: knob.default for knob in (*KNOBS.values(), *TRAINING_KNOBS)}
"""Knobs that stand where they do by default are not told."""

CATALOGUE: Final = f"the catalogue's {CORE}"
"""What predicts runs on cores where no record is given."""

TRAINED: Final[Mapping[str, object]] = {
    "norm": "none",
    "heads": 1,
    "bias": True,
    "sage_aggregator": "mean",
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


@dataclass(frozen=True, slots=True)
class RunCheck:
    """One run. Seconds per iteration; phases: of the slowest worker, measured and predicted, by the names of PHASES.

    setting: graph and cluster, within which configurations compete; configuration: the method and its knobs.
    low_s, high_s: the 90 % interval; None on CPU cores without a calibration, of which no error is known. outside:
    settings beyond those the calibration saw.
    """

    run: str
    setting: str
    configuration: str
    measured_s: float
    predicted_s: float
    low_s: float | None
    high_s: float | None
    measured: Mapping[str, float]
    predicted: Mapping[str, float]
    outside: tuple[str, ...]

    @property
    def error(self) -> float:
        """Signed: (predicted - measured) / measured."""
        return self.predicted_s / self.measured_s - 1.0

    @property
    def covered(self) -> bool | None:
        """Whether the interval holds the measurement; None without an interval."""
        if self.low_s is None or self.high_s is None:
            return None
        return self.low_s <= self.measured_s <= self.high_s

    def phase_error(self, phase: str) -> float:
        """Signed error of a phase as a share of the measured iteration."""
        return (self.predicted[phase] - self.measured[phase]) / self.measured_s


def judge(
    folders: Sequence[str | Path],
    calibration: str | Path | None,
    *,
    measured: Sequence[str | Path] = (),
    strict: bool = False,
    progress: Progress = lambda _: None,
    processes: int = 1,
) -> tuple[list[RunCheck], list[str]]:
    """Every run in `folders` with its prediction, in that order; and warnings.

    measured: files of compute times (`gcnsim.measured_compute/2`), each run is predicted by the one of its graph and
    parts. Raises FileError for a folder without a finished, recorded run, and for a run that the calibration used; with
    `strict` also for one from another machine or version, or with links that the simulator has no model of.
    """
    record = None if calibration is None else read_calibration(calibration)
    runs = [read_recorded_run(folder) for folder in folders]
    if not runs:
        raise ScenarioError("--runs: no run folder given; allowed: folders that runtime.train wrote")
    warnings = [warning for run in runs for warning in _held_out(run, record)]
    if strict and warnings:
        raise FileError(warnings[0])
    files = [measured_compute(str(path)) for path in measured]
    asked = [scenario_of(run, None if calibration is None else str(calibration), files) for run in runs]
    if again := first_repeat(runs):
        raise FileError(f"--runs: a run is given twice, as {again[0].path} and {again[1].path}; allowed: each once")
    known, source = (PLAIN_KERNELS, CATALOGUE) if record is None else (record.of_kernels, str(calibration))
    for run, scenario in zip(runs, asked, strict=True):
        if not files:
            refuse_other_kernels(run, known, source)
        refuse_other_trace(run, scenario)
    warnings += [note for run in runs for note in trace_notes(run)]
    unique = list(dict.fromkeys(asked))
    progress(f"predicting {len(unique)} configurations of {len(runs)} runs")
    found = dict(zip(unique, parallel_map(_predicted, unique, processes), strict=True))
    known_error = record is not None or bool(files)
    judged = [_judged(run, found[scenario], record, known_error) for run, scenario in zip(runs, asked, strict=True)]
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


def _predicted(scenario: Scenario) -> tuple[float, float, float, dict[str, float]]:
    result = study(scenario, open_source(scenario))
    metrics = result.metrics
    phases = (metrics.compute_s, metrics.exposed_comm_s, metrics.exposed_other_s)
    return metrics.iteration_s, result.low_s, result.high_s, dict(zip(PHASES, phases, strict=True))


def _judged(
    run: RecordedRun,
    found: tuple[float, float, float, dict[str, float]],
    record: Calibration | None,
    known_error: bool,
) -> RunCheck:
    predicted, low, high, phases = found
    unknown = not known_error and device_of(run) == CORE
    return RunCheck(
        run=run.path.name,
        setting=setting_of(run),
        configuration=configuration_of(run),
        measured_s=run.iteration_s,
        predicted_s=predicted,
        low_s=None if unknown else low,
        high_s=None if unknown else high,
        measured=run.phases,
        predicted=phases,
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
