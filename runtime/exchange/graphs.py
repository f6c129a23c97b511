"""Build the matrices of one sampled graph from a part and its kept entries.

The entries of a part are split once into those between inner nodes (with the self-loops) and crossing ones; a sampled
graph then selects from each.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import torch

from gcnsim.core.ids import AnyArray, BoolArray, FloatArray, Int32Array, IntArray
from gcnsim.graph.parts import Part
from runtime.aggregate import Matrix, Rows
from runtime.exchange.sampled_graph import CachedRows, SampledGraph, order_of, side_by_side


@dataclass(frozen=True)
class _Block:
    """Entries of some columns, row by row. entry: their index among the part's entries; nnz means a self-loop."""

    indptr: IntArray
    columns: AnyArray
    entry: Int32Array
    weight: FloatArray


Factors: TypeAlias = tuple[FloatArray | None, FloatArray | None]
"""Factors of rows and columns, whose products are the entries' weights; see `Rows.factors`."""


@dataclass(frozen=True)
class Weights:
    """Weights of kept entries, float64, aligned with the entries between inner nodes and with the crossing ones.

    left: if all entries of a row have the same weight, that weight, float64[I].
    """

    inner: FloatArray
    cross: FloatArray
    left: FloatArray | None = None


class GraphBuilder:
    """Builds sampled graphs of one part.

    weights: `symmetric` P = D~^(-1/2) (A + I) D~^(-1/2) of the whole graph; `mean` 1/deg without self; `mean-with-self`
    1/(deg + 1). kind: the class of the matrices.
    """

    def __init__(self, part: Part, weights: str, kind: type[Matrix], dtype: torch.dtype, device: torch.device) -> None:
        """Split the part's entries; every later graph shares the result."""
        self.part, self._kind, self._dtype, self._device = part, kind, dtype, device
        self._weighing = weights
        row = np.repeat(np.arange(part.inner_nodes), np.diff(part.indptr))
        weight, own = _weights(part, weights, row)
        self._left, self._right = _factors(part, weights)
        self._row, self._weight = row.astype(np.int32), weight
        self._loops = 0 if own is None else part.inner_nodes
        self._inner = self._inner_block(row, weight, own)
        self._cross = self._cross_block(row, weight)
        # The position of each entry in its block, so that a sample touches little more than the kept entries.
        self._crossing: BoolArray = part.columns >= part.inner_nodes
        self._place = np.empty(part.entries, np.int32)
        self._place[self._cross.entry] = np.arange(self._cross.entry.size, dtype=np.int32)
        stored = np.flatnonzero(self._inner.entry < part.entries)
        self._place[self._inner.entry[stored]] = stored
        self._loop_place = np.flatnonzero(self._inner.entry == part.entries)
        self._whole_inner: Matrix | None = None

    def beside(self, part: Part) -> GraphBuilder:
        """The same for another part."""
        return GraphBuilder(part, self._weighing, self._kind, self._dtype, self._device)

    def whole(self, held: CachedRows | None = None) -> SampledGraph:
        """The graph with every entry. held: the rows in a cache, which are kept apart."""
        needed = np.ones(self.part.boundary_nodes, np.bool_)
        factors = self._left, None if self._right is None else self._right[self.part.inner_nodes :]
        return self._drawn(0, self._whole(), None, self._cross.weight, factors, needed, held)

    def weights(self, factor: AnyArray) -> Weights:
        """The weights of all entries times `factor`, float[nnz]; self-loops are unchanged."""
        extended = np.append(factor.astype(np.float64), 1.0)
        inner, cross = (block.weight * extended[block.entry] for block in (self._inner, self._cross))
        return Weights(inner, cross)

    def thinned(
        self,
        graph: int,
        kept_mask: BoolArray,
        weights: Weights,
        held: CachedRows | None = None,
        *,
        joined: bool = False,
    ) -> SampledGraph:
        """The graph with the `kept_mask` entries, bool[nnz], and all self-loops.

        joined: build only one joined pattern.
        """
        keep = np.flatnonzero(kept_mask)
        crossing = self._crossing[keep]
        mask = np.zeros(self._inner.entry.size, np.bool_)
        mask[self._loop_place] = True
        mask[self._place[keep[~crossing]]] = True
        factors = None if weights.left is None else (weights.left, None)
        rows = _select(self._inner, np.flatnonzero(mask), weights.inner, factors)
        inner = self._kind(rows, self._dtype, self._device, turned=not joined)
        cross = self._place[keep[crossing]]
        needed = np.zeros(self.part.boundary_nodes, np.bool_)
        needed[self._cross.columns[cross]] = True
        return self._drawn(graph, inner, cross, weights.cross, factors, needed, held, joined=joined)

    def with_boundary(self, graph: int, chosen: BoolArray, factor: FloatArray) -> SampledGraph:
        """All inner entries, and the crossing ones of the `chosen` boundary nodes, bool[B], times factor, float[B]."""
        block = self._cross
        cross = np.flatnonzero(chosen[block.columns])
        right = factor if self._right is None else self._right[self.part.inner_nodes :] * factor
        weight = block.weight * factor[block.columns]
        return self._drawn(graph, self._whole(), cross, weight, (self._left, right), chosen, None)

    def self_normalised(self, mask: BoolArray) -> FloatArray:
        """Factors that give the kept entries of a row the summed weight of all its entries, float64[nnz]."""
        count = self.part.inner_nodes
        all_sum = np.bincount(self._row, self._weight, count)
        kept_sum = np.bincount(self._row[mask], self._weight[mask], count)
        ratio = np.divide(all_sum, kept_sum, out=np.zeros(count), where=kept_sum > 0)
        result: FloatArray = ratio[self._row]
        return result

    def means(self, mask: BoolArray) -> Weights:
        """Weights that make every row a plain mean of the k entries in `mask`, 1/k each; with a self-loop 1/(k + 1)."""
        count = np.bincount(self._row[mask], minlength=self.part.inner_nodes) + int(self._loops > 0)
        share = 1.0 / np.maximum(count, 1)
        inner, cross = (np.repeat(share, np.diff(block.indptr)) for block in (self._inner, self._cross))
        return Weights(inner, cross, share)

    def _whole(self) -> Matrix:
        if self._whole_inner is None:
            block = self._inner
            factors = self._left, None if self._right is None else self._right[: self.part.inner_nodes]
            rows = Rows(block.indptr, block.columns, block.weight, self.part.inner_nodes, factors)
            self._whole_inner = self._kind(rows, self._dtype, self._device)
        return self._whole_inner

    def _drawn(
        self,
        graph: int,
        inner: Matrix,
        cross: AnyArray | None,
        weight: FloatArray,
        factors: Factors | None,
        needed: BoolArray,
        held: CachedRows | None,
        *,
        joined: bool = False,
    ) -> SampledGraph:
        """The graph of `inner` and of the crossing entries at `cross` (None: all), with weights `weight`.

        factors: of `weight`, by row and by boundary index.
        """
        index, ptr, misses = order_of(needed, self.part.boundary_ptr, held)
        place = np.full(self.part.boundary_nodes, -1, np.int32)
        place[index] = np.arange(index.size, dtype=np.int32)
        block = self._cross
        rows = Rows(block.indptr, block.columns, weight, index.size) if cross is None else _select(block, cross, weight)
        if factors is not None:
            factors = factors[0], None if factors[1] is None else factors[1][index]
        rows = Rows(rows.indptr, place[rows.columns], rows.values, index.size, factors)
        boundary = self._kind(rows, self._dtype, self._device, turned=not joined) if index.size else None
        pattern = self._kind(side_by_side(inner.rows, rows), self._dtype, self._device) if joined else None
        edges = int(inner.rows.columns.size) - self._loops, int(rows.columns.size)
        return SampledGraph(graph, inner, boundary, index, ptr, misses, edges, held=held, joined=pattern)

    def _inner_block(self, row: IntArray, weight: FloatArray, own: FloatArray | None) -> _Block:
        part = self.part
        entry = np.flatnonzero(part.columns < part.inner_nodes)
        rows, columns, values = row[entry], part.columns[entry], weight[entry]
        if own is not None:
            rows = np.concatenate([rows, np.arange(part.inner_nodes)])
            columns = np.concatenate([columns, np.arange(part.inner_nodes, dtype=columns.dtype)])
            values = np.concatenate([values, own])
            entry = np.concatenate([entry, np.full(part.inner_nodes, part.entries)])
            # Stable by row: a self-loop follows the entries of its row.
            order = np.argsort(rows, kind="stable")
            rows, columns, values, entry = rows[order], columns[order], values[order], entry[order]
        indptr = np.searchsorted(rows, np.arange(part.inner_nodes + 1))
        return _Block(indptr, columns, entry.astype(np.int32), values)

    def _cross_block(self, row: IntArray, weight: FloatArray) -> _Block:
        part = self.part
        entry = np.flatnonzero(part.columns >= part.inner_nodes)
        indptr = np.searchsorted(row[entry], np.arange(part.inner_nodes + 1))
        columns = part.columns[entry] - np.int32(part.inner_nodes)
        return _Block(indptr, columns, entry.astype(np.int32), weight[entry])


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


def _select(block: _Block, keep: AnyArray, weight: FloatArray, factors: Factors | None = None) -> Rows:
    """The entries of `block` at the ascending places `keep`. weight: float64, one for each entry of the block."""
    width = block.indptr.size - 1
    return Rows(np.searchsorted(keep, block.indptr), block.columns[keep], weight[keep], width, factors)
