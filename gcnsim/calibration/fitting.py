"""Shared tools of the fits: measured points, least-squares coefficients, and the error of a law."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gcnsim.calibration_record.measurements import Measurement, Measurements
from gcnsim.calibration_record.record import Fitted, Residual
from gcnsim.errors import ScenarioError
from gcnsim.hardware import AttentionFigures, FarFigures, MapFigures, PoolingFigures, SumFigures
from gcnsim.ids import FloatArray

Values: TypeAlias = Sequence[float] | NDArray[Any]

Chosen: TypeAlias = Callable[[Sequence[Measurement]], list[Measurement]]
"""A function that selects measurements: `near` or `far`."""

Found: TypeAlias = tuple[dict[str, Fitted], list[Residual]]
"""Fitted figures by name, and the residuals of their laws."""

Shares: TypeAlias = tuple[tuple[float, float], ...]
"""Efficiency by size, as (bytes, share) pairs in ascending order of size."""

NEAR_BY = 17e6
"""Up to this reuse distance in bytes, kernels are assumed to find rows in the last-level cache.

It is the least distance of the benchmarks, rounded up to whole buffers.
"""

FAR_OFF = 100e6
"""From this reuse distance in bytes on, kernels are assumed to read rows from memory."""

STEP = 4.0
"""Sizes of the SpMM curve lie within this factor of its points."""


@dataclass
class Laws:
    """The figures fitted so far, by part of the record, with the residuals of each law.

    copies: for GPUs only. far_passes, far_launch: slowdown of elementwise passes and launches on data from memory; None
    if not measured.
    """

    device: dict[str, Fitted] = field(default_factory=dict)
    host: dict[str, Fitted] = field(default_factory=dict)
    network: dict[str, Fitted] = field(default_factory=dict)
    copies: dict[str, Fitted] = field(default_factory=dict)
    curve: Shares = ()
    sums: SumFigures | None = None
    attention: AttentionFigures | None = None
    maps: MapFigures | None = None
    pooling: PoolingFigures | None = None
    far_passes: float | None = None
    far_launch: float = 1.0
    far: FarFigures | None = None
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


def near(found: Sequence[Measurement]) -> list[Measurement]:
    """The measurements whose rows are in the last-level cache, or all if distances were not measured."""
    return [measurement for measurement in found if measurement.params.get("apart", 0.0) <= NEAR_BY] or list(found)


def far(found: Sequence[Measurement]) -> list[Measurement]:
    """The measurements whose rows come from memory."""
    return [measurement for measurement in found if measurement.params.get("apart", 0.0) >= FAR_OFF]


def slower_far(found: Sequence[Measurement]) -> float | None:
    """The slowdown of kernels on rows from memory instead of the last-level cache.

    The mean over kernels measured in both cases, at least 1; None if there is none.
    """

    def alike(measurement: Measurement) -> tuple[object, ...]:
        return measurement.kernel, *sorted(
            (name, value) for name, value in measurement.params.items() if name != "apart"
        )

    measurements = [measurement for measurement in found if "apart" in measurement.params]
    close = {
        alike(measurement): measurement.seconds
        for measurement in measurements
        if measurement.params["apart"] <= NEAR_BY
    }
    ratios = [
        measurement.seconds / close[alike(measurement)]
        for measurement in far(measurements)
        if alike(measurement) in close
    ]
    return max(mean(ratios), 1.0) if ratios else None


def tell_host(laws: Laws, kernel: Sequence[Measurement], figures: Callable[[Chosen], Found]) -> None:
    """Set a host's figures from cached data, and from data in memory if `kernel` was measured on it too."""
    found, residuals = figures(near)
    laws.host |= found
    laws.residuals += residuals
    if laws.far is None or not far(kernel):
        return
    found, residuals = figures(far)
    distant = {name: value.value for name, value in found.items()}
    laws.far = replace(laws.far, host={**laws.far.host, **distant})
    laws.residuals += [replace(residual, term=f"{residual.term}, from memory") for residual in residuals]


def _there(measured: Measurements, kernel: str, found: list[Measurement]) -> list[Measurement]:
    if not found:
        raise ScenarioError(f"{measured.path}: has no kernel {kernel!r}; python -m runtime.profile measures it")
    return found
