"""What a worker that trains on a CPU core does: the kernels of the runtime, one by one.

Such a worker sums over its inner and over its boundary columns in two products, so that each can start when its rows
are there, and receives rows where they are read. Seconds are those of one core that nothing else uses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gcnsim.cost.device import INDEX, VALUE, Size, elementwise_seconds
from gcnsim.cost.far import device_in_training
from gcnsim.cost.maps import map_seconds, weight_seconds
from gcnsim.cost.sums import Product, product_seconds
from gcnsim.hardware import DeviceProfile, HostProfile, SumFigures
from gcnsim.ids import Float32Array, FloatArray, IntArray
from gcnsim.workload import LayerShape

RELU_PASSES = 2
"""ReLU forward reads its input and writes its output."""

RELU_BACKWARD_PASSES = 3
"""ReLU backward reads the gradient and the output and writes the gradient."""

RESULT_PASSES = 2
"""A sum's result is zeroed, then written."""

NORM_OF_ROWS_PASSES = 4
"""Rows read and their squares written, read again and added to the sums."""

FRESH = 3
"""Times the bytes of rows that are read between their making and the sum over them: input, result and themselves."""

ADDING_PASSES = 3
"""Own and received values read, their sum written."""

NORM_PASSES = 4
"""LayerNorm reads its input twice (moments, then values) and writes it; its backward pass costs the same again."""

JOINED_PASSES = 2
"""Of layers that join inner and boundary rows: these are read, and written side by side."""


@dataclass(frozen=True, slots=True)
class Kept:
    """What one worker trains, per graph, int64[T]: entries between inner nodes (self-loops included), entries that
    cross, and boundary rows they need. inner: its inner nodes. reuse: float[4, W], how soon its sums read rows again
    (`gcnsim.partition.facts`); None: not known. between: bytes that all workers of its machine touch in an iteration.
    beside: how many of them compute at once.
    """

    inner: int
    inner_entries: IntArray
    cross_entries: IntArray
    boundary_rows: IntArray
    reuse: Float32Array | None = None
    between: float = 0.0
    beside: int = 1


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
    ahead = device_in_training(device, kept.between)
    nodes, zero = float(kept.inner), np.zeros(kept.inner_entries.shape)
    sums = neighbour_sums(device, kept, shape.d_in, first=first) if shape.gathers else (zero,) * 4
    values = nodes * shape.d_out
    hidden = 0.0 if last else 1.0
    extra = NORM_PASSES if norm else 0
    forward = map_seconds(ahead, nodes, shape.update_in, shape.d_out)
    activation = hidden * elementwise_seconds(ahead, values, RELU_PASSES + extra)
    undone = hidden * elementwise_seconds(device, values, RELU_BACKWARD_PASSES + extra)
    weight = weight_seconds(device, nodes, shape.update_in, shape.d_out)
    back = 0.0 if first else map_seconds(device, nodes, shape.d_out, shape.update_in)
    return CoreCost(
        inner=sums[0],
        boundary=sums[2],
        update=zero + forward + activation,
        update_backward=zero + undone + weight + back,
        boundary_backward=zero if first else sums[3],
        inner_backward=zero if first else sums[1],
    )


def neighbour_sums(
    device: DeviceProfile, kept: Kept, width: int, *, first: bool
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Seconds of the four sums (`gcnsim.partition.PRODUCTS`) of rows of `width` values. first: rows are the input."""
    if device.sums is not None and kept.reuse is not None:
        return _by_order(device.sums, kept.reuse, kept, width, first=first)
    return _by_size(device, kept, width)


def _by_size(device: DeviceProfile, kept: Kept, width: int) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Seconds of the four sums (`gcnsim.partition.PRODUCTS`) by their sizes alone."""
    nodes = float(kept.inner)
    entries = kept.inner_entries.astype(np.float64) - nodes
    cross, rows = kept.cross_entries.astype(np.float64), kept.boundary_rows.astype(np.float64)
    # A node's own row, by its self-loop, is read in order: no gathering.
    own = float(result_seconds(device, nodes * width)) / RESULT_PASSES
    inner = sum_seconds(device, entries, nodes, width, nodes) + own
    boundary = np.where(cross > 0, sum_seconds(device, cross, nodes, width, rows), 0.0)
    back = np.where(cross > 0, sum_seconds(device, cross, rows, width, nodes), 0.0)
    return inner, inner, boundary, back


def _by_order(
    figures: SumFigures, reuse: Float32Array, kept: Kept, width: int, *, first: bool
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """The same by how soon each reads its rows again.

    Features and results were used an iteration ago; other rows were made or received just before, with FRESH passes
    over as many in between.
    """
    nodes, fresh = float(kept.inner), float(VALUE * width * FRESH * kept.beside)
    read = kept.between if first else min(fresh * nodes, kept.between)
    received = min(fresh * float(kept.boundary_rows.mean()), kept.between)

    def seconds(which: int, entries: IntArray, rows: Size, since: float) -> FloatArray:
        turned = reuse[which ^ 1]
        product = Product(entries, rows, width, reuse[which], turned, since, kept.between)
        return product_seconds(figures, product)

    return (
        seconds(0, kept.inner_entries, nodes, read),
        seconds(1, kept.inner_entries, nodes, read),
        seconds(2, kept.cross_entries, nodes, received),
        seconds(3, kept.cross_entries, kept.boundary_rows, read),
    )


def bytes_between(inner: float, rows: float, shapes: Sequence[LayerShape], *, norm: bool) -> float:
    """Bytes that a worker touches in an iteration, about: per layer its input and their sum, what the map, the norm and
    the activation make of it, and all their gradients; the rows of others and their gradients."""
    extra = 1 if norm else 0
    own = sum(2 * 2 * shape.d_in + (2 + extra) * 2 * shape.d_out for shape in shapes)
    return float(VALUE * (inner * own + rows * sum(2 * shape.d_in for shape in shapes)))


def sum_seconds(device: DeviceProfile, entries: Size, rows: Size, width: int, gathered: Size) -> FloatArray:
    """Seconds of rows x gathered sparse sums over `entries` entries of `width` values.

    Per entry its index, its value and one gathered row, at the efficiency that the size of all gathered rows gives; and
    the result, zeroed and written, as an elementwise pass. Sparse rows are short: the result can be the larger part.
    """
    traffic = entries * (INDEX + VALUE + VALUE * width)
    share: Size = device.spmm_efficiency.value
    if device.spmm_curve is not None:
        share = device.spmm_curve.at(np.asarray(gathered * (VALUE * width), dtype=np.float64))
    seconds = traffic / (device.memory_bandwidth.value * share) + result_seconds(device, rows * width)
    return np.where(traffic > 0, seconds + device.launch_s.value, 0.0)


def result_seconds(device: DeviceProfile, values: Size) -> FloatArray:
    """Seconds to zero and write `values` values of a result."""
    rate = device.memory_bandwidth.value * device.elementwise_efficiency.value
    return np.asarray(values * (VALUE * RESULT_PASSES) / rate, dtype=np.float64)


def norms_seconds(device: DeviceProfile, inner: int, shapes: Sequence[LayerShape]) -> float:
    """Seconds to measure the norms of what every inner node sends: each layer's map, then its squares summed."""
    each = [
        map_seconds(device, float(inner), shape.d_in, width)
        + elementwise_seconds(device, float(inner * width), NORM_OF_ROWS_PASSES)
        for shape, width in ((shape, shape.projected if shape.joins else shape.d_out) for shape in shapes)
    ]
    return float(np.sum(each))


def build_core_seconds(host: HostProfile, kept: IntArray) -> FloatArray:
    """Core-seconds of turning `kept` drawn entries into the matrices of a graph."""
    return np.asarray(kept / host.build_entries_per_s.value, dtype=np.float64)


def adding_seconds(device: DeviceProfile, nbytes: float) -> float:
    """Core-seconds to add `nbytes` received bytes of fp32 values to one's own."""
    return float(elementwise_seconds(device, nbytes / VALUE, ADDING_PASSES))


def socket_core_seconds(host: HostProfile, nbytes: FloatArray) -> FloatArray:
    """Core-seconds that the bytes of a message take at one end."""
    return nbytes / host.socket_bandwidth.value
