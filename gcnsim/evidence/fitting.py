"""Shared tools of the fits: measured points, least-squares coefficients, and the error of a law."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gcnsim.core.errors import ScenarioError
from gcnsim.core.ids import FloatArray
from gcnsim.records.calibration import Fitted, Residual
from gcnsim.records.measurements import Measurement, Measurements

Values: TypeAlias = Sequence[float] | NDArray[Any]

Shares: TypeAlias = tuple[tuple[float, float], ...]
"""Efficiency by size, as (bytes, share) pairs in ascending order of size."""

STEP = 4.0
"""Sizes of the SpMM curve lie within this factor of its points."""


@dataclass
class Laws:
    """Figures found so far, by part of the record, and how well each law fits. copies: of GPUs alone."""

    device: dict[str, Fitted] = field(default_factory=dict)
    host: dict[str, Fitted] = field(default_factory=dict)
    network: dict[str, Fitted] = field(default_factory=dict)
    copies: dict[str, Fitted] = field(default_factory=dict)
    curve: Shares = ()
    residuals: list[Residual] = field(default_factory=list)


def residual(term: str, predicted: Values, seconds: Values) -> Residual:
    """How well `predicted` fits `seconds`."""
    error = np.asarray(predicted) / np.asarray(seconds) - 1.0
    size = np.abs(error)
    return Residual(term, error.size, float(size.mean()), float(np.percentile(size, 90)), float(error.mean()))


def coefficients(seconds: FloatArray, *terms: FloatArray) -> list[float]:
    """Non-negative coefficients of seconds as a sum of terms, with equal weight on every point's relative error."""
    from scipy.optimize import nnls

    found, _ = nnls(np.stack(terms, axis=1) / seconds[:, None], np.ones(seconds.shape))
    # A rate must be finite: a coefficient indistinguishable from zero becomes a thousandth of the smallest point.
    least = 1e-3 * float(seconds.min())
    return [max(float(value), least / float(term.max())) for value, term in zip(found, terms, strict=True)]


def mean(values: Values) -> float:
    """The geometric mean, which weights a factor of two up or down equally."""
    return float(np.exp(np.mean(np.log(np.asarray(values, dtype=np.float64)))))


def curve_of(sizes: Values, shares: Values) -> Shares:
    """The mean share near each of several sizes, which are a factor of STEP apart."""
    where, share = np.log(np.array(sizes)), np.array(shares)
    points = np.arange(where.min(), where.max() + 1e-9, np.log(STEP))
    return tuple(
        (float(np.exp(point)), mean(share[near]))
        for point in points
        if (near := np.abs(where - point) <= np.log(STEP) / 1.5).any()
    )


def every(measured: Measurements, kernel: str) -> list[Measurement]:
    """The measurements of a kernel. Raises ScenarioError if there is none."""
    return _there(measured, kernel, measured.of(kernel))


def single(measured: Measurements, kernel: str) -> list[Measurement]:
    """The single-process measurements of a kernel. Raises ScenarioError if there is none."""
    return _there(measured, kernel, [item for item in measured.of(kernel) if item.processes == 1])


def _there(measured: Measurements, kernel: str, found: list[Measurement]) -> list[Measurement]:
    if not found:
        again = "runtime.measure --links" if measured.links_only else "runtime.profile"
        raise ScenarioError(f"{measured.path}: has no kernel {kernel!r}; python -m {again} measures it")
    return found
