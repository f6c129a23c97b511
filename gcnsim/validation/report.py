"""The result of a validation as plain data: the JSON of `gcnsim validate` and the rows of its CSV."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gcnsim import __version__
from gcnsim.breakdown import PHASES
from gcnsim.calibration_record.record import content_hash, read_calibration
from gcnsim.validation.run_check import RunCheck
from gcnsim.validation.summary import summarise

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
        "measured_compute": [{"name": Path(path).name, "sha256": content_hash(path)} for path in measured],
        "machine": {"system": platform.system(), "gcnsim": __version__},
        "warnings": list(warnings),
        "rows": [row_of(each) for each in judged],
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
