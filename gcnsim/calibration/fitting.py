"""What the fit of every law needs: measured points, coefficients by least squares, and how far a law is off."""

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
"""Which of some measurements count: `near` or `far`."""

Found: TypeAlias = tuple[dict[str, Fitted], list[Residual]]
"""Figures by name, and how well their laws fit."""

Shares: TypeAlias = tuple[tuple[float, float], ...]
"""Efficiency by size, as (bytes, share) pairs, sizes ascending."""

NEAR_BY = 17e6
"""Bytes touched between two uses of a row up to which kernels are taken to find it in the last cache: the least
distance of the benchmarks, rounded up to whole buffers."""

FAR_OFF = 100e6
"""Such bytes from which they are taken to find it in memory."""

STEP = 4.0
"""Sizes of the SpMM curve lie within a factor of this of its points."""


@dataclass
class Laws:
    """Figures found so far, by part of the record, and how well each law fits. copies: of GPUs alone. far_passes,
    far_launch: how many times as long elementwise passes and launches take from memory; None: not measured."""

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
    """Non-negative coefficients of seconds as a sum of terms, every point's relative error weighing alike."""
    from scipy.optimize import nnls

    found, _ = nnls(np.stack(terms, axis=1) / seconds[:, None], np.ones(seconds.shape))
    # A rate must be finite: what cannot be told from nothing takes a thousandth of the smallest point.
    least = 1e-3 * float(seconds.min())
    return [max(float(value), least / float(term.max())) for value, term in zip(found, terms, strict=True)]


def mean(values: Values) -> float:
    """Geometric: twice too much and twice too little weigh alike."""
    return float(np.exp(np.mean(np.log(np.asarray(values, dtype=np.float64)))))


def curve_of(sizes: Values, shares: Values) -> Shares:
    """The mean share near each of some sizes, STEP apart from the smallest one."""
    where, share = np.log(np.array(sizes)), np.array(shares)
    points = np.arange(where.min(), where.max() + 1e-9, np.log(STEP))
    return tuple(
        (float(np.exp(point)), mean(share[near]))
        for point in points
        if (near := np.abs(where - point) <= np.log(STEP) / 1.5).any()
    )


def every(measured: Measurements, kernel: str) -> list[Measurement]:
    """The measurements of a kernel. Raises ScenarioError where there is none."""
    return _there(measured, kernel, measured.of(kernel))


def single(measured: Measurements, kernel: str) -> list[Measurement]:
    """Those of one process by itself. Raises ScenarioError where there is none."""
    return _there(measured, kernel, [item for item in measured.of(kernel) if item.processes == 1])


def near(found: Sequence[Measurement]) -> list[Measurement]:
    """Those whose rows are in the last cache; all where distances were not measured."""
    return [measurement for measurement in found if measurement.params.get("apart", 0.0) <= NEAR_BY] or list(found)


def far(found: Sequence[Measurement]) -> list[Measurement]:
    """Those whose rows come from memory."""
    return [measurement for measurement in found if measurement.params.get("apart", 0.0) >= FAR_OFF]


def slower_far(found: Sequence[Measurement]) -> float | None:
    """How many times as long kernels take from memory as in the last cache: the mean over those measured in both, at
    least 1; None where none was."""

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
    """Figures of a host by what was measured near; by what was measured far too, where `kernel` and maps were."""
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
