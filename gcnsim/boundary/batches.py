"""Mini-batches as counts: what a simulation needs to know of the batches that each worker trains."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gcnsim.ids import BoolArray, Int32Array, IntArray, frozen
from gcnsim.sampling import Batch


@dataclass(frozen=True, slots=True)
class BatchCounts:
    """Per iteration t (0..T-1; a mini-batch on every worker, one model update) and worker n.

    levels: int64[T, P, L + 1]; rows that layer l reads, the last of them the batch's own. entries: int64[T, P, L];
    entries that layer l sums over, self-loops not counted. looked: int64[T, P]; entries that drawing looked at.
    wanted: int64[T, P, P]; input rows of n stored by m, cached ones included. hits: int64[T, P, P]; how many of them
    n's cache holds. cached, stored: int64[P]; rows in the cache, and rows that the worker's batches may ask for.
    per_epoch: iterations in which every training node is trained once.
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
        """The same batches over again, `times` times in all."""
        names = ("levels", "entries", "looked", "wanted", "hits")
        more: dict[str, Any] = {name: frozen(np.concatenate([getattr(self, name)] * times)) for name in names}
        return replace(self, **more)

    @property
    def hit_rate(self) -> float:
        """Share of the wanted input rows that the caches answered."""
        return int(self.hits.sum()) / max(1, int(self.wanted.sum()))


@dataclass(frozen=True, slots=True)
class Store:
    """Where input rows are. owner: int32[N], the worker that stores each node's row; None: each its own copy of all.
    cached: per worker bool[N], rows that its GPU holds; none where nothing is cached. stored: int64[P], rows that a
    worker's batches may ask for."""

    owner: Int32Array | None
    cached: tuple[BoolArray, ...]
    stored: IntArray


def count_batches(drawn: Sequence[Sequence[Batch]], store: Store, per_epoch: int) -> BatchCounts:
    """The counts of real batches. drawn[t][n]: that of worker n in iteration t."""
    return batch_counts(
        [[batch.levels[0] for batch in row] for row in drawn],
        np.array([[[level.size for level in one.levels] for one in row] for row in drawn], np.int64),
        np.array([[one.entries for one in row] for row in drawn], np.int64),
        np.array([[one.looked for one in row] for row in drawn], np.int64),
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
    """The counts of batches whose sizes are known. read[t][n]: nodes whose input rows worker n reads in iteration t."""
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
