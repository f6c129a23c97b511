"""What it costs to draw a mini-batch and to bring its rows to a GPU, by a host's threads or by the GPU itself.

Drawing is one call of the framework after the other (`operation_s` of host time), each of which waits for the size of
what it drew; between two of them the host or the device is the slower one: max(host, device). A GPU reads host memory
by unified addressing (UVA) in requests of at most 128 bytes over the same link that copies use.

Sources: loops of DGL's `NeighborSampler`, `to_block` and examples (calls); Min et al., EMOGI, and Large Graph
Convolutional Network Training with GPU-Oriented Data Communication Architecture, both PVLDB 2021 (requests by UVA).
"""

from __future__ import annotations

import numpy as np

from gcnsim.cost.device import INDEX, VALUE, Size
from gcnsim.cost.released import LAYER_OPERATIONS
from gcnsim.hardware import DeviceProfile, HostProfile
from gcnsim.ids import FloatArray, IntArray

BATCH_OPERATIONS = 5
"""Calls of a batch besides those of its layers: its seeds, rows and labels, the loss, zeroed gradients, the step."""

DRAW_OPERATIONS = 10
"""Calls of a layer that is drawn: neighbours, distinct nodes, new numbers, the block, its orders of entries."""

DRAW_LAUNCHES = 25
"""Kernels of a layer that a GPU draws: picks, prefix sums, two passes over a hash table, two radix sorts."""

SECTOR = 32
"""Bytes that a GPU asks host memory for at least."""

SCATTERED = 2 * SECTOR
"""Bytes of the link's time that an entry takes which is read alone: requests of one sector reach half its rate."""

COPIED = 2
"""Bytes of memory traffic for each byte of a row that is picked out: read, then written to the pinned buffer."""

PLACE = 8
"""Bytes of a node id, and of a place in the list of a node's neighbours."""


def host_draw_core_seconds(
    host: HostProfile, looked: IntArray, kept: IntArray, layers: int, *, subgraph: bool
) -> FloatArray:
    """Core-seconds of one batch: `looked` entries looked at, `kept` drawn and renumbered in `layers` layers, int64[T].

    subgraph: the entries kept are those between nodes that were drawn, made into one matrix.
    """
    rate = host.build_entries_per_s if subgraph else host.neighbour_draws_per_s
    work = looked / host.sample_edges_per_s.value + kept / rate.value
    return np.asarray(work + layers * DRAW_OPERATIONS * host.operation_s.value, dtype=np.float64)


def training_calls(layers: int) -> int:
    """Calls in which the host trains a batch: of the batch, and of every layer forward and backward."""
    return BATCH_OPERATIONS + 2 * layers * LAYER_OPERATIONS


def gpu_draw_seconds(device: DeviceProfile, host: HostProfile, entries: Size, layers: int) -> FloatArray:
    """Seconds in which a GPU draws `entries` entries in `layers` layers and makes their matrices.

    The longer of the host's calls and the device's traffic, `rebuild_bytes` an entry, with its launches.
    """
    rate = device.memory_bandwidth.value * device.elementwise_efficiency.value
    busy = entries * host.rebuild_bytes.value / rate + layers * DRAW_LAUNCHES * device.launch_s.value
    return np.asarray(np.maximum(busy, layers * DRAW_OPERATIONS * host.operation_s.value), dtype=np.float64)


def pick_core_seconds(host: HostProfile, rows: IntArray, width: int, threads: float, share: float) -> FloatArray:
    """Core-seconds in which `threads` cores pick `rows` rows of `width` values out of host memory, int64[T].

    share: of the server's memory bandwidth that they have. As many cores as it does not feed wait for it.
    """
    one = host.gather_bandwidth.value
    crowded = np.maximum(1.0, threads * one * COPIED / (host.memory_bandwidth.value * share))
    return np.asarray(rows * (VALUE * width) / one * crowded, dtype=np.float64)


def uva_row_bytes(host: HostProfile, rows: IntArray, width: int) -> FloatArray:
    """Bytes of a copy that takes the link as long as a GPU's own reads of `rows` rows of `width` values.

    Whole sectors, one more where rows do not begin at one; requests reach `uva_efficiency` of a copy's rate.
    """
    nbytes = VALUE * width
    sectors = -(-nbytes // SECTOR) + (1 if nbytes % SECTOR else 0)
    return np.asarray(rows * (sectors * SECTOR) / host.uva_efficiency.value, dtype=np.float64)


def uva_graph_bytes(
    host: HostProfile, looked: IntArray, kept: IntArray, rows: IntArray, *, subgraph: bool
) -> FloatArray:
    """The same of a graph in host memory: where the neighbours of `rows` nodes begin, and those drawn of them.

    subgraph: lists are read whole, `looked` entries in a row; else each entry kept is a request of its own.
    """
    entries = looked * INDEX if subgraph else kept * SCATTERED
    return np.asarray((entries + rows * SCATTERED) / host.uva_efficiency.value, dtype=np.float64)


def stored_graph_bytes(nodes: int, entries: int) -> int:
    """Bytes of a graph that a GPU draws from: the neighbours of every node, and where each list begins."""
    return PLACE * (entries + nodes)
