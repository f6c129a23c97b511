"""The worker of BNS-GCN (Algorithm 1).

The sender samples, once per iteration for all layers. Of n rows for a peer it takes floor(p n), and one more with the
remaining probability, so that each row has probability p for any n. Receivers divide by p (`boundary_scale: ratio`: by
the share really sampled). Inner edges are neither sampled nor scaled; the mean keeps the full degree. p = 1 is
full-graph training, p = 0 sends nothing. GAT: the softmax runs over the neighbours present, without scaling.
"""

from __future__ import annotations

import math

import numpy as np
import torch

from gcnsim.core.ids import BoolArray, Float32Array, FloatArray, IntArray, Iteration, Rank
from gcnsim.core.streams import stream
from gcnsim.timeline import OpKind
from runtime.exchange import Boundary, BoundaryView, Channel, Requests, SampledGraph
from runtime.exchange.channels import Message, TimedChannel
from runtime.methods.worker import Context, MethodWorker, completed


class BnsGcnWorker(MethodWorker):
    """The worker of BNS-GCN; see the module."""

    def __init__(self, context: Context, rate: float, scale: str) -> None:
        """A synchronous exchange of sampled boundary nodes. scale: the knob `boundary_scale`."""
        super().__init__(context)
        self._rate, self._scale = float(rate), scale
        self._channel = context.channels.open("ids")
        self._ids_sent: dict[tuple[int, str], int] = {}

    def begin(self, t: Iteration) -> tuple[SampledGraph, Boundary | None]:
        """The graph of iteration t, sampled once: it is trained and sent in the same iteration."""
        graph = self.graph(t)
        return graph, None if self.exchange is None else BoundaryView(self.exchange, graph, completed(graph))

    def graph(self, t: Iteration) -> SampledGraph:
        """The graph of iteration t: all inner edges, and those of the boundary nodes that their owners sampled."""
        if self._rate >= 1.0 or self.exchange is None:
            return self.context.whole
        if not self._rate:
            return self._isolated()
        recorder = self.context.recorder
        start = recorder.mark()
        samples = [self._draw(peer, t) for peer in range(self.context.world)]
        recorder.add(OpKind.SAMPLE, "compute", t, start, recorder.mark())
        channel = TimedChannel.over(self._channel, recorder, "compute", t, OpKind.INDEX)
        chosen, factor = self._announce(channel, samples)
        channel.close()
        start = recorder.mark()
        result = self.context.builder.with_boundary(t, chosen, factor).with_requests(self._requests(samples))
        recorder.add(OpKind.INDEX, "compute", t, start, recorder.mark())
        return result

    def _isolated(self) -> SampledGraph:
        """The graph without any boundary; no messages are sent at all."""
        count = self.context.share.part.boundary_nodes
        graph = self.context.builder.with_boundary(0, np.zeros(count, np.bool_), np.ones(count))
        return graph.with_requests(self._requests([np.zeros(0, np.int64)] * self.context.world))

    def inclusion(self) -> Float32Array:
        """p for every boundary node."""
        return np.full(self.context.share.part.boundary_nodes, self._rate, np.float32)

    def sampler(self) -> str:
        """Boundary nodes, not edges."""
        return "bns" if self._rate < 1.0 else super().sampler()

    def rate(self) -> float:
        """p."""
        return self._rate

    def bytes_sent(self) -> dict[tuple[int, str], int]:
        """Bytes sent, including the ids of the sampled rows."""
        return super().bytes_sent() | self._ids_sent

    def _draw(self, peer: Rank, t: Iteration) -> IntArray:
        """Positions in S(rank, peer) that are sent in iteration t, ascending."""
        rank, size = self.context.channels.rank, int(self.context.share.send_sets[peer].size)
        generator = stream(self.context.options.seed, "bns", rank, peer, t)
        mean = self._rate * size
        count = math.floor(mean)
        count += bool(generator.random() < mean - count)
        return np.sort(generator.choice(size, size=count, replace=False)) if size else np.zeros(0, np.int64)

    def _announce(self, channel: Channel, samples: list[IntArray]) -> tuple[BoolArray, FloatArray]:
        """Send the sampled positions to their receivers; returns the boundary nodes to receive, bool[B], and their
        factors.
        """
        peers = [m for m in range(len(samples)) if m != self.context.channels.rank]
        sizes = {m: torch.tensor([samples[m].size], dtype=torch.int32) for m in peers}
        heard = {m: torch.zeros(1, dtype=torch.int32) for m in peers}
        channel.exchange([Message(m, heard[m], False) for m in peers] + [Message(m, sizes[m], True) for m in peers])
        ids = {m: torch.from_numpy(samples[m].astype(np.int32)) for m in peers}
        coming = {m: torch.empty(int(heard[m]), dtype=torch.int32) for m in peers}
        channel.exchange([Message(m, coming[m], False) for m in peers] + [Message(m, ids[m], True) for m in peers])
        for m in peers:
            self._ids_sent[m, "ids"] = self._ids_sent.get((m, "ids"), 0) + 4 * (1 + int(sizes[m]))
        return self._chosen({m: positions.numpy() for m, positions in coming.items()})

    def _chosen(self, coming: dict[Rank, IntArray]) -> tuple[BoolArray, FloatArray]:
        part = self.context.share.part
        chosen = np.zeros(part.boundary_nodes, np.bool_)
        factor = np.full(part.boundary_nodes, 1.0 / self._rate if self._rate else 1.0)
        for m, positions in coming.items():
            first, last = int(part.boundary_ptr[m]), int(part.boundary_ptr[m + 1])
            chosen[first + positions] = True
            if self._scale == "ratio" and positions.size:
                factor[first:last] = (last - first) / positions.size
        return chosen, factor

    def _requests(self, samples: list[IntArray]) -> Requests:
        sets = self.context.share.send_sets
        index = np.concatenate([sets[m][positions] for m, positions in enumerate(samples)])
        sizes = [positions.size for positions in samples]
        rows = torch.from_numpy(index.astype(np.int64)).to(self.context.device)
        return Requests(rows, tuple(np.r_[0, np.cumsum(sizes)].tolist()), tuple(sizes))
