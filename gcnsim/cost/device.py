"""Roofline laws of one device: bytes and flop to seconds; and boundary rows in fewer bits, packed and unpacked.

Shared assumption: a kernel takes its launch plus the larger of its memory time and its arithmetic time (Williams et
al., Roofline, 2009), each at the efficiency of the device's profile. fp32: 4 bytes per value, 4 per column index. Sizes
may be numbers or arrays (one entry per iteration). An empty kernel is not launched and costs nothing.

fp16 and bf16 are converted for the message. Quantised rows (8, 4, 2 bits) carry an fp32 scale and zero point each, so
that any range fits. Packing reads a row twice, for its range and for its values; unpacking reads the payload and writes
fp32 rows. Both kernels are memory-bound, at the efficiency of gathering rows.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from gcnsim.core.ids import FloatArray, IntArray
from gcnsim.hardware import DeviceProfile
from gcnsim.workload import PAYLOADS

VALUE = 4
"""Bytes of one fp32 value."""

INDEX = 4
"""Bytes of one column index or node id."""

SECTOR = 32
"""Bytes of device memory that are read at once (NVIDIA, CUDA C++ best practices guide, coalesced access)."""

Size = float | FloatArray | IntArray | NDArray[np.floating[Any]]


def _kernel(device: DeviceProfile, memory_s: Size, arithmetic_s: Size) -> FloatArray:
    busy = np.maximum(memory_s, arithmetic_s)
    return np.where(busy > 0, busy + device.launch_s.value, 0.0)


def spmm_seconds(
    device: DeviceProfile, entries: Size, rows: Size, width: int, gathered: Size | None = None
) -> FloatArray:
    """Seconds of a sparse matrix with `entries` stored values and `rows` rows, times a dense matrix of `width` columns.

    gathered: rows of the dense matrix, if known; a calibrated device has an efficiency for that size.

    Memory: per entry its column index, its value and one gathered row; per output row one written row. Every gathered
    row counts as read from DRAM, so spmm_efficiency includes cache hits and skew. Rows of few values are limited by
    their entries, where the device's rate of those is known.
    """
    traffic = entries * (INDEX + VALUE + VALUE * width) + rows * (VALUE * width)
    arithmetic_s = 2.0 * entries * width / device.flops_fp32.value
    if device.entries_per_s is not None:
        arithmetic_s = np.maximum(arithmetic_s, entries / device.entries_per_s.value)
    efficiency: Size = device.spmm_efficiency.value
    if device.spmm_curve is not None and gathered is not None:
        efficiency = device.spmm_curve.at(np.asarray(gathered * (VALUE * width), dtype=np.float64))
    return _kernel(device, traffic / (device.memory_bandwidth.value * efficiency), arithmetic_s)


def columns_seconds(
    device: DeviceProfile, share: float, entries: Size, rows: Size, width: int, starts: Size = 0
) -> FloatArray:
    """Seconds of a sparse product that processes a dense matrix of `width` columns column by column.

    Indices and values are read again for each column. The column stays in the device's cache and the result is written
    once: the product of a column-major operand (cuSPARSE). share: the share of the memory bandwidth that these streams
    reach. starts: rows with entries. The data of a row start inside a SECTOR that is read whole, which matters for
    short rows.
    """
    begun = starts * (2 * SECTOR - INDEX - VALUE)
    traffic = (entries * (INDEX + VALUE) + begun + rows * VALUE) * float(width)
    return _kernel(
        device, traffic / (device.memory_bandwidth.value * share), 2.0 * entries * width / device.flops_fp32.value
    )


def gemm_seconds(device: DeviceProfile, m: Size, k: Size, n: Size) -> FloatArray:
    """Seconds of an (m x k) times (k x n) fp32 product: 2 m k n flop, each operand read and the result written once."""
    return _kernel(
        device,
        map_bytes(m, k, n) / (device.memory_bandwidth.value * device.elementwise_efficiency.value),
        2.0 * m * k * n / (device.flops_fp32.value * device.gemm_efficiency.value),
    )


def map_bytes(m: Size, k: Size, n: Size) -> FloatArray:
    """Bytes of the operands and of the result of an (m x k) times (k x n) product, each once."""
    return np.asarray(VALUE * (m * k + k * n + m * n), dtype=np.float64)


def rows_seconds(device: DeviceProfile, rows: Size, width: int) -> FloatArray:
    """Seconds to gather or scatter `rows` rows of `width` values: each row is read and written once, plus its index."""
    traffic = rows * (2 * VALUE * width + INDEX)
    return _kernel(device, traffic / (device.memory_bandwidth.value * device.gather_efficiency.value), 0.0)


def elementwise_seconds(device: DeviceProfile, values: Size, passes: int) -> FloatArray:
    """Seconds of elementwise kernels with `passes` reads or writes of `values` fp32 values."""
    traffic = values * (VALUE * passes)
    return _kernel(device, traffic / (device.memory_bandwidth.value * device.elementwise_efficiency.value), 0.0)


SCALED: Final = 8
"""Rows with at most this many bits per value carry a scale and a zero point."""

SCALE: Final = 2 * VALUE
"""Bytes of a scale and a zero point."""


def payload_width(width: int, payload: str) -> int:
    """Bytes of a message row of `width` values: whole bytes, with scale and zero point if it has them."""
    return -(-width * PAYLOADS[payload] // 8) + (SCALE if _scaled(payload) else 0)


def payload_bytes(rows: Size, width: int, payload: str) -> FloatArray:
    """Bytes of a message of `rows` rows of `width` values."""
    return np.asarray(rows * payload_width(width, payload), dtype=np.float64)


def pack_seconds(device: DeviceProfile, rows: Size, width: int, payload: str) -> FloatArray:
    """Seconds in which a GPU gathers `rows` rows and writes them as `payload`."""
    reads = 2 if _scaled(payload) else 1
    return _conversion(device, rows, width, payload, reads)


def unpack_seconds(device: DeviceProfile, rows: Size, width: int, payload: str) -> FloatArray:
    """Seconds in which a GPU reads `rows` rows of `payload` and scatters them as fp32 rows."""
    return _conversion(device, rows, width, payload, 1)


def _conversion(device: DeviceProfile, rows: Size, width: int, payload: str, passes: int) -> FloatArray:
    """A kernel with `passes` over fp32 rows, one over the payload, and one index per row."""
    if payload == "fp32":
        return rows_seconds(device, rows, width)
    rate = device.memory_bandwidth.value * device.gather_efficiency.value
    busy = rows * (passes * VALUE * width + payload_width(width, payload) + INDEX) / rate
    return np.where(np.asarray(rows) > 0, busy + device.launch_s.value, 0.0)


def _scaled(payload: str) -> bool:
    return PAYLOADS[payload] <= SCALED
