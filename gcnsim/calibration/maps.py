"""The law of learnt maps, fitted to layers of many shapes, and what the loss takes by its number of classes."""

from __future__ import annotations

from typing import Final

import numpy as np

from gcnsim.calibration.fitting import Laws, residual, single
from gcnsim.calibration.sums import solved
from gcnsim.calibration_record.measurements import Measurement, Measurements
from gcnsim.cost.far import far_share
from gcnsim.cost.maps import PRODUCT, WEIGHT, map_terms
from gcnsim.hardware import MAP_TERMS, FarFigures, MapFigures
from gcnsim.ids import FloatArray

FEWEST: Final = 3 * len(MAP_TERMS)
"""Measured layers that tell the terms."""

CACHES: Final = (8e6, 12e6, 16e6, 24e6, 32e6, 48e6, 64e6)
"""Bytes of caches that are tried."""

MANY_ROWS: Final = 4_000
"""A loss over fewer says more of its calls."""

FEWEST_CLASSES: Final = 3


def fit_maps(laws: Laws, measured: Measurements) -> None:
    """Seconds of each of MAP_TERMS and of the loss; nothing where the measurements have too few shapes of either.

    Only beside attention: records have all that older profiles lack, or none of it.
    """
    maps = [*single(measured, "gemm"), *single(measured, "gemm_backward")]
    loss = _loss(measured)
    if laws.attention is None or len(maps) < FEWEST or len(loss) < FEWEST_CLASSES:
        return
    near, seconds = np.array([_terms(item) for item in maps]), np.array([item.seconds for item in maps])
    if laws.far_passes is None or any("apart" not in item.params for item in maps):
        found, _ = solved(near, seconds)
        laws.maps = MapFigures(dict(zip(MAP_TERMS, found.tolist(), strict=True)), loss)
        laws.residuals.append(residual("learnt maps", near @ found, seconds))
        return
    best: tuple[float, float, FloatArray, FloatArray] | None = None
    nbytes = near[:, MAP_TERMS.index("read_byte")] + near[:, MAP_TERMS.index("written_byte")]
    # A backward pass takes memory that it has just freed: it is measured at one distance, and no byte of it is far.
    nbytes = np.where([item.kernel == "gemm" for item in maps], nbytes, 0.0)
    for cache in CACHES:
        distant = nbytes * np.array([far_share(cache, item.params["apart"]) for item in maps])
        terms = np.concatenate([near, distant[:, None]], axis=1)
        found, error = solved(terms, seconds)
        if best is None or error < best[0]:
            best = error, cache, found, terms @ found
    assert best is not None
    _, cache, found, content = best
    *seconds_of, byte = found.tolist()
    laws.far = FarFigures(cache, byte, laws.far_passes, 1.0, laws.far_launch, {})
    laws.maps = MapFigures(dict(zip(MAP_TERMS, seconds_of, strict=True)), loss)
    laws.residuals.append(residual("learnt maps", content, seconds))


def _terms(measurement: Measurement) -> FloatArray:
    """Of a layer's forward pass; of its backward pass, with the gradient of its input where that was needed."""
    facts = measurement.params
    rows, d_in, d_out = facts["rows"], facts["d_in"], facts["d_out"]
    ahead, weight = np.zeros(len(PRODUCT)), np.zeros(len(WEIGHT))
    if measurement.kernel == "gemm":
        ahead = np.array(map_terms(rows, d_in, d_out))
    else:
        weight = np.array(map_terms(rows, d_in, d_out))
        ahead = facts["input_grad"] * np.array(map_terms(rows, d_out, d_in))
    return np.concatenate([ahead, weight])


def _loss(measured: Measurements) -> tuple[tuple[float, float], ...]:
    """(classes, seconds a row) of the loss, its gradient and the count of right answers, over many rows."""
    found: dict[float, float] = {}
    for name in ("loss", "loss_backward", "correct"):
        for measurement in single(measured, name):
            if measurement.params["rows"] >= MANY_ROWS:
                classes = measurement.params["classes"]
                found[classes] = found.get(classes, 0.0) + measurement.seconds / measurement.params["rows"]
    return tuple(sorted(found.items()))
