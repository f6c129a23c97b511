"""What training costs its host: calls of a framework before the device can begin, messages, and work on CPU cores.

The host issues the GPU's work ahead, until it waits for a result. Between two such waits, a worker takes the longer of
the host's calls and the GPU's kernels. A worker that exchanges rows of the same iteration waits in every layer; any
other waits once in an iteration, for the loss. Calls of the optimizer's step and of the loop come after that wait, so
nothing hides them. A worker that waits in every product has each operation at least as long as its calls (`issued`).

The counts are of `runtime.train`, read off three runs on an H200 that only the host bound (digits, 2 to 4 layers, 3.5
to 4.2 ms an iteration, a third of it for recording). Their sum is known to some 10 %, how it divides less well.

Released code (the loops of PipeGCN and BNS-GCN; PSC-GCN is based on them) rotates over the P - 1 peers. Every iteration
rebuilds a graph from all inner and kept entries. Per layer and direction, rows are indexed, divided by the rate, copied
and sent peer by peer, and copied again on receipt. Each step is one call, `operation_s` of host time.

Times of kernels on cores are measured (`gcnsim.records`); no law stands for them. Where one measured operation
is several of a schedule, their shares are those of the bytes and flop that each moves and computes, by the roofline of
`gcnsim.cost.device` with the catalogue's figures: sums over inner and over boundary columns, maps and dropout. Messages
and the values that all-reduces add are never measured with kernels; what they take is here too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

import numpy as np

from gcnsim.core.ids import FloatArray, IntArray, Seconds
from gcnsim.cost.device import VALUE, Size, elementwise_seconds, gemm_seconds, spmm_seconds
from gcnsim.cost.layers import DROPOUT_PASSES, LayerCost, twice_mapped
from gcnsim.hardware import DeviceProfile, HostProfile
from gcnsim.timeline import OpKind
from gcnsim.workload import DROPOUT_FIRST, NO_DROPOUT, LayerShape

LAYER_CALLS = 7
"""Framework calls of a layer, and as many backward. In published code: dropout, concatenation, sum, division by the
degree, product, norm, activation; `runtime.train` needs as many without a norm.
"""

LOSS_CALLS = 20
"""Of the loss and of its gradient: rows of the training nodes, their loss, and how many are predicted correctly."""

STEP_CALLS = 32
"""Of the optimizer's step, and of the loop from one iteration to the next."""

PRODUCT_CALLS: Final = 2
"""Of one sparse product: the sum and its addition to those before."""

_CALLS: Final[Mapping[OpKind, int]] = MappingProxyType(
    {OpKind.AGGREGATE: PRODUCT_CALLS, OpKind.UPDATE: LAYER_CALLS - PRODUCT_CALLS, OpKind.LOSS: LOSS_CALLS}
)


def layer_calls(shape: LayerShape, *, norm: bool) -> int:
    """Framework calls of a layer's pass; GraphSAGE has a product and an addition more. norm: whether it has a norm."""
    return LAYER_CALLS + 2 * twice_mapped(shape) + norm


def host_bound(cost: LayerCost, call_s: Size, number: int = LAYER_CALLS) -> LayerCost:
    """The layer with each pass at least as long as `number` host calls; the waiting time is added to the update."""
    calls = number * call_s
    forward, backward = cost.aggregate + cost.update, cost.update_backward + cost.aggregate_backward
    return replace(
        cost,
        update=cost.update + np.maximum(calls - forward, 0.0),
        update_backward=cost.update_backward + np.maximum(calls - backward, 0.0),
    )


def issued(kind: OpKind, seconds: Size, call_s: Size) -> FloatArray:
    """Seconds of one operation with its host calls of `call_s` each: the step adds them, others overlap them."""
    if kind is OpKind.STEP:
        return np.asarray(seconds + STEP_CALLS * call_s, dtype=np.float64)
    return np.asarray(np.maximum(seconds, _CALLS[kind] * call_s), dtype=np.float64)


def with_host_calls(
    layers: Sequence[LayerCost],
    loss: FloatArray,
    call_s: Size,
    shapes: Sequence[LayerShape],
    *,
    norm: bool,
    waits_in_layers: bool,
) -> tuple[list[LayerCost], FloatArray]:
    """The layers and the loss of an iteration with the time that the host takes longer than the GPU.

    loss: seconds, float64[] or shaped as a layer's. call_s: seconds of a call. norm: whether hidden layers have a norm.
    waits_in_layers: whether the host waits for rows of the same iteration; else what it takes longer in all is added to
    the loss.
    """
    numbers = [layer_calls(shape, norm=norm and shape is not shapes[-1]) for shape in shapes]
    if waits_in_layers:
        bound = [host_bound(cost, call_s, number) for cost, number in zip(layers, numbers, strict=True)]
        return bound, np.maximum(loss, LOSS_CALLS * call_s)
    busy = sum((cost.seconds for cost in layers), loss)
    calls = (2 * sum(numbers) + LOSS_CALLS) * call_s
    return list(layers), np.asarray(loss + np.maximum(calls - busy, 0.0), dtype=np.float64)


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


ADDING_PASSES = 3
"""Own and received values read, their sum written."""


@dataclass(frozen=True, slots=True)
class Kept:
    """What one worker trains, per graph, int64[T]: its nodes, entries between them (self-loops included), entries that
    cross, and boundary rows they need; None: none."""

    nodes: IntArray
    inner_entries: IntArray
    cross_entries: IntArray | None = None
    boundary_rows: IntArray | None = None


@dataclass(frozen=True, slots=True)
class CoreShares:
    """What operations of one layer share measured times by, float64[T] each (0 where one does not run).

    inner, boundary: sums over a worker's own rows and over received ones. boundary_backward: of the latter's gradients;
    all else is backward what it is forward. update: maps and activation. dropped, dropped_boundary: dropout of its own
    rows and of received ones.
    """

    inner: FloatArray
    boundary: FloatArray
    boundary_backward: FloatArray
    update: FloatArray
    dropped: FloatArray
    dropped_boundary: FloatArray


def core_shares(device: DeviceProfile, shape: LayerShape, kept: Kept, dropout: str) -> CoreShares:
    """The shares of one layer on one worker. dropout: one of `gcnsim.workload.DROPOUTS`.

    Attention waits for the boundary's rows, so all that it sums is in `boundary`; backward, the gradient of all rows is
    ready at once.
    """
    nodes, inner = kept.nodes.astype(np.float64), kept.inner_entries.astype(np.float64)
    zero = np.zeros(inner.shape)
    cross, received = (zero if given is None else given + zero for given in (kept.cross_entries, kept.boundary_rows))
    rows = nodes + received if shape.heads else nodes
    update = gemm_seconds(device, rows, shape.update_in, shape.d_out)
    own, others = _dropped(device, dropout, shape, nodes, received)
    if shape.heads or not shape.gathers:
        summed = spmm_seconds(device, inner + cross, nodes, shape.d_in) if shape.gathers else zero
        return CoreShares(zero, summed, summed, update, own, others)
    return CoreShares(
        inner=spmm_seconds(device, inner, nodes, shape.d_in),
        boundary=np.where(cross > 0, spmm_seconds(device, cross, nodes, shape.d_in), 0.0),
        boundary_backward=np.where(cross > 0, spmm_seconds(device, cross, received, shape.d_in), 0.0),
        update=update,
        dropped=own,
        dropped_boundary=others,
    )


def _dropped(
    device: DeviceProfile, dropout: str, shape: LayerShape, own: FloatArray, received: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Of a worker's own rows and of received ones, where they are read. Attention drops all rows at once, when
    they are there; where the sum was made before training, own rows alone are dropped."""
    others = none = np.zeros(own.shape)
    if dropout == NO_DROPOUT:
        own = none
    elif shape.gathers and dropout != DROPOUT_FIRST:
        own, others = (none, own + received) if shape.heads else (own, received)
    return (
        elementwise_seconds(device, own * shape.d_in, DROPOUT_PASSES),
        elementwise_seconds(device, others * shape.d_in, DROPOUT_PASSES),
    )


def norms_seconds(device: DeviceProfile, inner: int, shapes: tuple[LayerShape, ...]) -> float:
    """The share of measuring the norms of what every inner node sends: each layer's map once more."""
    widths = [shape.projected if shape.heads else shape.d_out for shape in shapes]
    each = [gemm_seconds(device, float(inner), shape.d_in, width) for shape, width in zip(shapes, widths, strict=True)]
    return float(np.sum(each))


def adding_seconds(device: DeviceProfile, nbytes: float) -> float:
    """Core-seconds to add `nbytes` received bytes of fp32 values to one's own."""
    return float(elementwise_seconds(device, nbytes / VALUE, ADDING_PASSES))


def socket_core_seconds(host: HostProfile, nbytes: FloatArray) -> FloatArray:
    """Core-seconds that the bytes of a message take at one end."""
    return nbytes / host.socket_bandwidth.value
