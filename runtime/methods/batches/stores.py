"""The store of a worker's input rows: its part, or all of them; rows of other parts are requested from their owners.

Rows of high degree may be cached on the device (PaGraph).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import torch
from torch import Tensor

from gcnsim.core.ids import BoolArray, Int32Array, IntArray, Iteration, Rank
from gcnsim.timeline import Direction, OpKind
from gcnsim.workload.caching import CacheSize, capacity, most_connected
from gcnsim.workload.mini_batches import Batch
from runtime.aggregate import kept_for_compute, matrix_kind
from runtime.exchange import Channel
from runtime.exchange.batches import BatchBuilder, DrawnScaling
from runtime.exchange.channels import Message
from runtime.methods.worker import Context

LOADING = "load"
"""The stream of the loader's thread."""


@dataclass(frozen=True)
class Hits:
    """The rows of a batch in a cache. mask: bool[n], which rows. slots: int64, their indices in the cache's `rows`."""

    mask: BoolArray
    slots: IntArray
    rows: Tensor

    def put_between(self, loaded: Tensor) -> Tensor:
        """All n rows of a batch, with the `loaded` rows that are not in the cache, on the same device."""
        device = loaded.device
        found = loaded.new_empty(self.mask.size, loaded.shape[1])
        found[torch.from_numpy(np.flatnonzero(~self.mask)).to(device)] = loaded
        found[torch.from_numpy(np.flatnonzero(self.mask)).to(device)] = self.rows[
            torch.from_numpy(self.slots).to(device)
        ]
        return found


class Store:
    """The input rows of all nodes in this worker's memory. owner: None, because every worker has all of them."""

    owner: Int32Array | None = None
    caches = False

    def __init__(self, context: Context) -> None:
        """An empty store."""
        self.context = context
        self.bytes_sent: dict[tuple[int, str], int] = {}
        self._rows = torch.zeros(0)

    def start(self) -> None:
        """Read the rows."""
        nodes = np.arange(self.context.dataset.graph.nodes)
        self._rows = torch.from_numpy(self.context.dataset.features.rows(nodes)).to(self.context.dtype)

    def held(self) -> BoolArray:
        """The nodes whose rows are cached, bool[N]."""
        return np.zeros(self.context.dataset.graph.nodes, np.bool_)

    def trained_first(self) -> None:
        """Called when the first batch of this process has been trained."""

    def load(self, t: Iteration, nodes: IntArray) -> tuple[Tensor, Hits | None]:
        """The rows of `nodes` on the device, [n, d_0]; with a cache the missing ones, and the hits."""
        return self.copied(t, self.fetched(t, nodes)), None

    def fetched(self, t: Iteration, nodes: IntArray) -> Tensor:
        """The rows of `nodes` in host memory."""
        return self.gathered(t, LOADING, self._rows, nodes)

    def gathered(self, t: Iteration, name: str, rows: Tensor, index: IntArray) -> Tensor:
        """Some of `rows`, recorded on the stream `name`."""
        recorder = self.context.recorder
        start = recorder.mark()
        found = rows.index_select(0, torch.from_numpy(np.ascontiguousarray(index)))
        recorder.add(
            OpKind.GATHER, name, t, start, recorder.mark(), layer=0, direction=Direction.FORWARD, nbytes=found.nbytes
        )
        return found

    def copied(self, t: Iteration, rows: Tensor) -> Tensor:
        """`rows` on the device; on a CPU they are already there."""
        device, recorder = self.context.device, self.context.recorder
        if device.type == "cpu":
            return rows
        start = recorder.mark()
        found = rows.to(device)
        kept_for_compute(found)
        recorder.add(
            OpKind.H2D, LOADING, t, start, recorder.mark(), layer=0, direction=Direction.FORWARD, nbytes=rows.nbytes
        )
        return found


class PartStore(Store):
    """The input rows of this worker's part; others are requested, by all workers together in each iteration.

    An id in a message is the index of a node among those of its owner, int32; the number of ids is sent first.
    """

    def __init__(self, context: Context) -> None:
        """Number every part's nodes."""
        super().__init__(context)
        self.owner = owner = context.partitioning.owner
        counts = np.bincount(owner, minlength=context.world)
        order = np.argsort(owner, kind="stable")
        self._place = np.empty(owner.size, np.int32)
        self._place[order] = np.arange(owner.size) - np.repeat(np.cumsum(counts) - counts, counts)
        self._channel: Channel = context.channels.open(LOADING)

    def start(self) -> None:
        """Read the worker's features into host memory."""
        self._rows = self.context.features.cpu()

    def fetched(self, t: Iteration, nodes: IntArray) -> Tensor:
        """Request, answer, and combine local and received rows."""
        assert self.owner is not None
        rank, owner = self.context.channels.rank, self.owner[nodes]
        mine = np.flatnonzero(owner == rank)
        peers = [m for m in range(self.context.world) if m != rank]
        if not peers:
            return self.gathered(t, LOADING, self._rows, self._place[nodes].astype(np.int64))
        wanted = {m: np.flatnonzero(owner == m) for m in peers}
        requests = self._requests(t, {m: self._place[nodes[at]].astype(np.int64) for m, at in wanted.items()})
        rows = self._rows.new_empty(nodes.size, self._rows.shape[1])
        rows[torch.from_numpy(mine)] = self.gathered(t, LOADING, self._rows, self._place[nodes[mine]].astype(np.int64))
        answers = {m: self.gathered(t, f"{LOADING}.gather{m}", self._rows, index) for m, index in requests.items()}
        coming = {m: self._rows.new_empty(at.size, self._rows.shape[1]) for m, at in wanted.items()}
        self._swap(t, LOADING, "rows", answers, coming)
        for m, at in wanted.items():
            rows[torch.from_numpy(at)] = coming[m]
        return rows

    def _requests(self, t: Iteration, wanted: dict[Rank, IntArray]) -> dict[Rank, IntArray]:
        """Send every owner the wanted ids; returns the indices of local rows that others request, by peer."""
        numbers = {m: torch.tensor([places.size], dtype=torch.int32) for m, places in wanted.items()}
        heard = {m: torch.zeros(1, dtype=torch.int32) for m in wanted}
        self._swap(t, "ids", "ids", numbers, heard)
        ids = {m: torch.from_numpy(places.astype(np.int32)) for m, places in wanted.items()}
        requests = {m: torch.empty(int(number), dtype=torch.int32) for m, number in heard.items()}
        self._swap(t, "ids", "ids", ids, requests)
        return {m: places.numpy().astype(np.int64) for m, places in requests.items()}

    def _swap(self, t: Iteration, name: str, kind: str, out: dict[Rank, Tensor], into: dict[Rank, Tensor]) -> None:
        """Send `out` and receive `into`, by peer, on streams called `name`."""
        recorder = self.context.recorder
        direction = Direction.FORWARD if kind == "rows" else Direction.NONE
        start = recorder.mark()

        def through(message: Message) -> None:
            way = f"{name}.{'tx' if message.outgoing else 'rx'}{message.peer}"
            recorder.add(
                OpKind.WIRE,
                way,
                t,
                start,
                recorder.mark(),
                layer=0 if kind == "rows" else -1,
                direction=direction,
                peer=message.peer,
                nbytes=message.nbytes,
            )
            if message.outgoing:
                key = message.peer, kind
                self.bytes_sent[key] = self.bytes_sent.get(key, 0) + message.nbytes

        messages = [Message(m, tensor, False) for m, tensor in into.items()]
        self._channel.exchange(messages + [Message(m, tensor, True) for m, tensor in out.items()], through)


RESERVED: Final = 1e9
"""Bytes of GPU memory that a cache of size `auto` leaves free (PaGraph)."""


@dataclass(frozen=True)
class StaticCache:
    """Rows on the device, never changed. slot: int32[N], the index of a node's row; -1: not cached. rows: [C, d_0]."""

    slot: Int32Array
    rows: Tensor


class CachedStore(Store):
    """The rows of the nodes in a part `holds`, bool[N]; other nodes are never requested."""

    def __init__(self, context: Context, holds: BoolArray, size: CacheSize, *, sums: bool = False) -> None:
        """An empty store. sums: rows are precomputed sums over neighbours; GraphSAGE has the node's row before it."""
        super().__init__(context)
        self._holds, self._size, self._sums = holds, size, sums
        self.caches = not size.empty
        self._place = np.cumsum(holds) - 1
        self._cache: StaticCache | None = None

    def start(self) -> None:
        """Read the part's rows and fill the cache, unless its size depends on the memory after the first batch."""
        nodes = np.flatnonzero(self._holds)
        self._rows = self._summed(nodes) if self._sums else self._features(nodes)
        if self.caches and not self._measured_later():
            stored = int(nodes.size)
            self._fill(stored if self._size.auto else capacity(self._size, stored, self._rows.shape[1]))

    def trained_first(self) -> None:
        """Called when the first batch of this process has been trained, so that its memory is known."""
        if not self.caches or not self._measured_later():
            return
        device = self.context.device
        # Other processes and the CUDA context take memory too; a batch will need its peak again.
        free = torch.cuda.mem_get_info(device)[0] + torch.cuda.memory_reserved(device)
        free -= torch.cuda.max_memory_allocated(device)
        per_row = self._rows.shape[1] * self._rows.element_size()
        self._fill(max(0, min(self._rows.shape[0], int((free - RESERVED) // per_row))))

    def held(self) -> BoolArray:
        """The nodes in the cache, bool[N]."""
        return super().held() if self._cache is None else self._cache.slot >= 0

    def load(self, t: Iteration, nodes: IntArray) -> tuple[Tensor, Hits | None]:
        """The rows that are not in the cache, and the places of the others."""
        cache = self._cache
        if cache is None:
            return super().load(t, nodes)
        slot = cache.slot[nodes]
        hit = slot >= 0
        rows = self.copied(t, self.fetched(t, nodes[~hit]))
        return rows, Hits(hit, slot[hit].astype(np.int64), cache.rows)

    def fetched(self, t: Iteration, nodes: IntArray) -> Tensor:
        """Rows from the part."""
        return super().fetched(t, self._place[nodes])

    def _features(self, nodes: IntArray) -> Tensor:
        return torch.from_numpy(self.context.dataset.features.rows(nodes)).to(self.context.dtype)

    def _summed(self, nodes: IntArray) -> Tensor:
        """The sums over all neighbours of `nodes`, [n, d_0], or the nodes' rows and these, [n, 2 d_0]."""
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
        # A single assignment, so that the loader sees a complete cache or none.
        self._cache = StaticCache(slot, rows)
