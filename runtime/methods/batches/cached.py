"""A store of the rows of one part, those of high degree cached on the device (PaGraph)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import torch
from torch import Tensor

from gcnsim.caching import CacheSize, capacity, most_connected
from gcnsim.ids import BoolArray, Int32Array, IntArray, Iteration
from gcnsim.sampling import Batch
from runtime.aggregate import matrix_kind
from runtime.exchange.batches import BatchBuilder, DrawnScaling
from runtime.methods.batches.stores import Hits, Store
from runtime.methods.worker import Context

RESERVED: Final = 1e9
"""Bytes of a GPU's memory that a cache of size `auto` leaves free (PaGraph)."""


@dataclass(frozen=True)
class StaticCache:
    """Rows on the device, never changed. slot: int32[N], where a node's row is; -1: nowhere. rows: [C, d_0]."""

    slot: Int32Array
    rows: Tensor


class CachedStore(Store):
    """The rows of the nodes that a part `holds`, bool[N]; a node outside is never asked for."""

    def __init__(self, context: Context, holds: BoolArray, size: CacheSize, *, sums: bool = False) -> None:
        """Nothing is read yet. sums: rows are what layer 0 makes of its neighbours, GraphSAGE's own rows before it."""
        super().__init__(context)
        self._holds, self._size, self._sums = holds, size, sums
        self.caches = not size.empty
        self._place = np.cumsum(holds) - 1
        self._cache: StaticCache | None = None

    def start(self) -> None:
        """Read the part's rows and fill the cache, unless it is as large as the first batch leaves room for."""
        nodes = np.flatnonzero(self._holds)
        self._rows = self._summed(nodes) if self._sums else self._features(nodes)
        if self.caches and not self._measured_later():
            stored = int(nodes.size)
            self._fill(stored if self._size.auto else capacity(self._size, stored, self._rows.shape[1]))

    def trained_first(self) -> None:
        """The first batch of this process is trained: what memory it needs is known."""
        if not self.caches or not self._measured_later():
            return
        device = self.context.device
        free = torch.cuda.get_device_properties(device).total_memory - torch.cuda.max_memory_allocated(device)
        per_row = self._rows.shape[1] * self._rows.element_size()
        self._fill(max(0, min(self._rows.shape[0], int((free - RESERVED) // per_row))))

    def held(self) -> BoolArray:
        """The nodes in the cache, bool[N]."""
        return super().held() if self._cache is None else self._cache.slot >= 0

    def load(self, t: Iteration, nodes: IntArray) -> tuple[Tensor, Hits | None]:
        """The rows that the cache lacks, and where the others are."""
        cache = self._cache
        if cache is None:
            return super().load(t, nodes)
        slot = cache.slot[nodes]
        hit = slot >= 0
        rows = self.copied(t, self.fetched(t, nodes[~hit]))
        return rows, Hits(hit, slot[hit].astype(np.int64), cache.rows)

    def fetched(self, t: Iteration, nodes: IntArray) -> Tensor:
        """Out of the rows of the part."""
        return super().fetched(t, self._place[nodes])

    def _features(self, nodes: IntArray) -> Tensor:
        return torch.from_numpy(self.context.dataset.features.rows(nodes)).to(self.context.dtype)

    def _summed(self, nodes: IntArray) -> Tensor:
        """The sums over all neighbours of `nodes`, [n, d_0], or their own rows and these, [n, 2 d_0]."""
        context, graph = self.context, self.context.dataset.graph
        every = np.arange(graph.nodes)
        places = np.flatnonzero(np.repeat(self._holds, graph.degrees))
        whole = Batch((every, nodes), (int(places.size),), int(places.size), (places,))
        made = BatchBuilder(graph, context.weights, DrawnScaling(graph, (graph.nodes,))).built(0, whole)
        (rows,) = made.rows
        assert rows is not None
        x = self._features(made.nodes)
        sums = x.new_empty(nodes.size, x.shape[1])
        matrix_kind(context.options.aggregator)(rows, context.dtype, x.device).multiply(x, sums)
        return torch.cat([x[: nodes.size], sums], 1) if context.options.model == "graphsage" else sums

    def _measured_later(self) -> bool:
        return self._size.auto and self.context.device.type == "cuda"

    def _fill(self, count: int) -> None:
        chosen = np.flatnonzero(most_connected(self.context.dataset.graph, self._holds, count))
        slot = np.full(self._holds.size, -1, np.int32)
        slot[chosen] = np.arange(chosen.size, dtype=np.int32)
        rows = self._rows[torch.from_numpy(self._place[chosen])].to(self.context.device)
        # One assignment: the loader sees the whole cache or none.
        self._cache = StaticCache(slot, rows)
