"""The cost of sampling: sampling edges on a CPU thread, recomputing probabilities at intervals, sending the result."""

from __future__ import annotations

import numpy as np

from gcnsim.core.ids import FloatArray, IntArray
from gcnsim.cost.device import INDEX, VALUE, Size, elementwise_seconds
from gcnsim.hardware import DeviceProfile, HostProfile

SORT_PASSES = 64
"""A radix sort of 8-byte keys and values: eight passes of one byte, each reads and writes both."""


def draw_core_seconds(host: HostProfile, entries: int | IntArray, refresh: int, *, weighted: bool) -> FloatArray:
    """Core-seconds per iteration of one sampling thread: one draw per stored entry (PSC-GCN, section on SampleGraph).

    weighted: probabilities are recomputed every `refresh` iterations (a sort per row). That cost is spread evenly,
    because the mean rate of the sampler decides the speed of a pipelined run.
    """
    draw = entries / host.sample_edges_per_s.value
    return np.asarray(draw + (entries / host.sort_edges_per_s.value / refresh if weighted else 0.0), dtype=np.float64)


def draw_nodes_core_seconds(host: HostProfile, nodes: float) -> float:
    """Core-seconds of sampling `nodes` boundary nodes: one draw each (BNS-GCN, Algorithm 1).

    Assumption: sampling a node takes as long as sampling a stored entry.
    """
    return nodes / host.sample_edges_per_s.value


def boundary_core_seconds(host: HostProfile, cross: IntArray, kept: IntArray, rows: int) -> FloatArray:
    """Core-seconds of building the boundary matrix of sampled nodes: `kept` of `cross` entries in `rows` rows.

    Every crossing entry is checked, at the rate of sampling a stored entry. The kept ones form a matrix, at the rate of
    a sampled graph. The inner matrix never changes.
    """
    return np.asarray(
        cross / host.sample_edges_per_s.value + (kept + rows) / host.build_entries_per_s.value, dtype=np.float64
    )


def boundary_seconds(device: DeviceProfile, cross: IntArray, kept: IntArray, rows: int) -> FloatArray:
    """Seconds in which a GPU selects `kept` of `cross` crossing entries, all in its memory, into `rows` rows.

    Assumption: each entry's column and its flag are read once. Column and weight of kept entries are read and written,
    plus one offset per row.
    """
    return elementwise_seconds(device, 2 * cross + 4 * kept + 2 * rows, 1)


def edges_seconds(device: DeviceProfile, looked: Size, kept: Size, rows: int | IntArray) -> FloatArray:
    """Seconds in which a GPU samples `kept` of `looked` entries independently and builds their matrix.

    Per entry checked, a random number and a flag are written and read. Kept entries are sorted by row, and by column
    for the backward pass.
    """
    return elementwise_seconds(device, 4 * looked + 2 * SORT_PASSES * kept + 2 * rows, 1)


def sampler_seconds(
    device: DeviceProfile, entries: int | IntArray, kept: Size, rows: int | IntArray, refresh: int, *, weighted: bool
) -> FloatArray:
    """Seconds in which a GPU samples a graph of PSC-GCN: one draw per stored entry, and a matrix of the kept ones.

    weighted: probabilities are recomputed every `refresh` iterations, a sort of all entries, spread evenly. Assumption:
    as `edges_seconds`, bound by memory bandwidth; no GPU sampler of PSC-GCN is published.
    """
    sorting = elementwise_seconds(device, 2 * SORT_PASSES * entries, 1) / refresh if weighted else 0.0
    return np.asarray(edges_seconds(device, entries, kept, rows) + sorting, dtype=np.float64)


def graph_bytes(entries: IntArray, rows: int | IntArray) -> FloatArray:
    """Bytes of a sampled graph sent to the GPU: column index and weight per entry, one offset per row."""
    return np.asarray(entries * (INDEX + VALUE) + rows * 2 * INDEX, dtype=np.float64)


def id_bytes(rows: IntArray, width: int = INDEX) -> FloatArray:
    """Bytes of a list of requested node ids, one id of `width` bytes per row."""
    return np.asarray(rows * width, dtype=np.float64)


def row_bytes(rows: IntArray, width: int) -> FloatArray:
    """Bytes of `rows` fp32 rows of `width` values."""
    return np.asarray(rows * (VALUE * width), dtype=np.float64)
