"""The cost of sampling edges, boundary nodes and mini-batches; of a batch also its rows, its kernels and its memory.

A mini-batch is sampled by a sequence of framework calls (`operation_s` of host time each). Each call waits for the size
of the previous result, so the time between two calls is max(host, device). A GPU reads host memory by unified
addressing (UVA) in requests of at most 128 bytes, over the link that copies use.

Sources: PSC-GCN and BNS-GCN (edges, nodes); DGL's `NeighborSampler`, `to_block` and examples (calls); Min et al.,
EMOGI, and Large Graph Convolutional Network Training with GPU-Oriented Data Communication Architecture, both PVLDB 2021
(UVA requests).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gcnsim.core.ids import FloatArray, IntArray
from gcnsim.cost.device import INDEX, VALUE, Size, elementwise_seconds, spmm_seconds
from gcnsim.cost.host_work import LAYER_CALLS
from gcnsim.cost.layers import (
    LOSS_PASSES,
    LayerCost,
    attention_cost,
    dressing_seconds,
    parameters,
    product_seconds,
)
from gcnsim.cost.memory import ENTRY, ID, MOMENTS, Memory
from gcnsim.hardware import DeviceProfile, HostProfile
from gcnsim.workload import EXCHANGE_FIRST, NO_DROPOUT, LayerShape

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


KEPT = 3
"""Copies of a layer's output: before and after the activation, and its gradient."""

BATCH_OPERATIONS = 5
"""Framework calls per batch outside its layers: seeds, rows and labels, the loss, zeroed gradients, the step."""

DRAW_OPERATIONS = 10
"""Framework calls per sampled layer: neighbours, distinct nodes, new ids, the block, its sparse formats."""

DRAW_LAUNCHES = 25
"""Kernels per layer sampled on a GPU: sampling, prefix sums, two passes over a hash table, two radix sorts."""

SECTOR = 32
"""The smallest request of a GPU to host memory, in bytes."""

SCATTERED = 2 * SECTOR
"""Bytes of link time for a single entry: requests of one sector reach half the link's rate."""

COPIED = 2
"""Bytes of memory traffic per byte of a gathered row: read, then written to the pinned buffer."""

PLACE = 8
"""Bytes of a node id and of an offset in a neighbour list."""


def host_draw_core_seconds(
    host: HostProfile, looked: IntArray, kept: IntArray, layers: int, *, subgraph: bool
) -> FloatArray:
    """Core-seconds of sampling one batch: `looked` entries read, `kept` entries sampled and renumbered in `layers`
    layers, int64[T].

    subgraph: the kept entries are those between sampled nodes, in one matrix.
    """
    rate = host.build_entries_per_s if subgraph else host.neighbour_draws_per_s
    work = looked / host.sample_edges_per_s.value + kept / rate.value
    return np.asarray(work + layers * DRAW_OPERATIONS * host.operation_s.value, dtype=np.float64)


def training_calls(layers: int) -> int:
    """Framework calls in which the host trains a batch: for the batch, and for every layer forward and backward."""
    return BATCH_OPERATIONS + 2 * layers * LAYER_CALLS


def gpu_draw_seconds(device: DeviceProfile, host: HostProfile, entries: Size, layers: int) -> FloatArray:
    """Seconds in which a GPU samples `entries` entries in `layers` layers and builds their matrices.

    The larger of the host's calls and the device's traffic (`rebuild_bytes` per entry plus launches).
    """
    rate = device.memory_bandwidth.value * device.elementwise_efficiency.value
    busy = entries * host.rebuild_bytes.value / rate + layers * DRAW_LAUNCHES * device.launch_s.value
    return np.asarray(np.maximum(busy, layers * DRAW_OPERATIONS * host.operation_s.value), dtype=np.float64)


def pick_core_seconds(host: HostProfile, rows: IntArray, width: int, threads: float, share: float) -> FloatArray:
    """Core-seconds in which `threads` cores gather `rows` rows of `width` values from host memory, int64[T].

    share: the available share of the server's memory bandwidth. Cores beyond that bandwidth wait.
    """
    one = host.gather_bandwidth.value
    crowded = np.maximum(1.0, threads * one * COPIED / (host.memory_bandwidth.value * share))
    return np.asarray(rows * (VALUE * width) / one * crowded, dtype=np.float64)


def uva_row_bytes(host: HostProfile, rows: IntArray, width: int) -> FloatArray:
    """Bytes of a copy that occupies the link as long as a GPU's direct reads of `rows` rows of `width` values.

    Whole sectors, plus one for unaligned rows. Requests reach `uva_efficiency` of a copy's rate.
    """
    nbytes = VALUE * width
    sectors = -(-nbytes // SECTOR) + (1 if nbytes % SECTOR else 0)
    return np.asarray(rows * (sectors * SECTOR) / host.uva_efficiency.value, dtype=np.float64)


def uva_graph_bytes(
    host: HostProfile, looked: IntArray, kept: IntArray, rows: IntArray, *, subgraph: bool
) -> FloatArray:
    """The same for a graph in host memory: the offsets of `rows` nodes and their sampled neighbours.

    subgraph: whole lists are read, `looked` entries in sequence; otherwise each kept entry is a separate request.
    """
    entries = looked * INDEX if subgraph else kept * SCATTERED
    return np.asarray((entries + rows * SCATTERED) / host.uva_efficiency.value, dtype=np.float64)


def stored_graph_bytes(nodes: int, entries: int) -> int:
    """Bytes of the graph that a GPU samples from: neighbour lists and their offsets."""
    return PLACE * (entries + nodes)


def batch_layer_cost(
    device: DeviceProfile,
    shape: LayerShape,
    *,
    first: bool,
    rows_in: IntArray,
    rows_out: IntArray,
    entries: IntArray,
    norm: bool = True,
    last: bool = False,
    dropout: str = EXCHANGE_FIRST,
) -> LayerCost:
    """The kernels of one layer on one worker, as in `layer_cost`: rows_in rows are read, rows_out computed, int64[T].

    entries: int64[T], entries summed over, without self-loops. norm: a LayerNorm follows each hidden layer. last: the
    layer computes logits. dropout: one of `gcnsim.workload.DROPOUTS`; all rows are local, so every kind of dropout
    applies to all.
    """
    made, read = rows_out.astype(np.float64), rows_in.astype(np.float64)
    none = np.zeros(made.shape)
    kept = np.where(made > 0, entries + made, 0.0) if shape.gathers else none
    dropped = np.zeros(read.shape) if dropout == NO_DROPOUT else read
    dressed, undressed = dressing_seconds(device, shape, made, dropped, first=first, last=last, norm=norm)
    update, back = product_seconds(device, shape, made, first=first)
    update, back = update + dressed, back + undressed
    sums = shape.gathers and not first
    return LayerCost(
        aggregate=np.where(kept > 0, spmm_seconds(device, kept, made, shape.d_in, read), 0.0),
        update=np.where(made > 0, update, 0.0),
        update_backward=np.where(made > 0, back, 0.0),
        aggregate_backward=np.where(kept > 0, spmm_seconds(device, kept, read, shape.d_in, made), 0.0)
        if sums
        else none,
    )


def batch_attention_cost(
    device: DeviceProfile,
    shape: LayerShape,
    *,
    first: bool,
    rows_in: IntArray,
    rows_out: IntArray,
    entries: IntArray,
    norm: bool = True,
    last: bool = False,
    dropout: str = EXCHANGE_FIRST,
) -> LayerCost:
    """The same for attention. The computed rows are a batch's first, and attend to themselves; their entries are drawn,
    so that no row is much longer than others. Source: `attention_cost`.
    """
    kept = np.where(rows_out > 0, entries + rows_out, 0)
    boundary = np.maximum(rows_in - rows_out, 0)
    return attention_cost(
        device,
        shape,
        first=first,
        inner=rows_out,
        entries=kept,
        boundary_rows=boundary,
        norm=norm,
        last=last,
        dropout=dropout,
    )


def batch_loss_seconds(device: DeviceProfile, targets: IntArray, classes: int) -> FloatArray:
    """Seconds of loss and its gradient over the logits of the batch, float64[T]."""
    return elementwise_seconds(device, targets.astype(np.float64) * classes, LOSS_PASSES)


def batch_memory(
    levels: Sequence[float],
    entries: Sequence[float],
    shapes: Sequence[LayerShape],
    *,
    waiting: int = 0,
    width: int,
    cached: int = 0,
) -> Memory:
    """The GPU memory at the peak of mini-batch training.

    levels: rows per level, L + 1 of them, of the largest batch; entries: per layer of that batch. waiting: batches
    loaded in advance. width: values of an input row. cached: cached input rows. Assumption: all layers' activations are
    kept until the backward pass ends.
    """
    weights = parameters(tuple(shapes))
    made = list(zip(shapes, levels[1:], strict=True))
    return Memory(
        features=VALUE * levels[0] * width * (1 + waiting) + ID * levels[-1],
        adjacency=sum(entries) * ENTRY,
        activations=VALUE * sum(rows * (shape.update_in + KEPT * shape.d_out) for shape, rows in made),
        boundary=0.0,
        cache=VALUE * cached * width,
        model=VALUE * weights,
        gradients=VALUE * weights,
        optimizer=VALUE * MOMENTS * weights,
        workspace=VALUE * max(rows * shape.update_in for shape, rows in made),
    )
