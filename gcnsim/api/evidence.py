"""What predictions rest on: calibration, validation against runs, published tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gcnsim.api.simulation import made
from gcnsim.core.processes import cores
from gcnsim.planning.what_if import Progress
from gcnsim.records.calibration import Calibration, write_calibration
from gcnsim.scenario import Scenario

if TYPE_CHECKING:
    from gcnsim.evidence.validation import Prediction


def calibrate(
    measurements: str | Path,
    runs: Sequence[str | Path] = (),
    out: str | Path | None = None,
    progress: Progress = lambda _: None,
    processes: int | None = None,
    warn: Progress = lambda _: None,
    measured_compute: Sequence[str | Path] = (),
) -> Calibration:
    """Fit the figures of a machine to its micro-benchmarks, refined on recorded runs; write the record to `out`.

    measured_compute: files of runtime.measure; these compute times of the runs' parts replace fitted kernels. warn:
    called with a line for each thing that may mislead. Raises GcnsimError with one line: the field, its value, and what
    is allowed.
    """
    from gcnsim.evidence.fit import calibrate as fit

    record = fit(
        measurements,
        runs,
        measured_compute=measured_compute,
        progress=progress,
        warn=warn,
        processes=processes or cores(),
    )
    if out is not None:
        write_calibration(out, record)
    return record


def validate(
    runs: Sequence[str | Path],
    calibration: str | Path | None = None,
    *,
    measured_compute: Sequence[str | Path] = (),
    progress: Progress = lambda _: None,
    processes: int | None = None,
) -> dict[str, Any]:
    """Predict recorded runs and compare: plain data in the shape of the JSON schema `gcnsim.validation/1`.

    Intervals are those of `what_if` and `simulate`. measured_compute: files of runtime.measure; each run uses the file
    with its graph and parts. Raises GcnsimError.
    """
    from gcnsim.evidence.validation import judge, payload

    judged, warnings = judge(
        runs,
        calibration,
        measured=measured_compute,
        progress=progress,
        processes=processes or cores(),
        predict=_answered,
    )
    return payload(judged, calibration, warnings, measured_compute)


def _answered(scenario: Scenario) -> Prediction:
    """The answer to `scenario`; its interval holds the ranges of all assumptions."""
    from gcnsim.evidence.validation import Prediction
    from gcnsim.planning.study import Studies

    estimate = Studies(scenario).estimate(scenario, bounded=False)
    assert estimate.low_s is not None
    assert estimate.high_s is not None
    return Prediction.of(estimate.result, estimate.low_s, estimate.high_s)


def write_validation(folder: str | Path, payload: Mapping[str, Any]) -> None:
    """Write validation.md, .csv and .html into `folder`, which is created if needed. Raises FileError."""
    from gcnsim.report.evidence import write_validation

    write_validation(made(folder), payload)


def render_validation(payload: Mapping[str, Any]) -> str:
    """The text that the command line prints."""
    from gcnsim.report.evidence import render_validation

    return render_validation(payload)


def reproduce(
    published: str | Path | None = None,
    *,
    papers: Sequence[str] = (),
    progress: Progress = lambda _: None,
    processes: int | None = None,
) -> dict[str, Any]:
    """Predict every row of published tables: plain data in the shape of the JSON schema `gcnsim.reproduction/1`.

    published: a folder of published tables; None: those of the package. papers: only these; empty: all.
    Raises GcnsimError.
    """
    from gcnsim.evidence import published_facts, table_cells

    rows = published_facts.of_papers(
        published_facts.read_published(published_facts.SHIPPED if published is None else published), papers
    )
    cells = table_cells.reproduce(rows, progress=progress, processes=processes or cores())
    return table_cells.payload(cells)


def render_calibration(record: Calibration, path: str) -> str:
    """The text that the command line prints."""
    from gcnsim.report.evidence import render_calibration

    return render_calibration(record, path)
