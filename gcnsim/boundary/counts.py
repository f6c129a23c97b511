"""What a simulation needs of an access trace: rows needed by each pair of workers, and how many edges were kept."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gcnsim.boundary.batches import BatchCounts
from gcnsim.ids import Float32Array, IntArray


@dataclass(frozen=True, slots=True)
class AccessCounts:
    """Counts per drawn graph t (0..T-1), worker n and owner m; the schedule's only view of sampling.

    rows: int64[T, P, P]; rows[t, n, m] = boundary nodes of n owned by m that graph t needs (0 for m == n).
    hits: int64[T, P, P]; how many of them n's layer-0 cache holds (hits <= rows).
    inner_edges, boundary_edges: int64[T, P]; stored entries kept, self-loops not counted.
    inner_nodes, boundary_nodes, entries: int64[P]; the whole partition (entries: all stored entries of its rows).
    cached_rows: int64[P]; rows held by the cache.
    reuse: float32[P, 4, W]; how soon each worker's sums read rows again (`gcnsim.partition.reuse`), of a graph drawn;
    None: not known. Workers on CPU cores alone ask for it.
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
    reuse: Float32Array | None = None

    @property
    def iterations(self) -> int:
        """T, the number of drawn graphs."""
        return int(self.rows.shape[0])

    @property
    def workers(self) -> int:
        """P, the number of workers."""
        return int(self.rows.shape[1])

    def repeated(self, times: int) -> AccessCounts:
        """The same graphs over again, `times` times in all."""
        if times == 1:
            return self
        names = ("rows", "hits", "inner_edges", "boundary_edges")
        more: dict[str, Any] = {name: np.concatenate([getattr(self, name)] * times) for name in names}
        batches = None if self.batches is None else self.batches.repeated(times)
        return replace(self, batches=batches, **more)

    def placed(self, order: IntArray) -> AccessCounts:
        """The same graphs, worker n with what was worker order[n]'s. Of exchanges by layer alone (no `batches`)."""
        if self.batches is not None:
            raise ValueError("mini-batches have no parts to place")
        by_worker = ("inner_edges", "boundary_edges", "inner_nodes", "boundary_nodes", "entries", "cached_rows")
        moved: dict[str, Any] = {name: getattr(self, name)[..., order] for name in by_worker}
        pairs: dict[str, Any] = {name: getattr(self, name)[:, order][:, :, order] for name in ("rows", "hits")}
        reuse = None if self.reuse is None else self.reuse[order]
        return replace(self, **moved, **pairs, reuse=reuse)

    @property
    def hit_rate(self) -> float:
        """Share of layer-0 boundary rows that the cache answered, over all graphs and workers; 0 without any row."""
        if self.batches is not None:
            return self.batches.hit_rate
        asked = int(self.rows.sum())
        return int(self.hits.sum()) / asked if asked else 0.0

    @property
    def cache_fraction(self) -> float:
        """Share of all boundary rows that the caches hold; 0 without a boundary."""
        if self.batches is not None:
            return int(self.batches.cached.sum()) / max(1, int(self.batches.stored.sum()))
        boundary = int(self.boundary_nodes.sum())
        return int(self.cached_rows.sum()) / boundary if boundary else 0.0
