"""What a learnt map, its gradients and the loss cost a core that nothing else uses.

Where a calibration has measured them, by terms of its own (`gcnsim.hardware.profiles`): products of narrow rows are
slowed by bringing and packing their operands, wide ones by arithmetic, gradients of weights by summing over all rows.
Else by the device's flop/s and memory bandwidth.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gcnsim.cost.device import VALUE, Size
from gcnsim.hardware import MAP_TERMS, DeviceProfile, HostProfile, MapFigures
from gcnsim.ids import FloatArray

PRODUCT, WEIGHT = MAP_TERMS[: len(MAP_TERMS) // 2], MAP_TERMS[len(MAP_TERMS) // 2 :]
"""Terms of rows times weights, and of the gradient of weights."""


def map_seconds(device: DeviceProfile, rows: Size, d_in: Size, d_out: Size) -> FloatArray:
    """Seconds of a (rows x d_in) times (d_in x d_out) product on a core; also of the gradient of a map's input."""
    if device.maps is None:
        return _by_rates(device, rows, d_in, d_out)
    return _by_terms(device.maps, PRODUCT, map_terms(rows, d_in, d_out))


def weight_seconds(device: DeviceProfile, rows: Size, d_in: Size, d_out: Size) -> FloatArray:
    """Seconds of the gradient of a map's weights, a (d_in x rows) times (rows x d_out) product."""
    if device.maps is None:
        return _by_rates(device, d_in, rows, d_out)
    return _by_terms(device.maps, WEIGHT, map_terms(rows, d_in, d_out))


def map_terms(rows: Size, d_in: Size, d_out: Size) -> list[FloatArray]:
    """How much of each of PRODUCT or of WEIGHT there is: calls, flop, bytes of as many rows of either width."""
    made = np.asarray(np.asarray(rows, np.float64) * d_in * d_out)
    sides = [np.asarray(VALUE * rows * width + 0.0 * made) for width in (d_in, d_out)]
    return [np.asarray(made > 0, np.float64), 2.0 * made, *sides]


def _by_terms(figures: MapFigures, names: Sequence[str], amounts: Sequence[FloatArray]) -> FloatArray:
    found = np.zeros(amounts[0].shape)
    for name, amount in zip(names, amounts, strict=True):
        found = found + figures.seconds[name] * amount
    return found


def _by_rates(device: DeviceProfile, m: Size, k: Size, n: Size) -> FloatArray:
    """By arithmetic, and operands brought and written. Unlike a GPU's many waves, one core overlaps the two little."""
    rate = device.memory_bandwidth.value * device.elementwise_efficiency.value
    arithmetic = 2.0 * m * k * n / (device.flops_fp32.value * device.gemm_efficiency.value)
    seconds = arithmetic + map_bytes(m, k, n) / rate
    return np.where(seconds > 0, seconds + device.launch_s.value, 0.0)


def map_bytes(m: Size, k: Size, n: Size) -> FloatArray:
    """Bytes of the operands and of the result of an (m x k) times (k x n) product, each once."""
    return np.asarray(VALUE * (m * k + k * n + m * n), dtype=np.float64)


def logits_seconds(device: DeviceProfile, host: HostProfile, rows: Size, classes: int) -> FloatArray:
    """Seconds of the loss over `rows` rows of logits: softmax, gradient, count of right answers.

    Rows of fewer logits than a vector register holds take several times as long a logit.
    """
    given = np.asarray(rows, np.float64)
    if device.maps is None:
        return np.asarray(given * classes / host.loss_values_per_s.value + device.launch_s.value)
    known, seconds = np.array(device.maps.loss).T
    each = float(np.exp(np.interp(np.log(classes), np.log(known), np.log(seconds))))
    each *= max(classes / float(known[-1]), 1.0)
    return np.asarray(given * each + device.launch_s.value)
