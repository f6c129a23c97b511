"""The law of GraphSAGE's pooling, fitted to made-up matrices: what its entries, their rows and the result cost."""

from __future__ import annotations

from typing import Final

import numpy as np

from gcnsim.calibration.fitting import Laws, residual
from gcnsim.calibration.sums import solved
from gcnsim.calibration_record.measurements import Measurement, Measurements
from gcnsim.cost import pooling_terms
from gcnsim.hardware import POOLING_TERMS, PoolingFigures
from gcnsim.ids import FloatArray

PASSES: Final = ("pool", "pool_backward")


def fit_pooling(laws: Laws, measured: Measurements) -> None:
    """Seconds of each of POOLING_TERMS; nothing where the measurements have too little of it.

    Only beside learnt maps: records have all that older profiles lack, or none of it.
    """
    if laws.maps is None:
        return
    found = {}
    for kernel in PASSES:
        points = [item for item in measured.of(kernel) if item.processes == 1]
        if len(points) < len(POOLING_TERMS):
            return
        seconds, terms = np.array([point.seconds for point in points]), np.array([_terms(point) for point in points])
        per_term, _ = solved(terms, seconds)
        found[kernel] = dict(zip(POOLING_TERMS, per_term.tolist(), strict=True))
        laws.residuals.append(residual(kernel.replace("_", " "), terms @ per_term, seconds))
    laws.pooling = PoolingFigures(*(found[kernel] for kernel in PASSES))


def _terms(measurement: Measurement) -> FloatArray:
    facts = measurement.params
    found = pooling_terms(facts["entries"], facts["columns"], facts["rows"], int(facts["width"]))
    return np.array([float(term) for term in found])
