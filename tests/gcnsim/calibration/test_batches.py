"""Figures of mini-batches on a core come back from measurements that their laws give."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gcnsim.calibration import calibrate
from gcnsim.calibration.batches import fit_batches
from gcnsim.calibration.fitting import Laws
from gcnsim.calibration_record.measurements import read_measurements
from gcnsim.hardware import FarFigures
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
    "batch_row_s": 2e-8,
    "load_s": 2e-5,
    "load_row_s": 4e-8,
}
TERMS = (
    "drawing of mini-batches",
    "rows of mini-batches",
    "matrices of mini-batches",
    "input rows of mini-batches",
)


def measured_of(figures: dict[str, float], apart: float) -> Iterator[dict[str, Any]]:
    """What a profile says of a machine with these figures, `apart` bytes between two calls."""
    more: dict[str, Any] = {"apart": apart}
    each = {name: 1 / value if name.endswith("_per_s") else value for name, value in figures.items()}
    for entries, rows in ((1_000, 300), (20_000, 1_000), (90_000, 30_000)):
        for looked, drawn in ((entries, entries), (8 * entries, 0)):
            amounts: dict[str, Any] = {"rows": float(rows), **more} if each["batch_row_s"] else more
            seconds = each["batch_s"] / 3 + looked * each["batch_looked_per_s"] + drawn * each["batch_drawn_per_s"]
            seconds += rows * each["batch_row_s"] / 4
            yield point("draw_batch", seconds, looked=looked, drawn=drawn, **amounts)
            seconds = each["batch_s"] * 2 / 3 + entries * each["batch_built_per_s"] + rows * each["batch_row_s"] * 3 / 4
            yield point("build_batch", seconds, entries=entries, **amounts)
        for turned in (0, 1):
            seconds = each["batch_matrix_s"] + entries * each["batch_stored_per_s"]
            seconds += turned * entries * each["batch_turned_per_s"]
            yield point("batch_matrix", seconds, entries=entries, turned=turned, **more)
        for width in (16, 64):
            seconds = each["load_s"] + entries * (each["load_row_s"] + width * 4 / each["gather_bandwidth"])
            yield point("load_rows", seconds, rows=entries, width=width, **more)


def test_figures_come_back(tmp_path: Path) -> None:
    document = measurements()
    document["measurements"] += measured_of(FIGURES, 8e6)
    found = calibrate(write_measurements(tmp_path / "p.json", document)).figures["host"]
    assert {name: found[name].value for name in FIGURES} == pytest.approx(FIGURES, rel=1e-6)


def test_profiles_that_do_not_count_rows_tell_nothing_of_them(tmp_path: Path) -> None:
    document = measurements()
    document["measurements"] += measured_of({**FIGURES, "batch_row_s": 0.0}, 8e6)
    found = calibrate(write_measurements(tmp_path / "p.json", document)).figures["host"]
    assert "batch_row_s" not in found
    assert found["batch_s"].value == pytest.approx(FIGURES["batch_s"], rel=1e-6)


def test_loads_of_profiles_that_know_no_distance_are_told_by_their_bytes(tmp_path: Path) -> None:
    document = measurements()
    for entry in measured_of(FIGURES, 8e6):
        del entry["params"]["apart"]
        document["measurements"].append(entry)
    loads = [measurement for measurement in document["measurements"] if measurement["kernel"] == "load_rows"]
    rates = [4 * load["params"]["rows"] * load["params"]["width"] / load["seconds"] for load in loads]
    found = calibrate(write_measurements(tmp_path / "p.json", document)).figures["host"]
    assert found["gather_bandwidth"].value == pytest.approx(float(np.exp(np.mean(np.log(rates)))))
    assert not {"load_s", "load_row_s"} & found.keys()


def test_figures_of_what_comes_from_memory_come_back_beside_them(tmp_path: Path) -> None:
    distant = {
        name: value / 2 if name.endswith(("_per_s", "bandwidth")) else 3 * value for name, value in FIGURES.items()
    }
    document = measurements()
    document["measurements"] += [*measured_of(FIGURES, 8e6), *measured_of(distant, 128e6)]
    read = read_measurements(write_measurements(tmp_path / "p.json", document))
    laws = Laws(far=FarFigures(3e7, 0.0, 1.5, 2.0, 2.5, {"draw_s": 1e-3}))
    fit_batches(laws, read)
    assert {name: laws.host[name].value for name in FIGURES} == pytest.approx(FIGURES, rel=1e-6)
    assert laws.far is not None
    assert laws.far.host == pytest.approx({**distant, "draw_s": 1e-3}, rel=1e-6)
    assert [residual.term for residual in laws.residuals][:5] == [*TERMS, f"{TERMS[0]}, from memory"]
    unknown = Laws()
    fit_batches(unknown, read)
    assert {name: unknown.host[name].value for name in FIGURES} == pytest.approx(FIGURES, rel=1e-6)
    assert unknown.far is None, "distances mean nothing where maps do not know them"


def test_a_profile_without_them_is_still_fitted(tmp_path: Path) -> None:
    assert not FIGURES.keys() & calibrate(write_measurements(tmp_path / "p.json")).figures["host"].keys()
