"""The layers of one mini-batch: rectangular matrices over the rows that each layer reads, and their sums.

Local rows are numbered once for all layers: the batch's target nodes first, then those that each layer below adds. So a
layer's targets are the first of the rows it reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from gcnsim.core.ids import FloatArray, IntArray, Iteration, Layer
from gcnsim.graph import Graph
from gcnsim.timeline import Direction
from gcnsim.workload.mini_batches import Batch
from runtime.aggregate import Matrix, Rows
from runtime.exchange.neighbours import IterationContext


@dataclass(frozen=True)
class BatchGraph:
    """The graph that iteration `graph` trains on one worker.

    drawn: the sampled batch. nodes: int64[n_0], ids of the local rows. rows: per layer, [n_(l + 1), n_l]; None: its sum
    is computed before training.
    """

    graph: Iteration
    drawn: Batch
    nodes: IntArray
    rows: tuple[Rows | None, ...]


class Scaling(Protocol):
    """The scaling of kept entries' weights, relative to the whole sum."""

    def degrees(self, graph: Graph, nodes: IntArray, counts: IntArray) -> FloatArray:
        """Neighbours of each of `nodes` for the weights; counts: kept neighbours, int64, all [n]."""

    def factors(self, layer: Layer, nodes: IntArray, counts: IntArray, places: IntArray) -> FloatArray:
        """The factor of each entry, float64[E]; nodes, counts: of the rows, places: of the entries, row by row."""


@dataclass(frozen=True)
class DrawnScaling:
    """Sampled entries represent their whole row: with k of n neighbours sampled, each weighs n / k as much.

    With independent sampling, each weighs 1 over its probability. So sums are unbiased, and GraphSAGE's mean is the
    mean over the sampled neighbours. amounts: per layer, as in `neighbour_batch`. If a layer samples a number of nodes,
    n / k gives a row its whole weight, but its sum is biased: nodes with many entries are sampled more often.
    """

    graph: Graph
    amounts: tuple[int | float, ...]

    def degrees(self, graph: Graph, nodes: IntArray, counts: IntArray) -> FloatArray:
        """The degrees in the whole graph."""
        return whole_degrees(graph, nodes)

    def factors(self, layer: Layer, nodes: IntArray, counts: IntArray, places: IntArray) -> FloatArray:
        """As in the base class."""
        amount = self.amounts[layer]
        if isinstance(amount, float):
            return np.full(places.size, 1.0 / amount)
        scale: FloatArray = whole_degrees(self.graph, nodes) / np.maximum(counts, 1)
        return np.repeat(scale, counts)


def whole_degrees(graph: Graph, nodes: IntArray) -> FloatArray:
    """The degrees of `nodes` in the whole graph, float64[n], without those of all its nodes."""
    return (graph.indptr[nodes + 1] - graph.indptr[nodes]).astype(np.float64)


class BatchBuilder:
    """Builds matrices from sampled batches. weights: as in `GraphBuilder`. ready: first layers whose sums are computed
    before training. Not thread-safe.
    """

    def __init__(self, graph: Graph, weights: str, scaling: Scaling, ready: int = 0) -> None:
        self._graph, self._weights, self._scaling = graph, weights, scaling
        self._ready = ready
        self._place = np.zeros(graph.nodes, np.int32)
        self._inside = np.zeros(graph.nodes, np.bool_)

    def built(self, t: Iteration, batch: Batch) -> BatchGraph:
        """The graph of `batch`, which must include its places."""
        nodes = self._numbered(batch.levels)
        rows: list[Rows | None] = [None] * self._ready
        for layer, places in enumerate(batch.places[self._ready :], self._ready):
            same = layer and places is batch.places[layer - 1]
            sizes = batch.levels[layer + 1].size, batch.levels[layer].size
            rows.append(rows[-1] if same else self._rows(layer, nodes, places, *sizes))
        return BatchGraph(t, batch, nodes, tuple(rows))

    def _numbered(self, levels: Sequence[IntArray]) -> IntArray:
        """All nodes in the order of their local rows."""
        pieces = [levels[-1]]
        self._inside[levels[-1]] = True
        for level in reversed(levels[:-1]):
            pieces.append(level[~self._inside[level]])
            self._inside[pieces[-1]] = True
        nodes = np.concatenate(pieces)
        self._inside[nodes] = False
        self._place[nodes] = np.arange(nodes.size, dtype=np.int32)
        return nodes

    def _rows(self, layer: Layer, nodes: IntArray, places: IntArray, count: int, width: int) -> Rows:
        graph, targets = self._graph, nodes[:count]
        # Those of a subgraph are in order.
        found = places if bool((places[1:] > places[:-1]).all()) else np.sort(places)
        start = np.searchsorted(found, graph.indptr[targets])
        counts = np.searchsorted(found, graph.indptr[targets + 1]) - start
        first = np.cumsum(counts) - counts
        entries = found[np.repeat(start - first, counts) + np.arange(found.size)]
        columns = self._place[graph.indices[entries]]
        row = np.repeat(np.arange(count), counts)
        degree = self._scaling.degrees(graph, nodes[:width], _padded(counts, width))
        weight, own = self._weighed(degree, row, columns)
        weight = weight * self._scaling.factors(layer, targets, counts, entries)
        if own is None:
            return Rows(np.r_[first, found.size], columns, weight, width)
        # A row's self-loop follows its entries.
        ptr = np.r_[first, found.size] + np.arange(count + 1)
        loop = np.zeros(found.size + count, np.bool_)
        loop[ptr[1:] - 1] = True
        every, values = np.empty(loop.size, np.int32), np.empty(loop.size)
        every[~loop], every[loop] = columns, np.arange(count)
        values[~loop], values[loop] = weight, own[:count]
        return Rows(ptr, every, values, width)

    def _weighed(self, degree: FloatArray, row: IntArray, columns: Any) -> tuple[FloatArray, FloatArray | None]:
        """Weights of entries, float64[E], and of self-loops, float64[n] (None: none), by the degrees of local rows."""
        if self._weights == "symmetric":
            scale = 1.0 / np.sqrt(degree + 1.0)
            return scale[row] * scale[columns], 1.0 / (degree + 1.0)
        if self._weights == "mean-with-self":
            share = 1.0 / (degree + 1.0)
            return share[row], share
        return (1.0 / np.maximum(degree, 1.0))[row], None


def _padded(counts: IntArray, width: int) -> IntArray:
    """`counts` of the first rows, 0 of the others."""
    found = np.zeros(width, np.int64)
    found[: counts.size] = counts
    return found


@dataclass(frozen=True)
class LoadedBatch:
    """A mini-batch that is ready for training.

    matrices: per layer; None: its sum is among the input rows. x: input rows, [n_0, d_0], or the precomputed sums of
    layer 0. targets: int64[K], its training nodes among the rows of the last layer. labels: of these. shares: float[K],
    their shares in the loss; None: each one over the training nodes of all workers' batches. hits: input rows found in
    the cache.
    """

    graph: BatchGraph
    matrices: tuple[Matrix | None, ...]
    x: Tensor
    targets: Tensor
    labels: Tensor
    shares: Tensor | None
    hits: int = 0

    @property
    def rows(self) -> int:
        """The requested input rows."""
        return int(self.graph.nodes.size)


@dataclass(frozen=True)
class BatchBoundaries:
    """The neighbours of each layer of a mini-batch in one step. width: d_0."""

    step: IterationContext
    matrices: tuple[Matrix | None, ...]
    width: int

    def of(self, layer: Layer) -> BatchNeighbours | SummedNeighbours:
        """The neighbours of `layer`."""
        matrix = self.matrices[layer]
        return (
            SummedNeighbours(self.step, layer, self.width)
            if matrix is None
            else BatchNeighbours(self.step, layer, matrix)
        )


@dataclass(frozen=True)
class BatchNeighbours:
    """See `runtime.model.Neighbours`: all rows are local, and there are fewer targets than rows."""

    step: IterationContext
    layer: Layer
    matrix: Matrix

    def weighted_sum(self, h: Tensor) -> tuple[Tensor, Tensor]:
        """z = P h', and the targets' own rows of h' after dropout."""
        own = self.step.dropped(self.layer, h)
        z: Tensor = _BatchSum.apply(own, self.step, self.layer, self.matrix)  # type: ignore[no-untyped-call]
        self.step.watch.summed()
        return z, own[: z.shape[0]]

    def mapped_sum(self, h: Tensor, linear: nn.Linear) -> tuple[Tensor, Tensor]:
        """z W^T + b of the weighted sum z, and the targets' own rows."""
        z, own = self.weighted_sum(h)
        return linear(z), own

    def gathered(self, h: Tensor) -> tuple[Tensor, Matrix]:
        """All rows after dropout, and the pattern of the kept entries."""
        rows: Tensor = _GatheredBatch.apply(self.step.dropped(self.layer, h), self.step)  # type: ignore[no-untyped-call]
        self.step.watch.summed()
        return rows, self.matrix


@dataclass(frozen=True)
class SummedNeighbours:
    """See `runtime.model.Neighbours`: a row is its node's sum, or [its own row; the sum]. width: of each."""

    step: IterationContext
    layer: Layer
    width: int

    def weighted_sum(self, h: Tensor) -> tuple[Tensor, Tensor]:
        """The sums and the target rows, both after dropout."""
        own = self.step.dropped(self.layer, h[:, : self.width])
        z = self.step.dropped(self.layer, h[:, h.shape[1] - self.width :], "sum")
        self.step.watch.summed()
        return z, own

    def mapped_sum(self, h: Tensor, linear: nn.Linear) -> tuple[Tensor, Tensor]:
        """As of `BatchNeighbours`."""
        z, own = self.weighted_sum(h)
        return linear(z), own

    def gathered(self, h: Tensor) -> tuple[Tensor, Matrix]:
        """Not supported: the rows behind precomputed sums are unknown."""
        raise TypeError("rows that were summed before training cannot be gathered")


class _BatchSum(torch.autograd.Function):
    """z = P h of one layer."""

    @staticmethod
    def forward(ctx: Any, h: Tensor, step: IterationContext, layer: Layer, matrix: Matrix) -> Tensor:
        ctx.step, ctx.layer, ctx.matrix = step, layer, matrix
        z = h.new_empty(matrix.rows.indptr.size - 1, h.shape[1])
        step.multiply(layer, Direction.FORWARD, matrix, h, z, False)
        return z

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None, None]:
        step: IterationContext = ctx.step
        step.watch.undone()
        g = grads[0].contiguous()
        back = g.new_empty(ctx.matrix.rows.width, g.shape[1])
        step.multiply(ctx.layer, Direction.BACKWARD, ctx.matrix, g, back, False)
        return back, None, None, None


class _GatheredBatch(torch.autograd.Function):
    """The identity; notifies the stopwatch after the backward pass of the layer's map."""

    @staticmethod
    def forward(ctx: Any, h: Tensor, step: IterationContext) -> Tensor:
        ctx.step = step
        return h.view_as(h)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        ctx.step.watch.undone()
        return grads[0], None
