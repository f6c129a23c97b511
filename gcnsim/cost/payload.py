"""Boundary rows in fewer bits: the bytes of a message, and the GPU time to pack and unpack it.

fp16 and bf16 are converted for the message. Quantised rows (8, 4, 2 bits) carry an fp32 scale and zero point each, so
that any range fits. Packing reads a row twice, for its range and for its values; unpacking reads the payload and writes
fp32 rows. Assumption: both kernels are memory-bound, at the efficiency of gathering rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from gcnsim.core.ids import FloatArray
from gcnsim.cost.device import INDEX, VALUE, Size, rows_seconds
from gcnsim.hardware import DeviceProfile
from gcnsim.workload import PAYLOADS

BITS: Final[Mapping[str, int]] = PAYLOADS

SCALED: Final = 8
"""Rows with at most this many bits per value carry a scale and a zero point."""

SCALE: Final = 2 * VALUE
"""Bytes of a scale and a zero point."""


def payload_width(width: int, payload: str) -> int:
    """Bytes of a message row of `width` values: whole bytes, with scale and zero point if it has them."""
    return -(-width * BITS[payload] // 8) + (SCALE if _scaled(payload) else 0)


def payload_bytes(rows: Size, width: int, payload: str) -> FloatArray:
    """Bytes of a message of `rows` rows of `width` values."""
    return np.asarray(rows * payload_width(width, payload), dtype=np.float64)


def pack_seconds(device: DeviceProfile, rows: Size, width: int, payload: str) -> FloatArray:
    """Seconds in which a GPU gathers `rows` rows and writes them as `payload`."""
    reads = 2 if _scaled(payload) else 1
    return _kernel(device, rows, width, payload, reads)


def unpack_seconds(device: DeviceProfile, rows: Size, width: int, payload: str) -> FloatArray:
    """Seconds in which a GPU reads `rows` rows of `payload` and scatters them as fp32 rows."""
    return _kernel(device, rows, width, payload, 1)


def _kernel(device: DeviceProfile, rows: Size, width: int, payload: str, passes: int) -> FloatArray:
    """A kernel with `passes` over fp32 rows, one over the payload, and one index per row."""
    if payload == "fp32":
        return rows_seconds(device, rows, width)
    rate = device.memory_bandwidth.value * device.gather_efficiency.value
    busy = rows * (passes * VALUE * width + payload_width(width, payload) + INDEX) / rate
    return np.where(np.asarray(rows) > 0, busy + device.launch_s.value, 0.0)


def _scaled(payload: str) -> bool:
    return BITS[payload] <= SCALED
