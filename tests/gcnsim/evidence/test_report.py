"""The plain data of a validation."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gcnsim import __version__
from gcnsim.evidence.validation import COLUMNS, payload, summarise
from gcnsim.records.calibration import Source, content_hash, write_calibration
from gcnsim.timeline.breakdown import PHASES
from tests.gcnsim.evidence.made_calibration import MACHINE, calibration
from tests.gcnsim.evidence.made_validation import four

KEYS = {
    "runs", "mape", "median_ape", "p90_ape", "max_ape", "bias", "kendall", "regret", "coverage", "spread",
    "calibration", "machine",
}  # fmt: skip


def test_the_payload_has_every_figure() -> None:
    found = payload(four(), None, ["a: cpu X, calibrated on Y"])
    assert found.keys() >= KEYS
    assert found["schema"] == "gcnsim.validation/1"
    assert {name: found[name] for name in summarise(four())} == summarise(four())
    assert found["warnings"] == ["a: cpu X, calibrated on Y"]
    assert found["calibration"] is None
    assert found["machine"]["gcnsim"] == __version__
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_a_row_for_each_run() -> None:
    runs = four()
    for row, run in zip(payload(runs, None, [])["rows"], runs, strict=True):
        assert tuple(row) == COLUMNS
        assert (row["run"], row["measured_s"], row["error"], row["covered"]) == (
            run.run,
            run.measured_s,
            run.error,
            run.covered,
        )
        for phase in PHASES:
            assert row[f"measured_{phase}_s"] == run.measured[phase]
            assert row[f"predicted_{phase}_s"] == run.predicted[phase]
    assert payload(runs, None, [])["rows"][3]["outside"] == "tau 5 (calibrated: 0 to 2)"


def test_what_the_predictions_rest_on(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    inputs = (Source("measurements", "p", "ab"), Source("run", "a", "cd"), Source("run", "b", "ef"))
    write_calibration(path, calibration(inputs=inputs, error=0.03, seconds=90.0))
    found = payload(four(), path, [])["calibration"]
    assert (found["name"], found["sha256"]) == ("c.json", content_hash(path))
    assert (found["machine"], found["error"]) == (MACHINE, 0.03)
    assert found["inputs"] == {"measurements": 1, "run": 2}
    assert found["minutes"] == pytest.approx(1.5)
