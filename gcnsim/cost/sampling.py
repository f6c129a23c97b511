"""What sampling costs: drawing edges on a CPU thread, recomputing probabilities now and then, shipping the result."""

from __future__ import annotations

import numpy as np

from gcnsim.cost.device import INDEX, VALUE, Size, elementwise_seconds
from gcnsim.hardware import DeviceProfile, HostProfile
from gcnsim.ids import FloatArray, IntArray

SORT_PASSES = 64
"""A radix sort of 8-byte keys and values: eight passes, of a byte each, read and write both."""


def draw_core_seconds(host: HostProfile, entries: int | IntArray, refresh: int, *, weighted: bool) -> FloatArray:
    """Core-seconds per iteration of one sampling thread: one draw per stored entry (PSC-GCN, section on SampleGraph).

    weighted: the probabilities are recomputed every `refresh` iterations (a sort per row); that cost is spread evenly,
    because what matters to a pipelined run is the sampler's mean rate.
    """
    draw = entries / host.sample_edges_per_s.value
    return np.asarray(draw + (entries / host.sort_edges_per_s.value / refresh if weighted else 0.0), dtype=np.float64)


def draw_nodes_core_seconds(host: HostProfile, nodes: float) -> float:
    """Core-seconds of drawing a share of `nodes` boundary nodes: a draw for each (BNS-GCN, Algorithm 1).

    Assumption: a node is drawn as quickly as a stored entry is.
    """
    return nodes / host.sample_edges_per_s.value


def boundary_core_seconds(host: HostProfile, cross: IntArray, kept: IntArray, rows: int) -> FloatArray:
    """Core-seconds of the boundary matrix of drawn nodes: `kept` of `cross` entries, in `rows` rows.

    Every entry that crosses is looked at, as quickly as a stored entry is drawn; those kept are turned into a matrix
    at the rate of a drawn graph's. The inner matrix never changes.
    """
    return np.asarray(
        cross / host.sample_edges_per_s.value + (kept + rows) / host.build_entries_per_s.value, dtype=np.float64
    )


def boundary_seconds(device: DeviceProfile, cross: IntArray, kept: IntArray, rows: int) -> FloatArray:
    """Seconds in which a GPU picks `kept` of `cross` entries that cross, all of which it holds, into `rows` rows.

    Assumption: each entry's column and its mark are read once, column and weight of those kept are read and written,
    and so is an offset per row.
    """
    return elementwise_seconds(device, 2 * cross + 4 * kept + 2 * rows, 1)


def edges_seconds(device: DeviceProfile, looked: Size, kept: Size, rows: int | IntArray) -> FloatArray:
    """Seconds in which a GPU keeps `kept` of `looked` entries, each drawn for itself, and makes a matrix of them.

    A number is written and read per entry looked at, and so is its mark; those kept are sorted by row, and by column
    for the backward pass.
    """
    return elementwise_seconds(device, 4 * looked + 2 * SORT_PASSES * kept + 2 * rows, 1)


def sampler_seconds(
    device: DeviceProfile, entries: int | IntArray, kept: Size, rows: int | IntArray, refresh: int, *, weighted: bool
) -> FloatArray:
    """Seconds in which a GPU draws a graph of PSC-GCN: one draw per stored entry, and a matrix of those kept.

    weighted: the probabilities are recomputed every `refresh` iterations, a sort of all entries, spread evenly.
    Assumption: as `edges_seconds`, limited by memory bandwidth alone; no sampler of PSC-GCN for GPUs is published.
    """
    sorting = elementwise_seconds(device, 2 * SORT_PASSES * entries, 1) / refresh if weighted else 0.0
    return np.asarray(edges_seconds(device, entries, kept, rows) + sorting, dtype=np.float64)


def graph_bytes(entries: IntArray, rows: int | IntArray) -> FloatArray:
    """Bytes of a sampled graph on its way to the GPU: column index and weight per entry, one offset per row."""
    return np.asarray(entries * (INDEX + VALUE) + rows * 2 * INDEX, dtype=np.float64)


def id_bytes(rows: IntArray, width: int = INDEX) -> FloatArray:
    """Bytes of the list of wanted node ids, one id of `width` bytes a row."""
    return np.asarray(rows * width, dtype=np.float64)


def row_bytes(rows: IntArray, width: int) -> FloatArray:
    """Bytes of `rows` fp32 rows of `width` values."""
    return np.asarray(rows * (VALUE * width), dtype=np.float64)
