"""Build a calibration record from measurements and runs."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from math import isfinite
from pathlib import Path
from typing import Any, Final

import numpy as np

from gcnsim.core.errors import ScenarioError
from gcnsim.core.json_files import mistake, parse_json
from gcnsim.evidence.fit_gpu import fit_gpu, fit_links
from gcnsim.evidence.fit_runs import refine
from gcnsim.evidence.fitting import Laws, Measurements, read_measurements
from gcnsim.evidence.recorded_run import device_of, refuse_other_trace, scenario_of
from gcnsim.hardware import gpu_of
from gcnsim.hardware.profiles import CORE
from gcnsim.records.calibration import Calibration, Fitted, Source
from gcnsim.records.compute_facts import MeasuredCompute
from gcnsim.records.compute_reading import measured_compute as read_file
from gcnsim.records.compute_reading import measured_files
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

AGAIN: Final = "measure again, with more sizes or on a quieter machine"
QUIET: Final = 0.05
"""The most by which runs of one configuration differ on an otherwise idle machine."""

Progress = Callable[[str], None]


def calibrate(
    measurements: str | Path,
    runs: Sequence[str | Path] = (),
    *,
    measured_compute: Sequence[str | Path] = (),
    progress: Progress = lambda _: None,
    warn: Progress = lambda _: None,
    processes: int = 1,
) -> Calibration:
    """Figures of the machine that `measurements` were taken on, refined on `runs`; warn: hears what may mislead.

    measured_compute: files of runtime.measure, or folders of them: the kernels of the runs. Runs on cores need them.
    Raises FileError for an input that cannot be read, ScenarioError for one that does not fit: a GPU that the catalogue
    does not have, a run of another device or machine, a run given twice, times that no law can take.
    """
    progress(f"reading {measurements}")
    measured = read_measurements(measurements)
    device = _device(measured)
    files, recorded = _inputs(measured, device, runs, measured_compute)
    for run in recorded:
        versions = version_notes(run, measured.versions, "measured")
        for note in (*versions, *link_notes(run), *session_notes(run), *quota_notes(run), *trace_notes(run)):
            warn(note)
    laws = _laws(measured, device)
    record = Calibration(
        device=device,
        machine=measured.machine,
        versions=measured.versions,
        inputs=(
            Source("measurements", measured.path.name, measured.sha256),
            *(Source("run", run.path.name, run.sha256) for run in recorded),
            *(Source("measured_compute", Path(file.path).name, file.sha256) for file in files),
        ),
        figures=_figures(laws, device, recorded),
        curve=laws.curve,
        graphs={},
        residuals=tuple(laws.residuals),
        error=None,
        spread=None,
        beside_busy=_beside_busy(files),
        ranges=ranges(recorded),
        seconds=measured.seconds,
    )
    if not recorded:
        return record
    fitted = refine(record, recorded, progress, processes, files)
    if fitted.spread is not None and fitted.spread > QUIET:
        warn(
            f"--runs: runs of one configuration differ by {100 * fitted.spread:.0f} % (standard deviation), more than "
            f"{100 * QUIET:.0f} %: something else slowed the machine, and no prediction can be more accurate than that"
        )
    return fitted


def _inputs(
    measured: Measurements, device: str, runs: Sequence[str | Path], measured_compute: Sequence[str | Path]
) -> tuple[list[MeasuredCompute], list[RecordedRun]]:
    """The measured files and the runs. Raises FileError and ScenarioError for unusable ones."""
    if measured_compute and not runs:
        raise ScenarioError("--measured-compute: is for runs to fit to; allowed: with --runs")
    if (measured.links_only or device == CORE) and runs and not measured_compute:
        raise ScenarioError(
            f"{measured.path}: has links only, so runs need the times of their kernels; allowed: with "
            "--measured-compute (python -m runtime.measure)"
        )
    files = [read_file(path) for path in measured_files(measured_compute)]
    recorded = [read_recorded_run(run) for run in runs]
    for run in recorded:
        _refuse(run, measured, device, files)
    if again := first_repeat(recorded):
        raise ScenarioError(f"--runs: {again[1].path} is the same run as {again[0].path}; allowed: each once")
    return files, recorded


def _beside_busy(files: Sequence[MeasuredCompute]) -> bool | None:
    """Whether compute was measured beside busy cores; None where none was measured on cores.

    Raises ScenarioError where some was, and some alone.
    """
    on_cores = [file for file in files if not file.on_gpu]
    kinds = {file.beside_busy: file.path for file in on_cores}
    if len(kinds) > 1:
        raise ScenarioError(
            f"--measured-compute: {kinds[True]} was measured with the other cores busy, {kinds[False]} with them "
            "idle; allowed: the same for all (runtime.measure --seconds 5 or more per setting)"
        )
    return next(iter(kinds), None)


def _refuse(run: RecordedRun, measured: Measurements, device: str, files: Sequence[MeasuredCompute]) -> None:
    """Raise ScenarioError for a run of another machine or device, and for one with a trace of another device."""
    machine = measured.machine
    for ran, was, what in (
        (run.hardware["cpu"], machine["cpu"], ""),
        (run.hardware["cores"], machine["cores"], " cores"),
        (device_of(run), device, ""),
    ):
        if ran != was:
            raise ScenarioError(f"{run.path}: ran on {ran}{what}, but {was}{what} was measured")
    refuse_other_trace(run, scenario_of(run, measured=files))


def _laws(measured: Measurements, device: str) -> Laws:
    """The laws fitted to the measurements. Raises ScenarioError if nothing can be fitted or a figure is impossible."""
    try:
        with np.errstate(over="raise", divide="raise", invalid="raise"):
            laws = fit_links(measured) if measured.links_only or device == CORE else fit_gpu(measured, device)
    except (KeyError, ValueError, ArithmeticError) as error:
        raise ScenarioError(f"{measured.path}: cannot be fitted ({error}); {AGAIN}") from None
    parts = {"device": laws.device, "host": laws.host, "network": laws.network, "copies": laws.copies}
    document = {part: {name: asdict(figure) for name, figure in figures.items()} for part, figures in parts.items()}
    endless = [f"{part}.{name}" for part, figures in parts.items() for name, one in figures.items()
               if not isfinite(one.value)]  # fmt: skip
    wrong = f"{endless[0]} is not finite" if endless else None
    if wrong := wrong or mistake(parse_json(json.dumps(document), measured.path), "calibration", "figures"):
        raise ScenarioError(f"{measured.path}: cannot be fitted ({wrong}); {AGAIN}")
    return laws


def ranges(runs: Sequence[RecordedRun]) -> dict[str, tuple[float, float]]:
    """The lowest and highest value of each setting among `runs`."""
    found: dict[str, list[float]] = {}
    for run in runs:
        for name, value in run.settings.items():
            found.setdefault(name, []).append(value)
    return {name: (min(values), max(values)) for name, values in found.items()}


def _device(measured: Measurements) -> str:
    """The catalogue device that the kernels ran on."""
    if measured.device == "cuda":
        return gpu_of(measured.machine["gpus"], str(measured.path))
    if measured.device != "cpu":
        raise ScenarioError(f"{measured.path}: measured on {measured.device}; allowed: cpu, cuda")
    return CORE


def _figures(laws: Laws, device: str, runs: Sequence[RecordedRun]) -> dict[str, dict[str, Fitted]]:
    """The figures by part of the record. Copies are fitted for GPUs only; links between servers only for GPUs or
    emulation.
    """
    figures = {"device": laws.device, "host": laws.host, "network": laws.network}
    if device == CORE:
        emulated = _network(
            [run.emulation for run in runs], "payload through the emulated links, measured before each run"
        )
        return figures | {"network": laws.network | emulated}
    carried = _network([run.place for run in runs], "payload between the runs' servers, measured before them")
    return figures | {"network": laws.network | carried, "copies": laws.copies}


def _network(places: Sequence[Mapping[str, Any] | None], reference: str) -> dict[str, Fitted]:
    """The share of a link's rate that payload reached."""
    shares = [
        float(place["measured"]) / float(place["bandwidth"])
        for place in places
        if place is not None and place.get("measured")
    ]
    return {"efficiency": Fitted(min(float(np.median(shares)), 1.0), reference)} if shares else {}
