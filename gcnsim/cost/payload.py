"""Boundary rows on their way in fewer bits: what they weigh, and what packing and unpacking them costs a GPU.

fp16 and bf16 are a conversion on the way. Quantised rows (8, 4, 2 bits) carry a scale and a zero point each, both fp32,
so that any row's range fits: packing reads a row twice, for its range and for its values; unpacking reads the payload
and writes fp32 rows. Assumption: both kernels are bound by memory, at the efficiency of gathering rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from gcnsim.cost.device import INDEX, VALUE, Size, rows_seconds
from gcnsim.hardware import DeviceProfile
from gcnsim.ids import FloatArray
from gcnsim.workload import PAYLOADS

BITS: Final[Mapping[str, int]] = PAYLOADS

SCALED: Final = 8
"""Bits of a value from which on a row carries scale and zero point."""

SCALE: Final = 2 * VALUE
"""Bytes of them."""


def payload_width(width: int, payload: str) -> int:
    """Bytes of a row of `width` values on its way: whole bytes, with its scale and zero point where it has them."""
    return -(-width * BITS[payload] // 8) + (SCALE if _scaled(payload) else 0)


def payload_bytes(rows: Size, width: int, payload: str) -> FloatArray:
    """Bytes of `rows` rows of `width` values on their way."""
    return np.asarray(rows * payload_width(width, payload), dtype=np.float64)


def pack_seconds(device: DeviceProfile, rows: Size, width: int, payload: str) -> FloatArray:
    """Seconds in which a GPU gathers `rows` rows and writes them as `payload`."""
    reads = 2 if _scaled(payload) else 1
    return _kernel(device, rows, width, payload, reads)


def unpack_seconds(device: DeviceProfile, rows: Size, width: int, payload: str) -> FloatArray:
    """Seconds in which a GPU reads `rows` rows of `payload` and writes them as fp32 rows where they belong."""
    return _kernel(device, rows, width, payload, 1)


def _kernel(device: DeviceProfile, rows: Size, width: int, payload: str, passes: int) -> FloatArray:
    """`passes` over fp32 rows, one over the payload, and an index a row."""
    if payload == "fp32":
        return rows_seconds(device, rows, width)
    rate = device.memory_bandwidth.value * device.gather_efficiency.value
    busy = rows * (passes * VALUE * width + payload_width(width, payload) + INDEX) / rate
    return np.where(np.asarray(rows) > 0, busy + device.launch_s.value, 0.0)


def _scaled(payload: str) -> bool:
    return BITS[payload] <= SCALED
