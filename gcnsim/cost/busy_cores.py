"""A core beside busy ones: what its kernels lose there differs by what they need."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import sqrt

import numpy as np

from gcnsim.hardware import (
    NUMBA,
    AttentionFigures,
    DeviceProfile,
    Figure,
    MapFigures,
    PoolingFigures,
    SumFigures,
)
from gcnsim.ids import FloatArray


def with_busy_sums(device: DeviceProfile, ratio: float) -> DeviceProfile:
    """`device` with sums over neighbours slower, and dense products faster, by the root of `ratio` each.

    Sums, and what else brings rows of neighbours, read caches and memory that all cores share; dense products work on
    what the core's own caches hold. What kernels lose on average is the host's `busy_core_rate`, so the two factors are
    one another's inverse.
    """
    root = sqrt(ratio)
    sums, curve, maps, pooling = device.sums, device.spmm_curve, device.maps, device.pooling
    attention = device.attention
    if attention is not None and device.kernels.aggregator == NUMBA:
        # Its sums are among its terms.
        attention = AttentionFigures(*(_values(item, root) for item in (attention.forward, attention.backward)))
    if pooling is not None:
        pooling = PoolingFigures(*(_values(item, root) for item in (pooling.forward, pooling.backward)))
    return replace(
        device,
        gemm_efficiency=_times(device.gemm_efficiency, root),
        spmm_efficiency=_times(device.spmm_efficiency, 1.0 / root),
        spmm_curve=None if curve is None else replace(curve, values=tuple(value / root for value in curve.values)),
        maps=None if maps is None else _arithmetic(maps, 1.0 / root),
        sums=None if sums is None else SumFigures(sums.caches, {name: root * s for name, s in sums.seconds.items()}),
        attention=attention,
        pooling=pooling,
    )


def lost_beside(touched: FloatArray, half: float) -> FloatArray:
    """Share of what kernels lose beside busy cores that one loses which goes through so many bytes, float64 of the
    shape of `touched`: half of it where they are `half`, none of half as many, all of twice as many.
    """
    found: FloatArray = np.clip(0.5 + 0.5 * np.log2(np.maximum(touched, 1.0) / half), 0.0, 1.0)
    return found


def _values(seconds: Mapping[str, float], factor: float) -> dict[str, float]:
    """The terms that bring values of rows, so many times as long."""
    return {name: value * (factor if name.endswith("_value") else 1.0) for name, value in seconds.items()}


def _arithmetic(maps: MapFigures, factor: float) -> MapFigures:
    """`maps` with their arithmetic so many times as long."""
    slower = {name: seconds * (factor if name.endswith("flop") else 1.0) for name, seconds in maps.seconds.items()}
    return replace(maps, seconds=slower)


def _times(figure: Figure, factor: float) -> Figure:
    return replace(figure, value=figure.value * factor)
