"""The law of graph attention, fitted to made-up matrices: what its entries and rows cost beside its products."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from gcnsim.calibration.fitting import Laws, residual
from gcnsim.calibration.sums import product_of, solved
from gcnsim.calibration_record.measurements import Measurement, Measurements
from gcnsim.cost import VALUE, attention_terms
from gcnsim.cost.sums import product_seconds
from gcnsim.hardware import ATTENTION_TERMS, NUMBA, AttentionFigures, SumFigures
from gcnsim.ids import FloatArray

PASSES: Final = {"attention": "spmm", "attention_backward": "spmm_t"}
"""Of each pass the kernel that a head's product is."""

LEAST: Final = 0.1
"""Share of a pass that is left for its entries at least, whatever its products take by their law."""


def fit_attention(laws: Laws, measured: Measurements) -> None:
    """Seconds of each of ATTENTION_TERMS; nothing where the measurements have no attention or products are unknown.

    Kernels of the runtime's own sum within the pass: all of it is then in the terms.
    """
    if laws.sums is None:
        return
    found = {}
    for kernel, product in PASSES.items():
        points = [item for item in measured.of(kernel) if item.processes == 1]
        if len(points) < len(ATTENTION_TERMS):
            return
        apart = measured.kernels.aggregator != NUMBA
        products = np.array([_products_s(laws.sums, point, product) if apart else 0.0 for point in points])
        seconds = np.array([point.seconds for point in points])
        terms = np.array([_terms(point) for point in points])
        per_term, _ = solved(terms, np.maximum(seconds - products, LEAST * seconds))
        found[kernel] = dict(zip(ATTENTION_TERMS, per_term.tolist(), strict=True))
        laws.residuals.append(residual(kernel.replace("_", " "), products + terms @ per_term, seconds))
    laws.attention = AttentionFigures(found["attention"], found["attention_backward"])


def _products_s(sums: SumFigures, measurement: Measurement, kernel: str) -> float:
    """Seconds of the products of all heads, whose rows were used in the pass before."""
    facts = dict(measurement.params)
    heads, width = facts["heads"], facts["width"]
    facts |= {"width": width / heads, "apart": VALUE * width * (facts["rows"] + facts["columns"])}
    return float(heads * product_seconds(sums, product_of(replace(measurement, kernel=kernel, params=facts))))


def _terms(measurement: Measurement) -> FloatArray:
    facts = measurement.params
    found = attention_terms(facts["entries"], facts["columns"], int(facts["heads"]), int(facts["width"]))
    return np.array([float(term) for term in found])
