"""Figures of mini-batches on a core come back from measurements that their laws give."""

from __future__ import annotations

from pathlib import Path

import pytest

from gcnsim.calibration import calibrate
from tests.gcnsim.calibration.made import measurements, point, write_measurements

FIGURES = {
    "batch_s": 3e-4,
    "batch_looked_per_s": 1e8,
    "batch_drawn_per_s": 1e7,
    "batch_built_per_s": 5e6,
    "batch_stored_per_s": 4e8,
    "batch_turned_per_s": 2e8,
    "batch_matrix_s": 1e-5,
    "gather_bandwidth": 3e9,
}


def test_figures_come_back(tmp_path: Path) -> None:
    told = measurements()
    for entries in (1_000, 20_000, 90_000):
        for looked, drawn in ((entries, entries), (8 * entries, 0)):
            told["measurements"] += [
                point("draw_batch", 1e-4 + looked / 1e8 + drawn / 1e7, looked=looked, drawn=drawn),
                point("build_batch", 2e-4 + entries / 5e6, entries=entries),
            ]
        for turned in (0, 1):
            seconds = 1e-5 + entries / 4e8 + turned * entries / 2e8
            told["measurements"].append(point("batch_matrix", seconds, entries=entries, turned=turned))
        told["measurements"].append(point("load_rows", entries * 64 * 4 / 3e9, rows=entries, width=64))
    found = calibrate(write_measurements(tmp_path / "p.json", told)).figures["host"]
    assert {name: found[name].value for name in FIGURES} == pytest.approx(FIGURES, rel=1e-6)


def test_a_profile_without_them_is_still_fitted(tmp_path: Path) -> None:
    assert not FIGURES.keys() & calibrate(write_measurements(tmp_path / "p.json")).figures["host"].keys()
