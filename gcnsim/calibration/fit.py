"""A calibration record from measurements and runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from gcnsim.calibration.laws import fit_laws
from gcnsim.calibration.runs import refine
from gcnsim.errors import ScenarioError
from gcnsim.record import (
    Calibration,
    Fitted,
    RecordedRun,
    Source,
    read_measurements,
    read_recorded_run,
)

DEVICE = "cpu-core"

Progress = Callable[[str], None]


def calibrate(
    measurements: str | Path,
    runs: Sequence[str | Path] = (),
    *,
    progress: Progress = lambda _: None,
    processes: int = 1,
) -> Calibration:
    """Figures of the machine that `measurements` were taken on, refined on `runs`.

    Raises FileError for an input that cannot be read, ScenarioError for one that does not fit: another device, a run
    of another machine.
    """
    progress(f"reading {measurements}")
    measured = read_measurements(measurements)
    if measured.device != "cpu":
        raise ScenarioError(
            f"{measurements}: measured on {measured.device}; allowed: cpu (GPUs cannot be calibrated yet)"
        )
    recorded = [read_recorded_run(run) for run in runs]
    for run in recorded:
        if run.hardware.get("cpu") != measured.machine.get("cpu"):
            raise ScenarioError(
                f"{run.path}: ran on {run.hardware.get('cpu')}, measured was {measured.machine.get('cpu')}"
            )
    try:
        laws = fit_laws(measured)
    except (KeyError, ValueError, ZeroDivisionError) as error:
        raise ScenarioError(
            f"{measurements}: cannot be fitted ({error}); take a profile with --quick or more"
        ) from None
    record = Calibration(
        device=DEVICE,
        machine=measured.machine,
        versions=measured.versions,
        inputs=(
            Source("measurements", measured.path.name, measured.sha256),
            *(Source("run", run.path.name, run.sha256) for run in recorded),
        ),
        figures={"device": laws.device, "host": laws.host, "network": laws.network | _network(recorded)},
        curve=laws.curve,
        graphs={},
        residuals=tuple(laws.residuals),
        error=None,
        spread=None,
        ranges=ranges(recorded),
        seconds=measured.seconds,
    )
    return refine(record, recorded, progress, processes) if recorded else record


def ranges(runs: Sequence[RecordedRun]) -> dict[str, tuple[float, float]]:
    """Lowest and highest value of each setting among `runs`."""
    found: dict[str, list[float]] = {}
    for run in runs:
        for name, value in run.settings.items():
            found.setdefault(name, []).append(value)
    return {name: (min(values), max(values)) for name, values in found.items()}


def _network(runs: Sequence[RecordedRun]) -> dict[str, Fitted]:
    """The share of an emulated link's rate that payload reached, measured before the runs."""
    shares = [
        float(run.emulation["measured"]) / float(run.emulation["bandwidth"])
        for run in runs
        if run.emulation is not None and run.emulation.get("measured")
    ]
    if not shares:
        return {}
    share = min(float(np.median(shares)), 1.0)
    return {"efficiency": Fitted(share, "payload through the emulated links, measured before each run")}
