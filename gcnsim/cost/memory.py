"""The GPU memory of a worker: bytes by component, and whether they fit.

The components are the tensors of the training runtime. BNS-GCN's Eq. 4 gives (3 n_in + n_bd) d_l values per layer: the
sum's input (n_in + n_bd) and the operands of the dense product (2 n_in). Here the inner rows of the input are the
output of the previous layer. So a layer has n_in d_l values for its sum and n_in d_(l+1) for its output. Boundary rows
are in buffers: one outgoing and one incoming per direction, layer and slot of the staleness ring.

Systems without boundary rows hold block rows (CAGNET, SANCUS) or swap (ROC). Sources: CAGNET, 1D and 1.5D algorithms;
SANCUS, Algorithm 1 and Table 5; ROC as described by PipeGCN; the order of kernels from `gcnsim.methods`. Not compared
with the memory of a real GPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Final

from gcnsim.core.ids import Bytes
from gcnsim.cost.device import INDEX, VALUE, payload_width
from gcnsim.cost.layers import parameters
from gcnsim.timeline import Direction
from gcnsim.workload import LayerShape

ENTRY: Final = 2 * (INDEX + VALUE) + 8
"""Bytes of a stored entry: column and weight of the matrix and of its transpose, and an 8-byte index that links them.
"""

ID: Final = 8
"""Bytes of a label, and of a local id used for gathering."""

SLACK: Final = 1.125
"""A buffer grows by an extra eighth, so that the next graph does not make it grow again."""

MOMENTS: Final = 2
"""Adam keeps two values for each parameter."""

RESERVED: Final = 1e9
"""Bytes of GPU memory that tensors cannot use: context, libraries and fragmentation. Assumed; PaGraph reserves as much.
"""


@dataclass(frozen=True, slots=True)
class Memory:
    """The GPU memory of one worker at the peak of an iteration, in bytes.

    features: input rows and labels. adjacency: matrices with their transposes. activations: values for the backward
    pass. boundary: boundary rows and gradients in buffers. cache: cached input rows. workspace: the pass that needs
    most, and logits.
    """

    features: Bytes
    adjacency: Bytes
    activations: Bytes
    boundary: Bytes
    cache: Bytes
    model: Bytes
    gradients: Bytes
    optimizer: Bytes
    workspace: Bytes

    @property
    def total(self) -> Bytes:
        """The sum of all components."""
        return float(sum(getattr(self, field.name) for field in fields(self)))

    @property
    def held(self) -> Bytes:
        """The memory that persists between passes: everything except the workspace."""
        return self.total - self.workspace

    def fits(self, capacity: Bytes) -> bool:
        """Whether it fits in a device of `capacity` bytes, besides RESERVED."""
        return self.total + RESERVED <= capacity


@dataclass(frozen=True, slots=True)
class MemoryCounts:
    """The counts that determine one worker's memory.

    inner: its nodes. entries: stored entries of its rows with self-loops; crossing: those to other parts. boundary: its
    boundary nodes. rows, asked: most boundary rows that a trained graph receives and sends. kept, kept_crossing: most
    entries of a sampled graph. graphs: sampled graphs in use at once. cached: cached rows. tau: slots of the staleness
    ring.
    """

    inner: int
    entries: int
    crossing: int
    boundary: int
    rows: int
    asked: int
    kept: int = 0
    kept_crossing: int = 0
    graphs: int = 0
    cached: int = 0
    tau: int = 0


def partition_memory(
    shapes: Sequence[LayerShape],
    held: MemoryCounts,
    *,
    norm: bool,
    averages: Sequence[Direction] = (),
    payload: str = "fp32",
) -> Memory:
    """The memory of a worker of a partition-parallel method.

    norm: a LayerNorm follows each hidden layer and keeps its input. averages: directions whose received rows enter a
    moving average (PipeGCN's smoothing). payload: number format of boundary rows in messages and buffers.
    """
    weights, inner = parameters(tuple(shapes)), held.inner
    sums = sum(shape.d_in for shape in shapes if shape.gathers) + (0 if shapes[0].gathers else shapes[0].d_in)
    hidden = sum(shape.d_out for shape in shapes[:-1]) * (2 if norm else 1)
    widest = max(shape.d_in for shape in shapes[1:] or shapes)
    return Memory(
        features=inner * (VALUE * shapes[0].d_in + ID),
        adjacency=_adjacency(held),
        activations=VALUE * inner * (sums + hidden),
        boundary=_buffers(shapes, held, payload) + _averages(shapes, held, averages),
        cache=VALUE * held.cached * shapes[0].d_in,
        model=VALUE * weights,
        gradients=VALUE * weights,
        optimizer=VALUE * MOMENTS * weights,
        workspace=VALUE * inner * (2 * widest + 3 * shapes[-1].d_out) + _unpacked(shapes, held, payload),
    )


def _adjacency(held: MemoryCounts) -> Bytes:
    """The two blocks of the whole graph, and the blocks of each sampled graph in use with the requested ids."""

    def block(entries: int, rows: int, columns: int) -> int:
        return entries * ENTRY + (rows + columns + 2) * INDEX

    inner = block(held.entries - held.crossing, held.inner, held.inner)
    whole = inner + (block(held.crossing, held.inner, held.boundary) if held.boundary else 0)
    drawn = block(held.kept_crossing, held.inner, held.rows) + ID * held.asked
    if held.kept:
        drawn += block(held.kept - held.kept_crossing, held.inner, held.inner)
    return whole + held.graphs * drawn


def _widths(shapes: Sequence[LayerShape]) -> tuple[int, int]:
    """The summed widths of rows sent in the forward and in the backward pass."""
    return sum(s.d_in for s in shapes if s.gathers), sum(s.d_in for s in shapes[1:] if s.gathers)


def _buffers(shapes: Sequence[LayerShape], held: MemoryCounts, payload: str) -> Bytes:
    """One outgoing and one incoming buffer per direction, layer and slot, in the format of the messages."""
    exchanging = [*(s for s in shapes if s.gathers), *(s for s in shapes[1:] if s.gathers)]
    row = sum(payload_width(shape.d_in, payload) for shape in exchanging)
    return SLACK * max(held.tau, 1) * (held.rows + held.asked) * row


def _unpacked(shapes: Sequence[LayerShape], held: MemoryCounts, payload: str) -> Bytes:
    """One layer's rows or gradients in fp32 before packing or after unpacking; none if messages are fp32."""
    widest = max((shape.d_in for shape in shapes if shape.gathers), default=0)
    return 0 if payload == "fp32" else VALUE * held.rows * widest


def _averages(shapes: Sequence[LayerShape], held: MemoryCounts, directions: Sequence[Direction]) -> Bytes:
    """One value per received value: rows received forward, gradients received backward."""
    forward, backward = _widths(shapes)
    values = {Direction.FORWARD: held.rows * forward, Direction.BACKWARD: held.asked * backward}
    return VALUE * sum(values[direction] for direction in directions)


ONE_WAY: Final = INDEX + VALUE
"""Bytes of an entry of a symmetric matrix: a column and a value, used in both directions."""


@dataclass(frozen=True, slots=True)
class Block:
    """The counts of one worker's block row.

    rows: rows of its block. entries: stored entries of the stages it multiplies. stages: blocks of its block row.
    received: rows of the largest other block. replicas: workers with the same block. stored: rows of other blocks that
    it keeps a copy of (SANCUS). copied: its rows whose last sent copy is kept (the gap test).
    """

    rows: int
    entries: int
    stages: int
    received: int
    replicas: int = 1
    stored: int = 0
    copied: int = 0


def block_memory(shapes: Sequence[LayerShape], block: Block, *, norm: bool) -> Memory:
    """The memory of a worker that multiplies block rows.

    The adjacency is symmetric, so one copy serves both directions. The input of a layer is kept for the backward pass
    (the weight gradient is the input times the sum of the gradients); sums are not kept. One block is received at a
    time; a stored one (SANCUS) is received in place.
    """
    rows, weights = block.rows, parameters(tuple(shapes))
    widths = [max(shape.d_in, shape.d_out) for shape in shapes if shape.gathers]
    widest = max(widths, default=0)
    buffers = (0 if block.stored else block.received * widest) + (rows * widest if block.replicas > 1 else 0)
    return Memory(
        features=_features(shapes, rows),
        adjacency=ONE_WAY * block.entries + INDEX * block.stages * (rows + 1),
        activations=VALUE * rows * sum(shape.d_out for shape in shapes[:-1]) * (2 if norm else 1),
        boundary=VALUE * buffers,
        cache=_stored(shapes, block),
        model=VALUE * weights,
        gradients=VALUE * weights,
        optimizer=VALUE * MOMENTS * weights,
        workspace=VALUE * rows * (_passing(shapes) + 3 * shapes[-1].d_out),
    )


def _features(shapes: Sequence[LayerShape], rows: int) -> Bytes:
    return float(rows * (VALUE * shapes[0].d_in + ID))


def _stored(shapes: Sequence[LayerShape], block: Block) -> Bytes:
    """Copies of others' rows (of the input twice; SANCUS, Table 5: 8 bytes a value), and of the rows sent last."""
    summed = [shape.d_in for shape in shapes if shape.gathers]
    first = shapes[0].d_in if shapes[0].gathers else 0
    return float(VALUE * (block.stored * (sum(summed) + first) + block.copied * sum(summed)))


def _passing(shapes: Sequence[LayerShape]) -> int:
    """Values per row at the layer that needs most: its sum and output, or its gradients and their sum."""
    forward = max(shape.d_in + shape.d_out for shape in shapes)
    backward = max(2 * shape.d_out + (shape.d_in if layer else 0) for layer, shape in enumerate(shapes))
    return max(forward, backward)


def swapped_memory(shapes: Sequence[LayerShape], inner: int, boundary: int, entries: int) -> Memory:
    """The least GPU memory of a ROC worker: its model, and the step that needs most (workspace).

    inner: nodes of its part. boundary: boundary rows that its sums read. entries: stored entries of its rows, loaded
    with each sum. A released memory manager keeps more if possible, to copy less.
    """
    weights = parameters(tuple(shapes))
    steps = [_step(shape, inner, boundary, entries, layer) for layer, shape in enumerate(shapes)]
    return Memory(
        features=0.0,
        adjacency=0.0,
        activations=0.0,
        boundary=0.0,
        cache=0.0,
        model=VALUE * weights,
        gradients=VALUE * weights,
        optimizer=VALUE * MOMENTS * weights,
        workspace=max(*steps, VALUE * inner * 3.0 * shapes[-1].d_out),
    )


def _step(shape: LayerShape, inner: int, boundary: int, entries: int, layer: int) -> Bytes:
    """Bytes of the larger step of a layer: a dense product, forward or backward, or a sum with its entries."""
    dense = VALUE * inner * (shape.d_in * (2 if layer else 1) + shape.d_out)
    if not shape.gathers:
        return float(dense)
    return float(max(dense, VALUE * (2 * inner + boundary) * shape.d_out + ONE_WAY * entries + INDEX * (inner + 1)))


def swapped_host_bytes(shapes: Sequence[LayerShape], inner: int, entries: int) -> Bytes:
    """The server memory of a ROC worker's part.

    Input and labels, stored entries, and for each layer the rows before and after the sum and the current gradient.
    """
    rows = sum(shape.d_out * (2 if shape.gathers else 1) for shape in shapes) + max(shape.d_in for shape in shapes)
    return _features(shapes, inner) + ONE_WAY * entries + INDEX * (inner + 1) + float(VALUE * inner * rows)
