"""Figures of mini-batches on a core: drawing them, their matrices, picking their rows out of memory."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gcnsim.calibration.fitting import Chosen, Found, Laws, coefficients, mean, residual, single, tell_host
from gcnsim.calibration_record.measurements import Measurement, Measurements
from gcnsim.calibration_record.record import Fitted
from gcnsim.cost.device import VALUE
from gcnsim.ids import FloatArray


def fit_batches(laws: Laws, measured: Measurements) -> None:
    """Seconds per entry looked at, drawn and built, of each batch and of rows loaded; nothing where none were measured.

    Where they were measured on what comes from memory too, the same of that.
    """
    if not measured.of("draw_batch"):
        return
    tell_host(laws, single(measured, "draw_batch"), lambda chosen: _figures(measured, chosen))


def _figures(measured: Measurements, chosen: Chosen) -> Found:
    figures, residuals = _drawn(measured, chosen)
    for more, others in (_matrices(measured, chosen), _loaded(measured, chosen)):
        figures |= more
        residuals += others
    return figures, residuals


def _drawn(measured: Measurements, chosen: Chosen) -> Found:
    draws, builds = (chosen(single(measured, name)) for name in ("draw_batch", "build_batch"))
    looked, drawn, entries = _amounts(draws, "looked"), _amounts(draws, "drawn"), _amounts(builds, "entries")
    drawing, building, rows = _seconds(draws), _seconds(builds), _amounts(draws, "rows")
    # Profiles of before do not say how many rows there are: nothing is told of them.
    per_looked, per_drawn, each_draw, row_drawn = _with_rows(drawing, rows, looked, drawn, np.ones(drawing.shape))
    per_entry, each_build, row_built = _with_rows(building, rows, entries, np.ones(building.shape))
    figures = {
        "batch_s": Fitted(each_draw + each_build, "drawing and building a mini-batch, whatever its size"),
        "batch_looked_per_s": Fitted(1.0 / per_looked, "drawing mini-batches, per entry looked at"),
        "batch_drawn_per_s": Fitted(1.0 / per_drawn, "drawing mini-batches, per neighbour drawn"),
        "batch_built_per_s": Fitted(1.0 / per_entry, "rows of mini-batches, per entry"),
    }
    if rows.any():
        figures["batch_row_s"] = Fitted(row_drawn + row_built, "drawing and building mini-batches, per row of a layer")
    content = looked * per_looked + drawn * per_drawn + each_draw + rows * row_drawn
    return figures, [
        residual("drawing of mini-batches", content, drawing),
        residual("rows of mini-batches", entries * per_entry + each_build + rows * row_built, building),
    ]


def _with_rows(seconds: FloatArray, rows: FloatArray, *terms: FloatArray) -> list[float]:
    """Coefficients of `terms` and of `rows`, where rows are known."""
    return coefficients(seconds, *terms, rows) if rows.any() else [*coefficients(seconds, *terms), 0.0]


def _matrices(measured: Measurements, chosen: Chosen) -> Found:
    made = chosen(single(measured, "batch_matrix"))
    sizes, seconds = _amounts(made, "entries"), _seconds(made)
    turned = sizes * _amounts(made, "turned")
    per_stored, per_turned, each_made = coefficients(seconds, sizes, turned, np.ones(seconds.shape))
    figures = {
        "batch_stored_per_s": Fitted(1.0 / per_stored, "matrices of mini-batches, per entry"),
        "batch_turned_per_s": Fitted(1.0 / per_turned, "their transposes, per entry"),
        "batch_matrix_s": Fitted(each_made, "matrices of mini-batches, each"),
    }
    content = sizes * per_stored + turned * per_turned + each_made
    return figures, [residual("matrices of mini-batches", content, seconds)]


def _loaded(measured: Measurements, chosen: Chosen) -> Found:
    loads = chosen(single(measured, "load_rows"))
    rows, seconds = _amounts(loads, "rows"), _seconds(loads)
    nbytes = VALUE * rows * _amounts(loads, "width")
    if not any("apart" in load.params for load in loads):
        # Profiles of before measured at one distance; their rows are told as they were.
        rate = mean(nbytes / seconds)
        content = nbytes / rate
        figures = {"gather_bandwidth": Fitted(rate, "input rows of mini-batches picked out of memory")}
        return figures, [residual("input rows of mini-batches", content, seconds)]
    per_byte, per_row, each_load = coefficients(seconds, nbytes, rows, np.ones(seconds.shape))
    figures = {
        "gather_bandwidth": Fitted(1.0 / per_byte, "input rows of mini-batches picked out of memory, per byte"),
        "load_row_s": Fitted(per_row, "the same, per row"),
        "load_s": Fitted(each_load, "the same, each time"),
    }
    content = nbytes * per_byte + rows * per_row + each_load
    return figures, [residual("input rows of mini-batches", content, seconds)]


def _amounts(found: Sequence[Measurement], name: str) -> FloatArray:
    return np.array([measurement.params.get(name, 0.0) for measurement in found])


def _seconds(found: Sequence[Measurement]) -> FloatArray:
    return np.array([measurement.seconds for measurement in found])
