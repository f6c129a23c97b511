"""A core beside busy ones: what its kernels lose there differs by what they need."""

from __future__ import annotations

from dataclasses import replace
from math import sqrt

import numpy as np

from gcnsim.hardware import DeviceProfile, Figure, SumFigures
from gcnsim.ids import FloatArray


def with_busy_sums(device: DeviceProfile, ratio: float) -> DeviceProfile:
    """`device` with sums over neighbours slower, and dense products faster, by the root of `ratio` each.

    Sums bring rows from caches and memory that all cores share, dense products work on what the core's own caches hold.
    What kernels lose on average is the host's `busy_core_rate`, so the two factors are one another's inverse.
    """
    root = sqrt(ratio)
    sums, curve = device.sums, device.spmm_curve
    return replace(
        device,
        gemm_efficiency=_times(device.gemm_efficiency, root),
        spmm_efficiency=_times(device.spmm_efficiency, 1.0 / root),
        spmm_curve=None if curve is None else replace(curve, values=tuple(value / root for value in curve.values)),
        sums=None if sums is None else SumFigures(sums.caches, {name: root * s for name, s in sums.seconds.items()}),
    )


def left_own_cache(touched: FloatArray, sums: SumFigures) -> FloatArray:
    """Share of so many bytes that a core's own caches, the first and the second of `sums`, do not hold while a kernel
    goes through them, float64 of the shape of `touched`: none of half the second's size, all of twice as much.
    """
    found: FloatArray = np.clip(0.5 + 0.5 * np.log2(np.maximum(touched, 1.0) / sums.caches[1]), 0.0, 1.0)
    return found


def _times(figure: Figure, factor: float) -> Figure:
    return replace(figure, value=figure.value * factor)
