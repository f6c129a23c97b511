"""The counts of an access trace that a simulation needs: rows needed by each pair of workers, and edges kept.

`BatchCounts` holds the counts of the mini-batches that each worker trains. `BoundaryProfile` holds the number of cross
edges of boundary nodes, which is enough to sample access counts without the graph.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gcnsim.core.ids import BoolArray, FloatArray, Int32Array, IntArray, Rank, frozen
from gcnsim.graph.parts import Part
from gcnsim.workload.mini_batches import Batch


@dataclass(frozen=True, slots=True)
class BatchCounts:
    """Counts per iteration t (0..T-1; a mini-batch on every worker, one model update) and worker n.

    levels: int64[T, P, L + 1]; rows that layer l reads, the last of them the batch itself. entries: int64[T, P, L];
    entries that layer l sums over, without self-loops. looked: int64[T, P]; entries that sampling read. wanted:
    int64[T, P, P]; input rows of n stored by m, including cached ones. hits: int64[T, P, P]; how many of them are in
    n's cache. cached, stored: int64[P]; rows in the cache, and rows that the worker's batches may request. per_epoch:
    iterations in which every training node is used once.
    """

    levels: IntArray
    entries: IntArray
    looked: IntArray
    wanted: IntArray
    hits: IntArray
    cached: IntArray
    stored: IntArray
    per_epoch: int

    @property
    def iterations(self) -> int:
        """T, the number of iterations."""
        return int(self.levels.shape[0])

    def repeated(self, times: int) -> BatchCounts:
        """The same batches, repeated `times` times."""
        names = ("levels", "entries", "looked", "wanted", "hits")
        more: dict[str, Any] = {name: frozen(np.concatenate([getattr(self, name)] * times)) for name in names}
        return replace(self, **more)

    @property
    def hit_rate(self) -> float:
        """Share of the wanted input rows that the caches answered."""
        return int(self.hits.sum()) / max(1, int(self.wanted.sum()))


@dataclass(frozen=True, slots=True)
class Store:
    """The place of input rows. owner: int32[N], the worker that stores each node's row; None: each worker has a copy of
    all.

    cached: per worker bool[N], rows in GPU memory; empty without a cache. stored: int64[P], rows that a worker's
    batches may request.
    """

    owner: Int32Array | None
    cached: tuple[BoolArray, ...]
    stored: IntArray


def count_batches(batches: Sequence[Sequence[Batch]], store: Store, per_epoch: int) -> BatchCounts:
    """The counts of sampled batches. drawn[t][n]: the batch of worker n in iteration t."""
    return batch_counts(
        [[batch.levels[0] for batch in row] for row in batches],
        np.array([[[level.size for level in one.levels] for one in row] for row in batches], np.int64),
        np.array([[one.entries for one in row] for row in batches], np.int64),
        np.array([[one.looked for one in row] for row in batches], np.int64),
        store,
        per_epoch,
    )


def batch_counts(
    read: Sequence[Sequence[IntArray]],
    levels: IntArray,
    entries: IntArray,
    looked: IntArray,
    store: Store,
    per_epoch: int,
) -> BatchCounts:
    """The counts of batches with known sizes. read[t][n]: nodes whose input rows worker n reads in iteration t."""
    shape = (len(read), len(read[0]))
    wanted, hits = np.zeros((*shape, shape[1]), np.int64), np.zeros((*shape, shape[1]), np.int64)
    for t, batches in enumerate(read):
        for rank, rows in enumerate(batches):
            wanted[t, rank] = _per_owner(rows, store.owner, rank, shape[1])
            if store.cached:
                hits[t, rank] = _per_owner(rows[store.cached[rank][rows]], store.owner, rank, shape[1])
    return BatchCounts(
        levels=frozen(levels),
        entries=frozen(entries),
        looked=frozen(looked),
        wanted=frozen(wanted),
        hits=frozen(hits),
        cached=frozen(np.array([int(mask.sum()) for mask in store.cached] or [0] * shape[1], np.int64)),
        stored=frozen(store.stored),
        per_epoch=per_epoch,
    )


def _per_owner(rows: IntArray, owner: Int32Array | None, rank: int, workers: int) -> IntArray:
    if owner is None:
        return np.bincount([rank], weights=[rows.size], minlength=workers).astype(np.int64)
    return np.bincount(owner[rows], minlength=workers)


@dataclass(frozen=True, slots=True)
class AccessCounts:
    """Counts per drawn graph t (0..T-1), worker n and owner m; the schedule's only view of sampling.

    rows: int64[T, P, P]; rows[t, n, m] = boundary nodes of n owned by m that graph t needs (0 for m == n).
    hits: int64[T, P, P]; how many of them n's layer-0 cache holds (hits <= rows).
    inner_edges, boundary_edges: int64[T, P]; stored entries kept, self-loops not counted.
    inner_nodes, boundary_nodes, entries: int64[P]; the whole partition (entries: all stored entries of its rows).
    cached_rows: int64[P]; rows held by the cache.
    batches: of systems that train mini-batches: what these read; nothing is then exchanged by layer, so rows are 0.
    """

    rows: IntArray
    hits: IntArray
    inner_edges: IntArray
    boundary_edges: IntArray
    inner_nodes: IntArray
    boundary_nodes: IntArray
    entries: IntArray
    cached_rows: IntArray
    batches: BatchCounts | None = None

    @property
    def iterations(self) -> int:
        """T, the number of drawn graphs."""
        return int(self.rows.shape[0])

    @property
    def workers(self) -> int:
        """P, the number of workers."""
        return int(self.rows.shape[1])

    def repeated(self, times: int) -> AccessCounts:
        """The same graphs, repeated `times` times."""
        if times == 1:
            return self
        names = ("rows", "hits", "inner_edges", "boundary_edges")
        more: dict[str, Any] = {name: np.concatenate([getattr(self, name)] * times) for name in names}
        batches = None if self.batches is None else self.batches.repeated(times)
        return replace(self, batches=batches, **more)

    def placed(self, order: IntArray) -> AccessCounts:
        """The same graphs with worker order[n]'s data on worker n. Only for exchanges per layer (no `batches`)."""
        if self.batches is not None:
            raise ValueError("mini-batches have no parts to place")
        by_worker = ("inner_edges", "boundary_edges", "inner_nodes", "boundary_nodes", "entries", "cached_rows")
        moved: dict[str, Any] = {name: getattr(self, name)[..., order] for name in by_worker}
        pairs: dict[str, Any] = {name: getattr(self, name)[:, order][:, :, order] for name in ("rows", "hits")}
        return replace(self, **moved, **pairs)

    @property
    def hit_rate(self) -> float:
        """Share of layer-0 boundary rows found in the cache, over all graphs and workers; 0 without any row."""
        if self.batches is not None:
            return self.batches.hit_rate
        requested = int(self.rows.sum())
        return int(self.hits.sum()) / requested if requested else 0.0

    @property
    def cache_fraction(self) -> float:
        """Share of all boundary rows that are in the caches; 0 without a boundary."""
        if self.batches is not None:
            return int(self.batches.cached.sum()) / max(1, int(self.batches.stored.sum()))
        boundary = int(self.boundary_nodes.sum())
        return int(self.cached_rows.sum()) / boundary if boundary else 0.0


@dataclass(frozen=True, slots=True)
class BoundaryProfile:
    """Boundary nodes of worker n owned by m, counted by their number of cross edges (neighbours among n's inner nodes).

    cross_edges: int64[K], ascending, >= 1: the classes. of_worker: the boundary nodes of one worker by owner and class,
    int64[P, K] (0 for the worker itself); computed on demand, because 1,024 workers need half a gigabyte. pairs:
    int64[P, P]: the same without classes. inner_nodes, inner_entries, boundary_entries: int64[P]: nodes of n, and
    stored entries of its rows to nodes of the same and of other parts; boundary_entries[n] is the sum over m and k of
    of_worker(n)[m, k] cross_edges[k].
    """

    cross_edges: IntArray
    of_worker: Callable[[Rank], IntArray]
    pairs: IntArray
    inner_nodes: IntArray
    inner_entries: IntArray
    boundary_entries: IntArray

    @property
    def parts(self) -> int:
        """P, the number of workers."""
        return int(self.inner_nodes.size)

    @property
    def nodes(self) -> IntArray:
        """Boundary nodes of worker n owned by m, by class, int64[P, P, K]; only for few workers."""
        return np.stack([self.of_worker(rank) for rank in range(self.parts)])

    @property
    def boundary_nodes(self) -> IntArray:
        """B of every worker, int64[P]."""
        total: IntArray = self.pairs.sum(axis=1)
        return total

    @property
    def entries(self) -> IntArray:
        """Stored entries of every worker's rows, int64[P]."""
        return self.inner_entries + self.boundary_entries

    @property
    def cross_fraction(self) -> float:
        """Share of all stored entries that lead to another partition; 0 without entries."""
        total = int(self.entries.sum())
        return int(self.boundary_entries.sum()) / total if total else 0.0


def class_inclusion(profile: BoundaryProfile, epsilon: float) -> FloatArray:
    """The probability that a node of each class is needed when every edge is kept at rate `epsilon`: 1 - (1 -
    epsilon)^m.
    """
    with np.errstate(divide="ignore"):
        chance: FloatArray = -np.expm1(profile.cross_edges * np.log1p(-np.float64(epsilon)))
    return chance


def cross_edges(part: Part) -> IntArray:
    """Cross edges of every boundary node, int64[B]."""
    index = part.columns[part.columns >= part.inner_nodes] - part.inner_nodes
    return np.bincount(index, minlength=part.boundary_nodes)
