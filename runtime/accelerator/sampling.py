"""The thread that draws graphs, beside a device: the graphs are known before the run, what it takes is waited for.

Ids travel as they do in training; counts and ids are known to both ends, so nothing that comes is a surprise.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import torch

from gcnsim.ids import Iteration
from gcnsim.timeline import OpKind
from runtime.accelerator.clock import Lane, ScaledRecorder, now
from runtime.exchange import Channel, SampledGraph
from runtime.exchange.channels import Message

if TYPE_CHECKING:
    from runtime.accelerator.exchange import WaitingExchange
    from runtime.accelerator.lengths import Lengths
    from runtime.accelerator.machine import WaitMachine


class Sampler:
    """Draws nothing; the base of those that do. told: when the iteration's rows may leave, None: at once."""

    picks = False
    """Whether the device picks the entries of each iteration's graph before it trains it."""

    def begin(self, t: Iteration, ready: int) -> Future[int] | None:
        """Start iteration t's drawing at the instant `ready`; when it is known what the others want."""
        return None

    def wait(self, t: Iteration) -> list[tuple[OpKind, int]]:
        """Wait until the device has the graph that iteration t trains; what passed until which instants, in order."""
        return []

    def close(self) -> None:
        """End the threads."""


class _Drawing(Sampler):
    """A thread that draws, one that copies to the device, one that hears what others want."""

    def __init__(
        self, machine: WaitMachine, exchange: WaitingExchange, channel: Channel, recorder: ScaledRecorder
    ) -> None:
        self._machine, self._exchange, self._channel, self._recorder = machine, exchange, channel, recorder
        self._threads = {name: ThreadPoolExecutor(1, name) for name in ("sampler", "graph", "ids")}
        self._lanes = {name: Lane() for name in self._threads}
        self._there: dict[Iteration, Future[list[tuple[OpKind, int]]]] = {}

    def close(self) -> None:
        for thread in self._threads.values():
            thread.shutdown(wait=False, cancel_futures=True)

    def _drawn(self, t: Iteration, ready: int, seconds: float) -> int:
        start, end = self._lanes["sampler"].work(ready, self._machine.ns(seconds))
        self._span(OpKind.SAMPLE, "sampler", t, start, end)
        return end

    def _uploaded(self, t: Iteration, ready: int, nbytes: float) -> int:
        start, end = self._machine.copy(self._machine.to_device, self._lanes["graph"], ready, nbytes)
        self._span(OpKind.INDEX, "graph.h2d", t, start, end)
        return end

    def _ids(self, counts: list[int], *, outgoing: bool) -> list[Message]:
        """A list of ids for each peer, in ascending order."""
        peers = [peer for peer in range(len(counts)) if peer != self._channel.rank]
        return [Message(peer, torch.zeros(counts[peer], dtype=torch.int32), outgoing) for peer in peers]

    def _span(self, kind: OpKind, stream: str, t: Iteration, start: int, end: int) -> None:
        if end > start:
            self._recorder.add(kind, stream, t, self._recorder.at(start), self._recorder.at(end))


class EdgeSampler(_Drawing):
    """PSC-GCN's: in iteration t the graph of t + tau is drawn, its rows asked for, and then brought to the device."""

    def __init__(
        self,
        machine: WaitMachine,
        exchange: WaitingExchange,
        channel: Channel,
        recorder: ScaledRecorder,
        lengths: Lengths,
        refresh: int,
        *,
        weighted: bool,
    ) -> None:
        super().__init__(machine, exchange, channel, recorder)
        self._seconds = lengths.draw_edges(refresh, weighted=weighted)
        self._nbytes = lengths.graph_bytes()

    def begin(self, t: Iteration, ready: int) -> Future[int]:
        number = t + self._exchange.tau
        graph = self._exchange.graph(number)
        there: Future[list[tuple[OpKind, int]]] = Future()
        told: Future[int] = Future()
        self._there[number] = there
        coming = self._channel.post(self._ids(_sizes(graph.asked().ptr), outgoing=False))

        def draw() -> None:
            end = self._drawn(t, ready, self._seconds)
            leaving = self._channel.post(self._ids(_sizes(graph.ptr), outgoing=True))
            self._threads["graph"].submit(bring, end)
            self._threads["ids"].submit(hear)
            self._channel.await_all(leaving)

        def bring(ready: int) -> None:
            end = self._uploaded(t, ready, float(self._nbytes[number % len(self._nbytes)]))
            there.set_result([(OpKind.INDEX, end)])

        def hear() -> None:
            self._channel.await_all(coming)
            told.set_result(now())

        self._threads["sampler"].submit(_failing(draw, there, told))
        return told

    def wait(self, t: Iteration) -> list[tuple[OpKind, int]]:
        # The graphs of the first tau iterations are there before the first.
        found = self._there.pop(t, None)
        return [] if found is None else found.result()


class NodeSampler(_Drawing):
    """BNS-GCN's: owners draw what they send and tell it, how many and which; ids are brought to the device."""

    picks = True

    def __init__(
        self,
        machine: WaitMachine,
        exchange: WaitingExchange,
        channel: Channel,
        recorder: ScaledRecorder,
        lengths: Lengths,
        rate: float,
    ) -> None:
        super().__init__(machine, exchange, channel, recorder)
        self._seconds, self._nbytes = lengths.draw_nodes(rate), lengths.node_bytes()

    def begin(self, t: Iteration, ready: int) -> None:
        graph = self._exchange.graph(t)
        there: Future[list[tuple[OpKind, int]]] = Future()
        self._there[t] = there

        def draw() -> None:
            drawn = self._drawn(t, ready, self._seconds)
            self._told(graph, counts=True)
            self._told(graph, counts=False)
            told = now()
            end = self._uploaded(t, told, float(self._nbytes[t % len(self._nbytes)]))
            there.set_result([(OpKind.SAMPLE, drawn), (OpKind.WAIT, told), (OpKind.INDEX, end)])

        self._threads["sampler"].submit(_failing(draw, there))

    def wait(self, t: Iteration) -> list[tuple[OpKind, int]]:
        return self._there.pop(t).result()

    def _told(self, graph: SampledGraph, *, counts: bool) -> None:
        """Tell all peers what they will be sent, and hear the same of them."""
        ones = [1] * len(_sizes(graph.ptr))
        leaving = ones if counts else _sizes(graph.asked().ptr)
        coming = ones if counts else _sizes(graph.ptr)
        self._channel.exchange(self._ids(coming, outgoing=False) + self._ids(leaving, outgoing=True))


def _sizes(ptr: tuple[int, ...]) -> list[int]:
    return [last - first for first, last in pairwise(ptr)]


def _failing(work: Callable[[], None], *futures: Future[Any]) -> Callable[[], None]:
    """`work`, whose error is raised where its results are awaited."""

    def guarded() -> None:
        try:
            work()
        except BaseException as error:
            for each in futures:
                if not each.done():
                    each.set_exception(error)

    return guarded
