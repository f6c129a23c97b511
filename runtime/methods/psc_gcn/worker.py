"""The worker of PSC-GCN (Algorithms 1 and 2, Theorem 2).

The graph of iteration t was sampled, and its rows began to travel, in iteration t - tau; the owners of its boundary
rows add their gradients in iteration t + tau. There are three helper threads. The sampler samples graphs and requests
their rows from owners, one id list per peer and iteration; forward and backward fetch threads move rows and gradients.
tau 0 is the vanilla iteration on a freshly sampled graph. epsilon 1 samples nothing and, with tau 1, is PipeGCN.

Edge probabilities are recomputed every `refresh` iterations from the norms that the iteration measured; before the
first measurement every edge has probability epsilon. GAT's weights are learnt: the rule treats those of a row as equal,
like GraphSAGE's mean, and the softmax runs over the sampled entries and the node itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from gcnsim.core.ids import AnyArray, BoolArray, Float32Array, Iteration
from gcnsim.core.streams import stream
from gcnsim.timeline import OpKind
from gcnsim.workload.caching import CacheSize, cached_mask, capacity
from gcnsim.workload.draws import Draws, inclusion
from gcnsim.workload.samplers import sampler as sampling_rule
from runtime.exchange import CachedRows, SampledGraph, exchange_norms, fetch_rows, request_rows
from runtime.exchange.channels import Message, TimedChannel
from runtime.exchange.staging import CopyStream
from runtime.methods.worker import Context, MethodWorker, completed

T = TypeVar("T")

NONE = -1
"""The version of the probabilities before any norm was measured."""


@dataclass(frozen=True)
class Version:
    """The probabilities between two measurements.

    draws: by p (None: nothing is sampled). weights: of kept entries, P_ij / p_ij, float[nnz] (None for estimators that
    depend on the sample). chance: inclusion, float32[B]. held: the cache.
    """

    draws: Draws | None
    weights: AnyArray | None
    chance: Float32Array
    floored: int
    held: CachedRows | None


class PscGcnWorker(MethodWorker):
    """The worker of PSC-GCN; see the module."""

    def __init__(
        self,
        context: Context,
        *,
        tau: int,
        cold_start: str,
        epsilon: float,
        sampler: str,
        refresh: int,
        estimator: str,
        cache: CacheSize,
        cache_policy: str,
    ) -> None:
        """Open the exchange and the sampler's thread. All but the context are the method's knobs."""
        super().__init__(context, tau, cold_start)
        self.cache, self.cache_policy, self.caches = cache, cache_policy, not cache.empty
        self.epsilon, self.every, self.rule, self.estimator = epsilon, refresh, sampler, estimator
        self.sampled = self.epsilon < 1.0
        self._weighted = self.sampled and self.rule == "vr"
        self._refreshing: bool | None = None
        self._channel = context.channels.open("ids")
        self._thread = ThreadPoolExecutor(1, "sampler")
        self._copies = CopyStream(context.device)
        self._graphs: dict[int, Future[SampledGraph]] = {}
        self._measured: dict[Iteration, Float32Array] = {}
        self._last: Future[None] | None = None
        self._failed: Exception | None = None
        self._version: Version | None = None
        self._chance = np.zeros(context.share.part.boundary_nodes)
        self._drawn = 0
        self._asked: dict[tuple[int, str], int] = {}

    def start(self) -> None:
        """Initialise the probabilities, the cache, and the graphs of the first tau iterations."""
        super().start()
        self._version = self._submit(self._uniform).result()
        if not self.sampled:
            self._graphs[0] = self._submit(self._everything)
            return
        for graph in range(self.tau):
            self._draw(graph, NONE)

    def graphs(self, count: int) -> Iterator[SampledGraph]:
        """The graphs sampled with the probabilities of equal norms, because no norms are computed."""
        self._version = self._submit(self._uniform).result()
        if not self.sampled:
            whole = self._submit(self._everything).result()
            yield from (whole for _ in range(count))
            return
        if self._weighted:
            ones = torch.ones(self.context.share.part.inner_nodes)
            self._submit(self._refresh, 0, ones).result()
        for graph in range(count):
            yield self._submit(self._draw_now, graph, 0).result()

    def graph(self, t: Iteration) -> SampledGraph:
        """The graph of iteration t; samples that of t + tau in the sampler's thread."""
        if not self.sampled:
            return self._graphs[0].result()
        if t + self.tau not in self._graphs:
            self._draw(t + self.tau, t)
        recorder = self.context.recorder
        start, blocked = recorder.mark_compute(), not self._graphs[t].done()
        graph = self._graphs[t].result()
        if blocked:
            recorder.add(OpKind.WAIT, "compute", t, start, recorder.mark_compute())
        self._graphs.pop(t - self.tau - 1, None)
        return graph

    def upcoming(self, t: Iteration) -> Future[SampledGraph]:
        """The graph of t + tau, sampled or being sampled."""
        return self._graphs[t + self.tau] if self.sampled else self._graphs[0]

    def known(self, graph: int) -> SampledGraph:
        """A graph sampled again after a restart."""
        return self._graphs[graph].result() if self.sampled else self._graphs[0].result()

    def measures(self, t: Iteration) -> bool:
        """Every `refresh` iterations, from the first on, or as `refresh_next` says."""
        due = t % self.every == 0 if self._refreshing is None else self._refreshing
        return self._weighted and due

    def refresh_next(self, refreshing: bool) -> None:
        """Whether the next iterations refresh the probabilities, whatever their numbers."""
        self._refreshing = refreshing

    def measured(self, t: Iteration, norms: Tensor) -> None:
        """Exchange the norms with the other workers and recompute the probabilities, in the sampler's thread."""
        self._last = self._submit(self._refresh, t, norms.detach(), after=self._copies.mark())

    def norms(self) -> tuple[Iteration, Float32Array] | None:
        """The last norms of the inner nodes."""
        if self._last is not None:
            self._last.result()
        if not self._measured:
            return None
        t = max(self._measured)
        return t, self._measured[t][: self.context.share.part.inner_nodes]

    def inclusion(self) -> Float32Array:
        """The mean inclusion probability over the sampled graphs."""
        if not self.sampled:
            return super().inclusion()
        return (self._chance / max(self._drawn, 1)).astype(np.float32)

    def sampler(self) -> str:
        """The sampling rule, if graphs are sampled."""
        return self.rule if self.sampled else super().sampler()

    def rate(self) -> float:
        """epsilon."""
        return self.epsilon

    def floored(self) -> int:
        """The number for the last probabilities."""
        return self._version.floored if self._version is not None else 0

    def state(self) -> dict[str, Tensor]:
        """Rows in transit, the norms behind graphs still in use, and the mean inclusion probability."""
        self.drain()
        norms = {f"norms.{t}": torch.from_numpy(array) for t, array in self._measured.items()}
        chance = {"chance": torch.from_numpy(self._chance.copy()), "drawn": torch.tensor([self._drawn])}
        return super().state() | norms | chance

    def restore(self, done: Iteration, state: dict[str, Tensor]) -> None:
        """Sample the graphs in use again, each with its norms; then restore the rows in transit."""
        for name, norms in state.items():
            if name.startswith("norms."):
                self._measured[int(name.removeprefix("norms."))] = norms.numpy()
        if self.sampled:
            self._graphs.clear()
            self._submit(self._redraw, done).result()
            self._chance[:], self._drawn = state["chance"].numpy(), int(state["drawn"])
        super().restore(done, state)

    def drain(self) -> None:
        """Wait for the sampler too."""
        for graph in self._graphs.values():
            graph.result()
        if self._last is not None:
            self._last.result()
        super().drain()

    def close(self) -> None:
        """End the sampler's thread too."""
        self._thread.shutdown(wait=False, cancel_futures=True)
        super().close()

    def bytes_sent(self) -> dict[tuple[int, str], int]:
        """Bytes sent, including ids, norms and cache refreshes."""
        return super().bytes_sent() | dict(self._asked)

    def _submit(self, work: Callable[..., T], *args: Any, after: Any = None) -> Future[T]:
        """Run `work` in the sampler's thread, and what it copies on its own stream, there `after` an event. After a
        failure, all later work fails with the same error.

        Nothing more is sent then: others would take it for the missing message.
        """

        def guarded() -> T:
            if self._failed is not None:
                raise self._failed
            try:
                with self._copies.aside(after):
                    return work(*args)
            except Exception as error:
                self._failed = error
                raise

        return self._thread.submit(guarded)

    def _draw(self, graph: int, at: Iteration) -> None:
        self._graphs[graph] = self._submit(self._draw_now, graph, at)

    def _draw_now(self, graph: int, at: Iteration) -> SampledGraph:
        """Sample graph number `graph` with the present probabilities, and request its rows from their owners."""
        version, share, recorder = self._version, self.context.share, self.context.recorder
        assert version is not None
        assert version.draws is not None
        start = recorder.mark()
        generator = stream(self.context.options.seed, "trace", share.part.rank, graph)
        mask = version.draws.edges(generator)
        builder = self.context.builder
        weights = self._weights(mask) if version.weights is None else version.weights
        joined = self.context.options.gathers
        sampled = builder.thinned(graph, mask, weights, version.held, joined=joined)
        recorder.add(OpKind.SAMPLE, "sampler", max(at, 0), start, recorder.mark())
        self._chance += version.chance
        self._drawn += 1
        return self._with_requests(sampled, max(at, 0))

    def _weights(self, mask: BoolArray) -> AnyArray | None:
        """The weights of estimators that depend on the sample; None: plain means."""
        builder = self.context.builder
        if self.estimator == "mean":
            return None
        return builder.weights(builder.self_normalised(mask))

    def _with_requests(self, graph: SampledGraph, at: Iteration) -> SampledGraph:
        if self.context.world == 1:
            return graph
        channel = self._timed(at, OpKind.INDEX)
        share, device = self.context.share, self.context.device
        requests = request_rows(channel, share, graph.needed, graph.ptr, graph.misses, device, self._count("ids"))
        channel.close()
        return graph.with_requests(requests)

    def _everything(self) -> SampledGraph:
        """The whole graph, with the cached rows kept apart."""
        assert self._version is not None
        return self._with_requests(self.context.builder.whole(self._version.held), 0)

    def _uniform(self) -> Version:
        """The probabilities before any measurement: epsilon everywhere."""
        entries = self.context.share.part.entries
        return self._cached(np.broadcast_to(np.float32(self.epsilon), (entries,)), 0, None, 0)

    def _refresh(self, t: Iteration, inner: Tensor) -> None:
        """New probabilities from the norms of iteration t; norms that a checkpoint may need are kept."""
        share = self.context.share
        channel = self._timed(t, OpKind.INDEX)
        norms = exchange_norms(channel, share, inner, self._count("norms"))
        channel.close()
        self._measured[t] = norms
        oldest = self._version_at(t + 1 - 2 * self.tau)
        for old in [known for known in self._measured if known < oldest]:
            del self._measured[old]
        self._version = self._from_norms(norms, t)

    def _from_norms(self, norms: Float32Array, t: Iteration) -> Version:
        part, recorder = self.context.share.part, self.context.recorder
        start = recorder.mark()
        if self.context.options.model != "gcn" or self.estimator == "mean":
            # A mean's weights are equal within a row, and attention's are treated as equal: cancel the rule's column
            # factor 1/sqrt(deg_j + 1).
            degree = np.concatenate([part.inner_degree, part.boundary_degree])
            norms = (norms * np.sqrt(degree + 1.0)).astype(np.float32)
        found = sampling_rule(self.rule)(part, norms).probabilities(self.epsilon)
        recorder.add(OpKind.SAMPLE, "sampler", t, start, recorder.mark())
        return self._cached(found.p, found.floored, self._version, t)

    def _cached(self, p: Float32Array, floored: int, before: Version | None, t: Iteration) -> Version:
        """The version of `p` with its cache: rows already in the cache stay, new ones are fetched from their owners."""
        context, part = self.context, self.context.share.part
        chance = inclusion(part, p).astype(np.float32) if self.sampled else np.ones(part.boundary_nodes, np.float32)
        draws, weights = Draws(part, p) if self.sampled else None, None
        if self.sampled and self.estimator == "unbiased":
            weights = context.builder.weights(np.divide(1.0, p, dtype=np.float64))
        size = capacity(self.cache, part.boundary_nodes, context.widths[0])
        if context.world == 1 or not self.caches:
            return Version(draws, weights, chance, floored, None)
        channel = self._timed(t, OpKind.CACHE_REFRESH)
        generator = stream(context.options.seed, "cache", part.rank)
        mask = cached_mask(self.cache_policy, size, chance, part.boundary_degree, generator)
        nodes = np.flatnonzero(mask)
        old = before.held if before is not None else None
        new = nodes if old is None else nodes[old.slot[nodes] < 0]
        fetched = fetch_rows(channel, context.share, context.features, new, self._count("cache"))
        slot = np.full(part.boundary_nodes, -1, np.int64)
        slot[nodes] = np.arange(nodes.size)
        rows = torch.empty(nodes.size, context.widths[0], dtype=context.dtype, device=context.device)
        if old is not None:
            stays = nodes[old.slot[nodes] >= 0]
            rows[torch.from_numpy(slot[stays])] = old.rows[torch.from_numpy(old.slot[stays])]
        rows[torch.from_numpy(slot[new])] = fetched
        channel.close()
        return Version(draws, weights, chance, floored, CachedRows(slot, rows))

    def _version_at(self, t: Iteration) -> Iteration:
        """The measurement behind the graph of iteration t; NONE before the first."""
        return (t - 1) // self.every * self.every if self._weighted and t >= 1 else NONE

    def _redraw(self, done: Iteration) -> None:
        """Sample the graphs of iterations done - tau to done - 1 + tau again."""
        current = NONE
        for graph in range(max(done - self.tau, 0), done + self.tau):
            at = graph - self.tau
            wanted = self._version_at(at)
            if wanted != current:
                self._version, current = self._from_norms(self._measured[wanted], wanted), wanted
            self._graphs[graph] = completed(self._draw_now(graph, at))
        wanted = self._version_at(done)
        if wanted != current:
            self._version = self._from_norms(self._measured[wanted], wanted)

    def _timed(self, t: Iteration, kind: OpKind) -> TimedChannel:
        return TimedChannel.over(self._channel, self.context.recorder, "sampler", t, kind)

    def _count(self, kind: str) -> _Counter:
        return _Counter(self._asked, kind)


@dataclass(frozen=True)
class _Counter:
    """Adds the bytes of sent messages under (peer, kind)."""

    total: dict[tuple[int, str], int]
    kind: str

    def __call__(self, message: Message) -> None:
        if message.outgoing:
            key = message.peer, self.kind
            self.total[key] = self.total.get(key, 0) + message.tensor.numel() * message.tensor.element_size()
