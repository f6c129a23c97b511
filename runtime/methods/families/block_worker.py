"""What a worker does in methods that broadcast whole blocks of rows (`runtime.exchange.blocks`).

P_ij for another worker's block j has the crossing entries to j at the places that j's rows have in its block. The
trace is that of the whole graph: a replay says by itself that blocks travel.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from gcnsim.ids import FloatArray, IntArray, Iteration
from runtime.aggregate import Matrix, Rows
from runtime.exchange import BlockNeighbours, BlockRing, BlockSums, Boundary, Grid, SampledGraph, SendAll, Step
from runtime.exchange.blocks import Policy
from runtime.methods.worker import Context, MethodWorker
from runtime.model import Boundaries
from runtime.options import Options

CHANNEL = "blocks"


class BlockWorker(MethodWorker):
    """See the module."""

    exchanges = False

    def __init__(self, context: Context, policy: Policy | None = None, clip: float = 0.0) -> None:
        """Open the ring of all workers. policy: which blocks are sent; None: all. clip: see `Grid`."""
        super().__init__(context)
        channel = context.channels.open(CHANNEL, bulk=True)
        ring = BlockRing(channel, context.recorder, range(context.world))
        grid = _grid(context, clip)
        self.sums = BlockSums(grid, ring, policy or SendAll(context.world), context.recorder, context.channels.backend)

    def begin(self, t: Iteration) -> tuple[SampledGraph, Boundary | None]:
        """The whole graph; no boundary rows travel."""
        return self.graph(t), None

    def neighbours(self, step: Step, fixed: Tensor | None) -> Boundaries:
        """Blocks."""
        return BlockNeighbours(self.sums, step, fixed)

    def state(self) -> dict[str, Tensor]:
        """The copies kept."""
        return self.sums.kept()

    def restore(self, done: Iteration, state: dict[str, Tensor]) -> None:
        """Put the copies back."""
        self.sums.put_back(state)

    def bytes_sent(self) -> dict[tuple[int, str], int]:
        """Of blocks."""
        return self.sums.bytes_sent()


def _grid(context: Context, clip: float) -> Grid:
    """The blocks of all workers; every rank at the same time."""
    part, whole = context.share.part, context.whole
    nodes = [part.inner]
    if context.world > 1:
        raw = context.channels.open("ids").gather_arrays(part.inner.astype(np.int64).tobytes())
        nodes = [np.frombuffer(each, np.int64) for each in raw]
    matrices: list[Matrix] = []
    for block, inner in enumerate(nodes):
        if block == part.rank:
            matrices.append(whole.inner)
            continue
        first, last = int(part.boundary_ptr[block]), int(part.boundary_ptr[block + 1])
        places = np.searchsorted(inner, part.boundary[first:last])
        rows = _columns(whole.boundary, part.inner_nodes, first, places, inner.size)
        matrices.append(type(whole.inner)(rows, context.dtype, context.device))
    scale = _row_scale(context.options, part.inner_degree)
    on_device = None if scale is None else torch.from_numpy(scale).to(context.device, context.dtype)[:, None]
    return Grid(part.rank, tuple(inner.size for inner in nodes), tuple(matrices), on_device, clip)


def _columns(boundary: Matrix | None, count: int, first: int, places: IntArray, width: int) -> Rows:
    """The entries of `boundary` in its columns from `first` on, one for each of `places`, moved to those places."""
    if boundary is None:
        return Rows(np.zeros(count + 1, np.int64), np.zeros(0, np.int32), np.zeros(0), width)
    rows = boundary.rows
    kept = np.flatnonzero((rows.columns >= first) & (rows.columns < first + places.size))
    columns = places[rows.columns[kept] - first].astype(np.int32)
    return Rows(np.searchsorted(kept, rows.indptr), columns, rows.values[kept], width)


def _row_scale(options: Options, degree: IntArray) -> FloatArray | None:
    """t of every inner row: what its entries are multiplied by beyond what those of its column are; None: all equal."""
    if options.model != "graphsage":
        return None
    if options.sage_mean == "with-self":
        return np.asarray(1.0 / (degree + 1.0))
    return np.asarray(1.0 / np.maximum(degree, 1.0))
