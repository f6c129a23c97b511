"""What sampling costs: drawing edges on a CPU thread, recomputing probabilities now and then, shipping the result."""

from __future__ import annotations

import numpy as np

from gcnsim.cost.device import INDEX, VALUE
from gcnsim.ids import FloatArray, IntArray
from gcnsim.profile import HostProfile


def draw_core_seconds(host: HostProfile, entries: int, refresh: int, *, weighted: bool) -> float:
    """Core-seconds per iteration of one sampling thread: one draw per stored entry (PSC-GCN, section on SampleGraph).

    weighted: the probabilities are recomputed every `refresh` iterations (a sort per row); that cost is spread evenly,
    because what matters to a pipelined run is the sampler's mean rate.
    """
    draw = entries / host.sample_edges_per_s.value
    return draw + (entries / host.sort_edges_per_s.value / refresh if weighted else 0.0)


def graph_bytes(entries: IntArray, rows: int) -> FloatArray:
    """Bytes of a sampled graph on its way to the GPU: column index and weight per entry, one offset per row."""
    return np.asarray(entries * (INDEX + VALUE) + rows * 2 * INDEX, dtype=np.float64)


def id_bytes(rows: IntArray) -> FloatArray:
    """Bytes of the list of wanted node ids, one 4-byte id a row."""
    return np.asarray(rows * INDEX, dtype=np.float64)


def row_bytes(rows: IntArray, width: int) -> FloatArray:
    """Bytes of `rows` fp32 rows of `width` values."""
    return np.asarray(rows * (VALUE * width), dtype=np.float64)
