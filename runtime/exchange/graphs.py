"""Build the matrices of one sampled graph from a part and its kept entries; drawn ones in one compiled pass."""

from __future__ import annotations

from functools import cached_property
from typing import TypeAlias

import numpy as np
import torch

from gcnsim.core.ids import AnyArray, BoolArray, FloatArray, IntArray
from gcnsim.graph.parts import Part
from runtime.aggregate import Matrix, Rows
from runtime.exchange.sampled_graph import CachedRows, SampledGraph, order_of, side_by_side

Factors: TypeAlias = tuple[FloatArray | None, FloatArray | None]
"""Factors of rows and columns, whose products are the entries' weights; see `Rows.factors`."""


class GraphBuilder:
    """Builds sampled graphs of one part.

    weights: `symmetric` P = D~^(-1/2) (A + I) D~^(-1/2) of the whole graph; `mean` 1/deg without self; `mean-with-self`
    1/(deg + 1). kind: the class of the matrices.
    """

    def __init__(self, part: Part, weights: str, kind: type[Matrix], dtype: torch.dtype, device: torch.device) -> None:
        """Weigh the part's entries; every later graph shares the result."""
        self.part, self._kind, self._dtype, self._device = part, kind, dtype, device
        self._weighing = weights
        weight, own = _weights(part, weights, _row(part))
        self._left, self._right = _factors(part, weights)
        self._weight, self._own = weight, np.zeros(0) if own is None else own

    def beside(self, part: Part) -> GraphBuilder:
        """The same for another part."""
        return GraphBuilder(part, self._weighing, self._kind, self._dtype, self._device)

    def whole(self, held: CachedRows | None = None) -> SampledGraph:
        """The graph with every entry. held: the rows in a cache, which are kept apart."""
        needed = np.ones(self.part.boundary_nodes, np.bool_)
        factors = self._left, None if self._right is None else self._right[self.part.inner_nodes :]
        return self._drawn(0, self._whole, self._every[1], factors, needed, held)

    def weights(self, factor: AnyArray) -> AnyArray:
        """The weights of all entries times `factor`, float[nnz], in the type of the matrices."""
        made: AnyArray = np.empty(self.part.entries, _numpy(self._dtype))
        # In pieces that stay in the cache, each rounded once.
        return np.multiply(self._weight, factor, out=made, dtype=np.float64, casting="same_kind")

    def thinned(
        self,
        graph: int,
        kept: BoolArray,
        weights: AnyArray | None,
        held: CachedRows | None = None,
        *,
        joined: bool = False,
    ) -> SampledGraph:
        """The graph with the `kept` entries, bool[nnz], and all self-loops.

        weights: of all entries, as `weights` returns them; self-loops have their own. None: every row is a plain mean
        of its k entries, 1/k each. joined: build only one joined pattern.
        """
        rows, cross = self._split(kept, self._weight if weights is None else weights)
        factors: Factors | None = None
        if weights is None:
            count = np.diff(rows.indptr), np.diff(cross.indptr)
            share = 1.0 / np.maximum(count[0] + count[1], 1)
            factors = share, None
            rows, cross = (
                Rows(side.indptr, side.columns, np.repeat(share, number), side.width)
                for side, number in zip((rows, cross), count, strict=True)
            )
        inner = Rows(rows.indptr, rows.columns, rows.values, rows.width, factors)
        matrix = self._kind(inner, self._dtype, self._device, turned=not joined)
        needed = np.zeros(self.part.boundary_nodes, np.bool_)
        needed[cross.columns] = True
        return self._drawn(graph, matrix, cross, factors, needed, held, joined=joined)

    def with_boundary(self, graph: int, chosen: BoolArray, factor: FloatArray) -> SampledGraph:
        """All inner entries, and the crossing ones of the `chosen` boundary nodes, bool[B], times factor, float[B]."""
        every = self._every[1]
        kept = np.flatnonzero(chosen[every.columns])
        columns = every.columns[kept]
        rows = Rows(np.searchsorted(kept, every.indptr), columns, every.values[kept] * factor[columns], every.width)
        right = factor if self._right is None else self._right[self.part.inner_nodes :] * factor
        return self._drawn(graph, self._whole, rows, (self._left, right), chosen, None)

    def self_normalised(self, mask: BoolArray) -> FloatArray:
        """Factors that give the kept entries of a row the summed weight of all its entries, float64[nnz]."""
        count = self.part.inner_nodes
        row, all_sum = self._row_sums
        kept_sum = np.bincount(row[mask], self._weight[mask], count)
        ratio = np.divide(all_sum, kept_sum, out=np.zeros(count), where=kept_sum > 0)
        result: FloatArray = ratio[row]
        return result

    @cached_property
    def _row_sums(self) -> tuple[IntArray, FloatArray]:
        """The row of every entry, and the summed weights of all entries of a row."""
        row = _row(self.part)
        return row, np.asarray(np.bincount(row, self._weight, self.part.inner_nodes), np.float64)

    @cached_property
    def _every(self) -> tuple[Rows, Rows]:
        """The entries of all inner columns, with self-loops, and of all boundary columns."""
        inner, cross = self._split(np.ones(self.part.entries, np.bool_), self._weight)
        factors = self._left, None if self._right is None else self._right[: self.part.inner_nodes]
        return Rows(inner.indptr, inner.columns, inner.values, inner.width, factors), cross

    @cached_property
    def _whole(self) -> Matrix:
        return self._kind(self._every[0], self._dtype, self._device)

    def _split(self, kept: BoolArray, weight: AnyArray) -> tuple[Rows, Rows]:
        """The `kept` entries of inner columns, with self-loops, and of boundary columns, with their `weight`s."""
        from runtime.aggregate.patterns import select

        part, own = self.part, self._own.astype(weight.dtype, copy=False)
        assert kept.size == weight.size == part.entries, "compiled code checks no index"
        room = int(np.count_nonzero(kept)) + 1
        sides = [
            (np.empty(part.inner_nodes + 1, np.int64), np.empty(size, np.int32), np.empty(size, weight.dtype))
            for size in (room + own.size, room)
        ]
        select(kept, part.indptr, part.columns, weight, own, *sides[0], *sides[1])
        inner, cross = (
            Rows(indptr, columns[: indptr[-1]], values[: indptr[-1]], width)
            for (indptr, columns, values), width in zip(sides, (part.inner_nodes, part.boundary_nodes), strict=True)
        )
        return inner, cross

    def _drawn(
        self,
        graph: int,
        inner: Matrix,
        cross: Rows,
        factors: Factors | None,
        needed: BoolArray,
        held: CachedRows | None,
        *,
        joined: bool = False,
    ) -> SampledGraph:
        """The graph of `inner` and of the `cross` entries, whose columns are boundary indices.

        factors: of the crossing weights, by row and by boundary index.
        """
        index, ptr, misses = order_of(needed, self.part.boundary_ptr, held)
        place = np.full(self.part.boundary_nodes, -1, np.int32)
        place[index] = np.arange(index.size, dtype=np.int32)
        if factors is not None:
            factors = factors[0], None if factors[1] is None else factors[1][index]
        rows = Rows(cross.indptr, place[cross.columns], cross.values, index.size, factors)
        boundary = self._kind(rows, self._dtype, self._device, turned=not joined) if index.size else None
        pattern = self._kind(side_by_side(inner.rows, rows), self._dtype, self._device) if joined else None
        edges = int(inner.rows.columns.size) - self._own.size, int(rows.columns.size)
        return SampledGraph(graph, inner, boundary, index, ptr, misses, edges, held=held, joined=pattern)


def _row(part: Part) -> IntArray:
    """The row of every entry, int64[nnz]."""
    return np.repeat(np.arange(part.inner_nodes), np.diff(part.indptr))


def _numpy(dtype: torch.dtype) -> np.dtype[np.floating]:
    return torch.empty(0, dtype=dtype).numpy().dtype


def _weights(part: Part, weights: str, row: IntArray) -> tuple[FloatArray, FloatArray | None]:
    """P_ij of every entry, float64[nnz], and P_ii of every inner node, float64[I] (None: no self-loop)."""
    degree = part.inner_degree.astype(np.float64)
    if weights == "symmetric":
        every = np.concatenate([part.inner_degree, part.boundary_degree]) + 1.0
        scale = 1.0 / np.sqrt(every)
        return scale[row] * scale[part.columns], 1.0 / (degree + 1.0)
    if weights == "mean-with-self":
        share = 1.0 / (degree + 1.0)
        return share[row], share
    assert weights == "mean", weights
    return (1.0 / np.maximum(degree, 1.0))[row], None


def _factors(part: Part, weights: str) -> Factors:
    """Factors of rows, float64[I], and of columns, float64[I + B] (None: ones), whose products `_weights` gives."""
    degree = part.inner_degree.astype(np.float64)
    if weights == "symmetric":
        every = np.concatenate([part.inner_degree, part.boundary_degree]) + 1.0
        scale = 1.0 / np.sqrt(every)
        return scale[: part.inner_nodes], scale
    return 1.0 / (degree + 1.0 if weights == "mean-with-self" else np.maximum(degree, 1.0)), None
