"""What a GPU holds where a graph is not kept by parts with their boundary: block rows (CAGNET, SANCUS), swapping (ROC).

Sources: CAGNET, 1D and 1.5D algorithms; SANCUS, Algorithm 1 and Table 5; ROC as PipeGCN describes it; for all of them
the order of kernels that `gcnsim.methods` has. Nothing of it was compared with a GPU's memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from gcnsim.cost.device import INDEX, VALUE
from gcnsim.cost.layers import parameters
from gcnsim.cost.memory import ID, MOMENTS, Memory
from gcnsim.ids import Bytes
from gcnsim.workload import LayerShape

ONE_WAY: Final = INDEX + VALUE
"""Bytes of an entry of a matrix that is its own transpose: a column and a value, used in both directions."""


@dataclass(frozen=True, slots=True)
class Block:
    """One worker's block row, as counts.

    rows: of its block. entries: of the stages that it multiplies. stages: pieces of its row, one to a block. received:
    rows of the largest other block. replicas: workers that hold the block. stored: rows of other blocks of which a copy
    is kept (SANCUS); copied: its own rows of which the copy last sent is kept (the gap test).
    """

    rows: int
    entries: int
    stages: int
    received: int
    replicas: int = 1
    stored: int = 0
    copied: int = 0


def block_memory(shapes: Sequence[LayerShape], block: Block, *, norm: bool) -> Memory:
    """What a worker that multiplies block rows holds.

    The adjacency is symmetric, so that one copy serves both directions. Of a layer its input stays for the backward
    pass (the weights' gradient is the input times the sum of the gradients), sums do not. One block is received at a
    time; one that is kept (SANCUS) is received where it stays.
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
    """Copies of others' rows, of the input twice (SANCUS, Table 5: 8 bytes a value), and of what was sent last."""
    summed = [shape.d_in for shape in shapes if shape.gathers]
    first = shapes[0].d_in if shapes[0].gathers else 0
    return float(VALUE * (block.stored * (sum(summed) + first) + block.copied * sum(summed)))


def _passing(shapes: Sequence[LayerShape]) -> int:
    """Values a row at the layer that needs most: its sum and output, or its gradients and their sum."""
    forward = max(shape.d_in + shape.d_out for shape in shapes)
    backward = max(2 * shape.d_out + (shape.d_in if layer else 0) for layer, shape in enumerate(shapes))
    return max(forward, backward)


def swapped_memory(shapes: Sequence[LayerShape], inner: int, boundary: int, entries: int) -> Memory:
    """The least that a ROC worker's GPU holds: its model, and the one step that needs most (workspace).

    inner: nodes of its part; boundary: rows that its sums read besides; entries: of its rows, which come in with each
    sum. A released memory manager keeps more where it fits, to copy less.
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
    """Bytes of the larger of a layer's steps: a dense product, forward or backward, or a sum with its entries."""
    dense = VALUE * inner * (shape.d_in * (2 if layer else 1) + shape.d_out)
    if not shape.gathers:
        return float(dense)
    return float(max(dense, VALUE * (2 * inner + boundary) * shape.d_out + ONE_WAY * entries + INDEX * (inner + 1)))


def swapped_host_bytes(shapes: Sequence[LayerShape], inner: int, entries: int) -> Bytes:
    """What a ROC worker's part takes of its server's memory: input and labels, entries, and of each layer the rows
    before and after the sum with the gradient that is under way."""
    rows = sum(shape.d_out * (2 if shape.gathers else 1) for shape in shapes) + max(shape.d_in for shape in shapes)
    return _features(shapes, inner) + ONE_WAY * entries + INDEX * (inner + 1) + float(VALUE * inner * rows)
