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
from gcnsim.workload.reach import DEGREE_SPREAD

VALUE = 4
"""Bytes of one fp32 value."""

INDEX = 4
"""Bytes of one column index or node id."""

SECTOR = 32
"""Bytes of device memory that are read at once (NVIDIA, CUDA C++ best practices guide, coalesced access)."""

OPERATORS: Final = (
    ("sparse sums", ("rtx-3090", "rtx-4090"), "2026", "cuSPARSE on RTX 3090 and 4090 (RA-SpMM)"),
    (
        "dense products",
        ("a100-pcie-80", "l4", "mi100", "p4", "t4", "v100-pcie-32"),
        "2025",
        "cuBLAS and rocBLAS on A100, V100, P4, T4, L4, MI100 (NeuSight)",
    ),
)
"""Kernels whose law is fitted to times that others measured: name, the GPUs they were measured on, date, reference."""

Size = float | FloatArray | IntArray | NDArray[np.floating[Any]]


def _kernel(device: DeviceProfile, memory_s: Size, arithmetic_s: Size) -> FloatArray:
    busy = np.maximum(memory_s, arithmetic_s)
    return np.where(busy > 0, busy + device.launch_s.value, 0.0)


def spmm_seconds(
    device: DeviceProfile, entries: Size, rows: Size, width: int, gathered: Size | None = None
) -> FloatArray:
    """Seconds of a sparse matrix with `entries` stored values and `rows` rows, times a dense matrix of `width` columns.

    gathered: rows of the dense matrix, if known; else as many as `rows`.

    Per entry: its column index, its value and one gathered row; per output row one written row. Of a device whose
    multiprocessors are known, these times add up (`_through_cache`). Of any other, every gathered row counts as read
    from memory, so that spmm_efficiency includes cache hits and skew; a calibrated device has an efficiency for the
    size of the dense matrix. Rows of few values are limited by their entries, where that rate of the device is known.
    """
    arithmetic_s = 2.0 * entries * width / device.flops_fp32.value
    if device.entries_per_s is not None:
        arithmetic_s = np.maximum(arithmetic_s, entries / device.entries_per_s.value)
    if device.multiprocessors is not None and device.cache_bandwidth is not None and device.spmm_curve is None:
        return _kernel(
            device, _through_cache(device, entries, rows, width, rows if gathered is None else gathered), arithmetic_s
        )
    traffic = entries * (INDEX + VALUE + VALUE * width) + rows * (VALUE * width)
    efficiency: Size = device.spmm_efficiency.value
    if device.spmm_curve is not None and gathered is not None:
        efficiency = device.spmm_curve.at(np.asarray(gathered * (VALUE * width), dtype=np.float64))
    return _kernel(device, traffic / (device.memory_bandwidth.value * efficiency), arithmetic_s)


LOCALITY: Final = 0.127
"""How slowly hits in the last cache fall with its size over the dense matrix's: hits = (cache / matrix)^LOCALITY. Rows
near each other share neighbours, so that a small cache already holds many.
"""

SPREAD_LOCALITY: Final = 0.099
"""LOCALITY is exp(-SPREAD_LOCALITY x spread of degrees) as large: rows of many entries are asked for again soon."""

ROW_S: Final = 8.0e-9
"""Seconds in which one multiprocessor begins and ends an output row of 32 values: offsets read, result written."""

ENTRY_S: Final = 7.8e-9
"""Seconds of one multiprocessor for a stored entry, however narrow its row: 17 Gedges/s of an H100's 132."""

STEP_S: Final = 29.6e-9
"""Seconds of one step along the longest row; at most `LONGEST` steps, because longer rows are split."""

LONGEST: Final = 400

LANES: Final = 32
"""Values of a row that a warp reads at a time."""


def _through_cache(device: DeviceProfile, entries: Size, rows: Size, width: int, gathered: Size) -> Size:
    """Seconds of a sparse sum without its launch: memory, last cache and rows one after the other, or the longest row.

    Memory reads the gathered rows that miss the last cache, each row at least once unless all fit, indices and values,
    and writes the output. All gathered and written bytes pass the cache. The constants above, `spmm_efficiency` and
    `cache_bandwidth` are one set for cuSPARSE on every GPU, fitted to sums of 11 graphs on an RTX 3090 and of three on
    an RTX 4090 (RA-SpMM, 2026; studies/fit_operators.py prints
    the errors on graphs and GPUs left out).
    """
    assert device.multiprocessors is not None
    assert device.cache_bandwidth is not None
    processors, spread = device.multiprocessors.value, device.degree_spread or DEGREE_SPREAD
    matrix, output, reads = gathered * (VALUE * width), rows * (VALUE * width), entries * (VALUE * width)
    cache = 0.0 if device.l2_cache is None else device.l2_cache.value
    held = np.minimum(1.0, cache / np.maximum(matrix, 1.0))
    missed = 1.0 - held ** (LOCALITY * np.exp(-SPREAD_LOCALITY * spread))
    fetched = np.maximum(reads * missed, np.where(held < 1.0, np.minimum(matrix, reads), 0.0))
    memory_s = (fetched + entries * (INDEX + VALUE) + output) / (
        device.memory_bandwidth.value * device.spmm_efficiency.value
    )
    cache_s = (reads + output) / (processors * device.cache_bandwidth.value)
    rows_s = rows * (-(-width // LANES) * ROW_S) / processors
    steps = np.minimum(np.minimum(_longest(entries, rows, spread), gathered), LONGEST)
    least_s = np.maximum(steps * STEP_S, entries * (ENTRY_S / processors))
    return np.where(np.asarray(entries) > 0, np.maximum(memory_s + cache_s + rows_s, least_s), 0.0)


def _longest(entries: Size, rows: Size, spread: float) -> Size:
    """The expected entries of the longest of `rows` rows of lognormal lengths, by the tail of the normal law."""
    log = np.log(np.maximum(rows, 3.0))
    reach = np.sqrt(2.0 * log)
    quantile = reach - (np.log(log) + np.log(4.0 * np.pi)) / (2.0 * reach)
    return np.asarray(entries / np.maximum(rows, 1.0) * np.exp(spread * quantile - spread**2 / 2.0))


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
    """Seconds of an (m x k) times (k x n) fp32 product: 2 m k n flop, each operand read and the result written once.

    Of a device whose multiprocessors are known: m and n are whole multiples of `LANES`, and the product's tiles are
    dealt out in waves, of which the last is not full: it takes as long as `TAIL` tiles more on each of them. Tall inner
    sides are split (split-K).
    """
    busy = 2.0 * m * k * n / (device.flops_fp32.value * device.gemm_efficiency.value)
    if device.multiprocessors is not None:
        high, wide = (np.ceil(np.asarray(side) / LANES) * LANES for side in (m, n))
        padded = np.where(busy > 0, (high * wide) / np.maximum(np.asarray(m * n), 1.0), 1.0)
        tiles = np.ceil(high / TILE_SIDE) * np.ceil(wide / TILE_SIDE) * np.maximum(1.0, np.asarray(k) / SPLIT)
        busy = busy * padded * (1.0 + TAIL * device.multiprocessors.value / np.maximum(tiles, 1.0))
    return _kernel(
        device, map_bytes(m, k, n) / (device.memory_bandwidth.value * device.elementwise_efficiency.value), busy
    )


TILE_SIDE: Final = 128
"""Rows and columns of the result that one multiprocessor computes at a time (cuBLAS' sgemm)."""

SPLIT: Final = 2048
"""Values of the inner side that one tile sums, where a product has few tiles."""

TAIL: Final = 0.29
"""Fitted to products on an A100, a V100, a P4, a T4, an L4 and an MI100 (NeuSight, ASPLOS 2025)."""


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
