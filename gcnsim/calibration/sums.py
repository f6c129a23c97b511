"""The law of sums over neighbours, fitted to products of made-up matrices of known order."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product as combined
from typing import Final

import numpy as np

from gcnsim.calibration.fitting import Laws, residual, single
from gcnsim.calibration_record.measurements import Measurement, Measurements
from gcnsim.cost.sums import Product, terms
from gcnsim.hardware.profiles import TERMS, SumFigures
from gcnsim.ids import FloatArray
from gcnsim.partition.facts import REUSE_NAMES, TURNED_NAMES

FIRST: Final = (24e3, 32e3, 48e3, 64e3)
SECOND: Final = (256e3, 512e3, 1e6, 1.4e6, 2e6)
LAST: Final = (8e6, 16e6, 24e6, 32e6, 40e6, 64e6)
"""Bytes of caches that are tried."""

ROUNDS: Final = 6
"""Of the fit, each weighing points by how far the one before was off: a few odd times decide nothing."""

NEAR: Final = 0.05
"""Relative errors below this weigh alike."""


def fit_sums(laws: Laws, measured: Measurements) -> None:
    """Sizes of caches and seconds per thing done; nothing where the measurements do not tell the order of matrices.

    Of all sizes tried those stand whose non-negative coefficients leave the least mean error.
    """
    known = [item for name in ("spmm", "spmm_t") for item in single(measured, name) if "apart" in item.params]
    if len(known) < 2 * len(TERMS):
        return
    products = [product_of(item) for item in known]
    seconds = np.array([item.seconds for item in known])
    best: tuple[float, tuple[float, ...], FloatArray] | None = None
    for caches in combined(FIRST, SECOND, LAST):
        found, error = solved(terms_of(caches, products), seconds)
        if best is None or error < best[0]:
            best = error, caches, found
    assert best is not None
    _, chosen, found = best
    laws.sums = SumFigures(chosen, dict(zip(TERMS, found.tolist(), strict=True)))
    laws.residuals.append(residual("sums over neighbours", terms_of(chosen, products) @ found, seconds))


def product_of(measurement: Measurement) -> Product:
    """A measured product as the law sees it."""
    facts = measurement.params
    ahead, turned = ([facts[name] for name in names] for names in (REUSE_NAMES, TURNED_NAMES))
    rows = facts["rows"]
    if measurement.kernel == "spmm_t":
        ahead, turned, rows = turned, ahead, facts["columns"]
    apart = facts["apart"]
    return Product(facts["entries"], rows, int(facts["width"]), np.array(ahead), np.array(turned), apart, apart)


def terms_of(caches: tuple[float, ...], products: Sequence[Product]) -> FloatArray:
    """What each product has of each term, float64[n, TERMS]."""
    return np.array([[float(term) for term in terms(caches, product)] for product in products])


def solved(what: FloatArray, seconds: FloatArray) -> tuple[FloatArray, float]:
    """Non-negative coefficients, and the mean absolute log error: least squares of errors relative to both sides."""
    from scipy.optimize import nnls

    weight = 1.0 / seconds
    found, error = np.zeros(what.shape[1]), np.inf
    for _ in range(ROUNDS):
        found, _ = nnls(what * weight[:, None], seconds * weight)
        content = np.maximum(what @ found, 1e-9)
        off = np.abs(np.log(content / seconds))
        error = float(off.mean())
        weight = 1.0 / np.sqrt(content * seconds * np.maximum(off, NEAR))
    return found, error
