"""The worker of methods that broadcast whole blocks of rows (`runtime.exchange.blocks`).

A block is one worker's part, or the parts of several workers together, all of which then store it. P_ij for another
block j has the crossing entries to j, at the positions of j's rows in it. The access trace is that of the whole graph;
a replay adds the broadcasts of blocks.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from gcnsim.core.ids import FloatArray, IntArray, Iteration
from gcnsim.graph.parts import Replicas
from runtime.aggregate import Matrix, Rows
from runtime.exchange import (
    BlockNeighbours,
    BlockPlace,
    BlockRing,
    BlockSums,
    Boundary,
    IterationContext,
    SampledGraph,
    SendAll,
)
from runtime.exchange.blocks import Policy
from runtime.methods.worker import Context, MethodWorker
from runtime.model import Boundaries
from runtime.options import Options

CHANNEL = "blocks"


class BlockWorker(MethodWorker):
    """The worker of block methods; see the module."""

    exchanges = False

    def __init__(self, context: Context, policy: Policy | None = None, clip: float = 0.0, copies: int = 1) -> None:
        """Open the rings. policy: which blocks are sent; None: all. clip: see `BlockPlace`. copies: workers that store
        each block.
        """
        super().__init__(context)
        replicas, rank = Replicas(context.world, copies), context.channels.rank
        channel, recorder = context.channels.open(CHANNEL, bulk=True), context.recorder
        ring = BlockRing(channel, recorder, replicas.ring(replicas.member(rank)))
        holders = BlockRing(channel, recorder, replicas.holders(replicas.block(rank)))
        grid = _grid(context, replicas, clip)
        self.sums = BlockSums(
            grid, ring, holders, policy or SendAll(replicas.blocks), recorder, context.channels.backend
        )

    def begin(self, t: Iteration) -> tuple[SampledGraph, Boundary | None]:
        """The whole graph; no boundary rows travel."""
        return self.graph(t), None

    def neighbours(self, step: IterationContext, fixed: Tensor | None) -> Boundaries:
        """The neighbours of each layer, by blocks."""
        return BlockNeighbours(self.sums, step, fixed)

    def state(self) -> dict[str, Tensor]:
        """The stored copies."""
        return self.sums.kept()

    def restore(self, done: Iteration, state: dict[str, Tensor]) -> None:
        """Restore the copies."""
        self.sums.put_back(state)

    def bytes_sent(self) -> dict[tuple[int, str], int]:
        """Bytes sent, of blocks."""
        return self.sums.bytes_sent()


def _grid(context: Context, replicas: Replicas, clip: float) -> BlockPlace:
    """The blocks of all workers; every rank at the same time."""
    part = context.held.part
    whole = context.whole if context.held is context.share else context.builder.beside(part).whole()
    nodes = [part.inner]
    if context.world > 1:
        raw = context.channels.open("ids").gather_arrays(part.inner.astype(np.int64).tobytes())
        nodes = [np.frombuffer(data, np.int64) for data in raw[:: replicas.copies]]
    matrices: dict[int, Matrix] = {}
    for block in replicas.stages(replicas.member(context.channels.rank)):
        inner = nodes[block]
        if block == part.rank:
            matrices[block] = whole.inner
            continue
        first, last = int(part.boundary_ptr[block]), int(part.boundary_ptr[block + 1])
        places = np.searchsorted(inner, part.boundary[first:last])
        rows = _columns(whole.boundary, part.inner_nodes, first, places, inner.size)
        matrices[block] = type(whole.inner)(rows, context.dtype, context.device)
    scale = _row_scale(context.options, part.inner_degree)
    on_device = None if scale is None else torch.from_numpy(scale).to(context.device, context.dtype)[:, None]
    sizes = tuple(inner.size for inner in nodes)
    return BlockPlace(part.rank, sizes, matrices, on_device, context.device, clip)


def _columns(boundary: Matrix | None, count: int, first: int, places: IntArray, width: int) -> Rows:
    """The entries of `boundary` in its columns from `first` on, one for each of `places`, moved to those places."""
    if boundary is None:
        return Rows(np.zeros(count + 1, np.int64), np.zeros(0, np.int32), np.zeros(0), width)
    rows = boundary.rows
    kept = np.flatnonzero((rows.columns >= first) & (rows.columns < first + places.size))
    columns = places[rows.columns[kept] - first].astype(np.int32)
    return Rows(np.searchsorted(kept, rows.indptr), columns, rows.values[kept], width)


def _row_scale(options: Options, degree: IntArray) -> FloatArray | None:
    """t of every inner row: the factor on its entries beyond that of their column; None if all are equal."""
    if options.model != "graphsage":
        return None
    if options.sage_mean == "with-self":
        return np.asarray(1.0 / (degree + 1.0))
    return np.asarray(1.0 / np.maximum(degree, 1.0))
