"""The overhead of the published systems' code, independent of the amount of sampling.

Counts come from the released loops of PipeGCN and BNS-GCN (PSC-GCN is based on them), which rotate over the P - 1
peers. Every iteration rebuilds a graph from all inner and kept entries. Per layer and direction, rows are indexed,
divided by the rate, copied and sent peer by peer, and copied again on receipt. Each step is one framework call,
`operation_s` of host time. The host issues the device's work between two synchronisations, so a phase takes max(host,
device).
"""

from __future__ import annotations

import numpy as np

from gcnsim.core.ids import FloatArray, IntArray, Seconds
from gcnsim.cost.device import VALUE, Size, elementwise_seconds
from gcnsim.hardware import DeviceProfile, HostProfile
from gcnsim.workload import LayerShape

WIDE_ID = 8
"""Bytes of a node id in the frameworks (64-bit integers)."""

REBUILD_LAUNCHES = 25
"""Kernels that build a graph: concatenations, two radix sorts (rows and columns), offsets, degrees."""

REBUILD_OPERATIONS = 8
"""Framework calls that build a graph, excluding those per peer."""

MAKING_OPERATIONS = 2
"""Framework calls per peer that build a graph: select the entries of its nodes and append them."""

SELECTING_OPERATIONS = 2
"""Framework calls per peer that select boundary nodes: sample, then index the ids."""

ID_OPERATIONS = 3
"""Framework calls per peer that exchange ids, one round each: copy, message, copy."""

SENDING_OPERATIONS = 4
"""Framework calls per peer, layer and direction to send rows: index, divide, blocking copy, send."""

RECEIPT_OPERATIONS = 1
"""Framework calls per peer, layer and direction to receive rows: a copy."""

DIVISION_PASSES = 2
"""Reads and writes of rows that are divided by the rate."""

STEP_LAUNCHES = 12
"""Kernels of an optimiser that updates tensor by tensor (Adam)."""


def rebuild_seconds(device: DeviceProfile, host: HostProfile, entries: Size, peers: int) -> FloatArray:
    """Seconds to rebuild an iteration's graph of `entries` entries (inner and kept).

    The larger of the device's time (traffic of `rebuild_bytes` per entry, plus launches) and the host's calls.
    """
    rate = device.memory_bandwidth.value * device.elementwise_efficiency.value
    busy = entries * host.rebuild_bytes.value / rate + REBUILD_LAUNCHES * device.launch_s.value
    return np.maximum(busy, making_core_seconds(host, peers))


def making_core_seconds(host: HostProfile, peers: int) -> Seconds:
    """Core-seconds of the framework calls that build a graph."""
    return (REBUILD_OPERATIONS + MAKING_OPERATIONS * peers) * host.operation_s.value


def drawing_core_seconds(host: HostProfile, peers: int) -> float | FloatArray:
    """Core-seconds of the framework calls that select boundary nodes and send their ids, without the sampling."""
    return (SELECTING_OPERATIONS + ID_OPERATIONS) * peers * host.operation_s.value


def sending_seconds(
    device: DeviceProfile, host: HostProfile, packed: FloatArray, rows: IntArray, width: int, peers: int, *, drawn: bool
) -> FloatArray:
    """Seconds to pack rows peer by peer. packed: the time of one kernel for all peers. drawn: rows are also divided by
    the rate.

    One round per peer: every kernel and every host call is repeated for each peer.
    """
    launch = device.launch_s.value
    busy = packed + (peers - 1) * launch
    if drawn:
        busy = busy + elementwise_seconds(device, rows * float(width), DIVISION_PASSES) + (peers - 1) * launch
    return np.maximum(busy, SENDING_OPERATIONS * peers * host.operation_s.value)


def receiving_seconds(device: DeviceProfile, host: HostProfile, unpacked: FloatArray, peers: int) -> FloatArray:
    """Seconds to copy received rows peer by peer. unpacked: the time of one kernel for all peers."""
    busy = unpacked + (peers - 1) * device.launch_s.value
    return np.maximum(busy, RECEIPT_OPERATIONS * peers * host.operation_s.value)


def tensors(shape: LayerShape, *, norm: bool) -> int:
    """Parameter tensors of a layer: weights and biases (twice for GraphSAGE); a GAT's vectors, a norm's two."""
    maps = 2 if shape.heads or (shape.gathers and shape.update_in == 2 * shape.d_in) else 1
    return 2 * maps + (2 if norm else 0)


def layer_gradient_bytes(shape: LayerShape) -> int:
    """Bytes of the gradient of one layer; `gradient_bytes` is the sum over layers."""
    return VALUE * shape.weights


def reduce_seconds(host: HostProfile, count: int, workers: int, latency_s: float) -> FloatArray:
    """Extra seconds of `count` consecutive ring all-reduces compared with one of all their bytes.

    One call each, and for all but one the latency of its 2 (P - 1) steps.
    """
    return np.asarray(count * host.operation_s.value + (count - 1) * 2 * (workers - 1) * latency_s, dtype=np.float64)


def step_launch_seconds(device: DeviceProfile, count: int) -> Size:
    """Extra seconds of the launches of an optimiser step over `count` tensors, compared with one fused step."""
    return (STEP_LAUNCHES * count - 1) * device.launch_s.value
