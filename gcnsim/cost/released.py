"""What the published systems' own code costs beside the work itself, however little is sampled.

Counts are those of the released loops of PipeGCN and BNS-GCN (PSC-GCN has the same parents), which rotate over the
P - 1 peers: per iteration a graph is made anew of all inner entries and those kept; per layer and direction rows are
indexed, divided by the rate, copied and sent peer by peer, and copied peer by peer on receipt. Each of these is one
call of the framework, `operation_s` of host time. Between two synchronisations the host issues what the device does,
so a phase takes as long as the longer of both: max(host, device).
"""

from __future__ import annotations

import numpy as np

from gcnsim.cost.device import VALUE, Size, elementwise_seconds
from gcnsim.cost.layers import LayerCost
from gcnsim.hardware import DeviceProfile, HostProfile
from gcnsim.ids import FloatArray, IntArray, Seconds
from gcnsim.workload import LayerShape

WIDE_ID = 8
"""Bytes of a node id: the frameworks' integers have 64 bits."""

REBUILD_LAUNCHES = 25
"""Kernels that make a graph: concatenations, two radix sorts (rows and columns), offsets, degrees."""

REBUILD_OPERATIONS = 8
"""Calls that make a graph, beside those for each peer."""

MAKING_OPERATIONS = 2
"""Calls per peer that make a graph: the entries of its nodes are picked, and put beside the others."""

SELECTING_OPERATIONS = 2
"""Calls per peer that select what is kept: a draw, and the ids picked by it."""

ID_OPERATIONS = 3
"""Calls per peer in which ids travel, a round each: copy, message, copy."""

SENDING_OPERATIONS = 4
"""Calls per peer, layer and direction in which rows leave: index, divide, blocking copy, send."""

RECEIPT_OPERATIONS = 1
"""Calls per peer, layer and direction on receipt: a copy."""

DIVISION_PASSES = 2
"""Reads and writes of rows that are divided by the rate."""

LAYER_OPERATIONS = 7
"""Calls of a layer: dropout, concatenation, sum, division by the degree, product, norm, activation. As many back."""

STEP_LAUNCHES = 12
"""Kernels of an optimiser that goes tensor by tensor (Adam)."""


def rebuild_seconds(device: DeviceProfile, host: HostProfile, entries: Size, peers: int) -> FloatArray:
    """Seconds in which an iteration's graph is made anew of `entries` entries, inner ones and those kept.

    The larger of the device's, its traffic of `rebuild_bytes` an entry and its launches, and the host's calls.
    """
    rate = device.memory_bandwidth.value * device.elementwise_efficiency.value
    busy = entries * host.rebuild_bytes.value / rate + REBUILD_LAUNCHES * device.launch_s.value
    return np.maximum(busy, making_core_seconds(host, peers))


def making_core_seconds(host: HostProfile, peers: int) -> Seconds:
    """Core-seconds of the calls that make a graph."""
    return (REBUILD_OPERATIONS + MAKING_OPERATIONS * peers) * host.operation_s.value


def drawing_core_seconds(host: HostProfile, peers: int) -> float | FloatArray:
    """Core-seconds of the calls that select for each peer and send it ids, in rounds, beside the draws themselves."""
    return (SELECTING_OPERATIONS + ID_OPERATIONS) * peers * host.operation_s.value


def sending_seconds(
    device: DeviceProfile, host: HostProfile, packed: FloatArray, rows: IntArray, width: int, peers: int, *, drawn: bool
) -> FloatArray:
    """Seconds in which rows are packed peer by peer; packed: at once, as one kernel. drawn: divided by their rate too.

    A round a peer: every kernel is launched for each, and the host calls for each.
    """
    launch = device.launch_s.value
    busy = packed + (peers - 1) * launch
    if drawn:
        busy = busy + elementwise_seconds(device, rows * float(width), DIVISION_PASSES) + (peers - 1) * launch
    return np.maximum(busy, SENDING_OPERATIONS * peers * host.operation_s.value)


def receiving_seconds(device: DeviceProfile, host: HostProfile, unpacked: FloatArray, peers: int) -> FloatArray:
    """Seconds in which received rows are taken in peer by peer; unpacked: at once, as one kernel."""
    busy = unpacked + (peers - 1) * device.launch_s.value
    return np.maximum(busy, RECEIPT_OPERATIONS * peers * host.operation_s.value)


def host_bound(cost: LayerCost, host: HostProfile) -> LayerCost:
    """The layer, each pass of it no shorter than its calls: what the device is quicker by it waits, in the update."""
    calls = LAYER_OPERATIONS * host.operation_s.value
    forward, backward = cost.aggregate + cost.update, cost.update_backward + cost.aggregate_backward
    return LayerCost(
        aggregate=cost.aggregate,
        update=cost.update + np.maximum(calls - forward, 0.0),
        update_backward=cost.update_backward + np.maximum(calls - backward, 0.0),
        aggregate_backward=cost.aggregate_backward,
    )


def tensors(shape: LayerShape, *, norm: bool) -> int:
    """Parameter tensors of a layer: weights and biases, of both maps of GraphSAGE; a GAT's vectors, a norm's two."""
    maps = 2 if shape.heads or (shape.gathers and shape.update_in == 2 * shape.d_in) else 1
    return 2 * maps + (2 if norm else 0)


def layer_gradient_bytes(shape: LayerShape) -> int:
    """Bytes of the gradient of one layer; those of all layers are `gradient_bytes`."""
    return VALUE * shape.weights


def reduce_seconds(host: HostProfile, count: int, workers: int, latency_s: float) -> FloatArray:
    """Seconds that `count` all-reduces around a ring, one after the other, take beyond one of all their bytes.

    A call for each, and for all but one the latency of its 2 (P - 1) steps.
    """
    return np.asarray(count * host.operation_s.value + (count - 1) * 2 * (workers - 1) * latency_s, dtype=np.float64)


def step_launch_seconds(device: DeviceProfile, count: int) -> Size:
    """Seconds of the launches of an optimiser's step over `count` tensors, beyond the one launch of a fused step."""
    return (STEP_LAUNCHES * count - 1) * device.launch_s.value
