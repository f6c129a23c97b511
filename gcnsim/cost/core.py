"""What a worker that trains on a CPU core does: the kernels of the runtime, one by one.

Such a worker sums over its inner and over its boundary columns in two products, so that each can start when its rows
are there, and receives rows where they are read. Seconds are those of one core that nothing else uses.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gcnsim.cost.device import elementwise_seconds, gemm_seconds, spmm_seconds
from gcnsim.ids import FloatArray, IntArray
from gcnsim.profile import DeviceProfile, HostProfile
from gcnsim.workload import LayerShape

RELU_PASSES = 2
"""ReLU forward reads its input and writes its output."""

RELU_BACKWARD_PASSES = 3
"""ReLU backward reads the gradient and the output and writes the gradient."""

NORM_PASSES = 4
"""LayerNorm reads its input twice (moments, then values) and writes it; its backward pass costs the same again."""


@dataclass(frozen=True, slots=True)
class Kept:
    """What one worker trains, per graph, int64[T]: entries between inner nodes (self-loops included), entries that
    cross, and boundary rows they need. inner: its inner nodes."""

    inner: int
    inner_entries: IntArray
    cross_entries: IntArray
    boundary_rows: IntArray


@dataclass(frozen=True, slots=True)
class CoreCost:
    """Core-seconds of one worker's kernels of one layer, float64[T] each (0 where a kernel does not run)."""

    inner: FloatArray
    boundary: FloatArray
    update: FloatArray
    update_backward: FloatArray
    boundary_backward: FloatArray
    inner_backward: FloatArray


def core_cost(device: DeviceProfile, shape: LayerShape, kept: Kept, *, first: bool, last: bool, norm: bool) -> CoreCost:
    """The kernels of one layer on one worker. norm: a LayerNorm stands before each hidden layer's activation."""
    nodes, zero = float(kept.inner), np.zeros(kept.inner_entries.shape)
    inner = kept.inner_entries.astype(np.float64)
    cross, rows = kept.cross_entries.astype(np.float64), kept.boundary_rows.astype(np.float64)
    width = shape.d_in
    values = nodes * shape.d_out
    hidden = 0.0 if last else 1.0
    extra = NORM_PASSES if norm else 0
    forward = gemm_seconds(device, nodes, shape.update_in, shape.d_out)
    activation = hidden * elementwise_seconds(device, values, RELU_PASSES + extra)
    undone = hidden * elementwise_seconds(device, values, RELU_BACKWARD_PASSES + extra)
    weight = gemm_seconds(device, shape.update_in, nodes, shape.d_out)
    back = 0.0 if first else gemm_seconds(device, nodes, shape.d_out, shape.update_in)
    return CoreCost(
        inner=spmm_seconds(device, inner, nodes, width, nodes),
        boundary=np.where(cross > 0, spmm_seconds(device, cross, nodes, width, rows), 0.0),
        update=zero + forward + activation,
        update_backward=zero + undone + weight + back,
        boundary_backward=zero if first else np.where(cross > 0, spmm_seconds(device, cross, rows, width, nodes), 0.0),
        inner_backward=zero if first else spmm_seconds(device, inner, nodes, width, nodes),
    )


def build_core_seconds(host: HostProfile, kept: IntArray) -> FloatArray:
    """Core-seconds of turning `kept` drawn entries into the matrices of a graph."""
    return np.asarray(kept / host.build_entries_per_s.value, dtype=np.float64)


def socket_core_seconds(host: HostProfile, nbytes: FloatArray) -> FloatArray:
    """Core-seconds that a message of `nbytes` takes at one end: its call and its bytes; nothing for an empty one."""
    busy = host.message_s.value + nbytes / host.socket_bandwidth.value
    return np.where(nbytes > 0, busy, 0.0)
