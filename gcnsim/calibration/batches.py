"""Figures of mini-batches on a core: drawing them, their matrices, picking their rows out of memory."""

from __future__ import annotations

import numpy as np

from gcnsim.calibration.fitting import Laws, coefficients, mean, residual, single
from gcnsim.calibration_record.measurements import Measurements
from gcnsim.calibration_record.record import Fitted
from gcnsim.cost.device import VALUE


def fit_batches(laws: Laws, measured: Measurements) -> None:
    """Seconds per entry looked at, drawn and built, and of each batch; nothing of profiles that measured none."""
    if not measured.of("draw_batch"):
        return
    draws, builds, matrices = (single(measured, name) for name in ("draw_batch", "build_batch", "batch_matrix"))
    looked = np.array([each.params["looked"] for each in draws])
    drawn = np.array([each.params["drawn"] for each in draws])
    entries = np.array([each.params["entries"] for each in builds])
    drawing = np.array([each.seconds for each in draws])
    building = np.array([each.seconds for each in builds])
    per_looked, per_drawn, each_draw = coefficients(drawing, looked, drawn, np.ones(drawing.shape))
    per_entry, each_build = coefficients(building, entries, np.ones(building.shape))
    laws.host["batch_s"] = Fitted(each_draw + each_build, "drawing and building a mini-batch, whatever its size")
    laws.host["batch_looked_per_s"] = Fitted(1.0 / per_looked, "drawing mini-batches, per entry looked at")
    laws.host["batch_drawn_per_s"] = Fitted(1.0 / per_drawn, "drawing mini-batches, per neighbour drawn")
    laws.host["batch_built_per_s"] = Fitted(1.0 / per_entry, "rows of mini-batches, per entry")
    told = looked * per_looked + drawn * per_drawn + each_draw
    laws.residuals.append(residual("drawing of mini-batches", told, drawing))
    laws.residuals.append(residual("rows of mini-batches", entries * per_entry + each_build, building))
    sizes = np.array([each.params["entries"] for each in matrices])
    turned = sizes * np.array([each.params["turned"] for each in matrices])
    seconds = np.array([each.seconds for each in matrices])
    per_stored, per_turned, each_made = coefficients(seconds, sizes, turned, np.ones(seconds.shape))
    laws.host["batch_stored_per_s"] = Fitted(1.0 / per_stored, "matrices of mini-batches, per entry")
    laws.host["batch_turned_per_s"] = Fitted(1.0 / per_turned, "their transposes, per entry")
    laws.host["batch_matrix_s"] = Fitted(each_made, "matrices of mini-batches, each")
    laws.residuals.append(
        residual("matrices of mini-batches", sizes * per_stored + turned * per_turned + each_made, seconds)
    )
    loads = single(measured, "load_rows")
    nbytes = np.array([VALUE * each.params["rows"] * each.params["width"] for each in loads])
    taken = np.array([each.seconds for each in loads])
    rate = mean(nbytes / taken)
    laws.host["gather_bandwidth"] = Fitted(rate, "input rows of mini-batches picked out of memory")
    laws.residuals.append(residual("input rows of mini-batches", nbytes / rate, taken))
