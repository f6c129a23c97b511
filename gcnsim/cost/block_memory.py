"""GPU memory of systems without boundary rows: block rows (CAGNET, SANCUS) and swapping (ROC).

Sources: CAGNET, 1D and 1.5D algorithms; SANCUS, Algorithm 1 and Table 5; ROC as described by PipeGCN; the order of
kernels from `gcnsim.methods`. Not compared with the memory of a real GPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from gcnsim.core.ids import Bytes
from gcnsim.cost.device import INDEX, VALUE
from gcnsim.cost.layers import parameters
from gcnsim.cost.memory import ID, MOMENTS, Memory
from gcnsim.workload import LayerShape

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
