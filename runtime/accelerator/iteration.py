"""One iteration of a worker on a device, as waits: the order of kernels and transfers on its compute stream.

The order is that of the published algorithms as `gcnsim.methods.families.gpu_workers` reads them. Received rows are
taken in, neighbours summed, rows updated, layer by layer and back again; then gradients are summed over all workers.

Samplers are threads beside the device. Their graphs are known before the run; only the time that drawing takes is
waited for. Ids travel as they do in training. Both ends know counts and ids, so every message is expected.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch

from gcnsim.core.ids import FloatArray, Iteration, Layer
from gcnsim.timeline import Direction, OpKind
from runtime.accelerator.exchange import WaitingExchange
from runtime.accelerator.lengths import OpSeconds
from runtime.accelerator.machine import Lane, ScaledRecorder, WaitMachine, now
from runtime.emulation.spec import AHEAD
from runtime.exchange import Channel, SampledGraph
from runtime.exchange.channels import Message


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
        lengths: OpSeconds,
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
        requests_known: Future[int] = Future()
        self._there[number] = there
        coming = self._channel.post(self._ids(_sizes(graph.incoming_requests().ptr), outgoing=False))

        def draw() -> None:
            end = self._drawn(t, ready, _of(self._seconds, t))
            leaving = self._channel.post(self._ids(_sizes(graph.ptr), outgoing=True))
            self._threads["graph"].submit(bring, end)
            self._threads["ids"].submit(hear)
            self._channel.await_all(leaving)

        def bring(ready: int) -> None:
            end = self._uploaded(t, ready, float(self._nbytes[number % len(self._nbytes)]))
            there.set_result([(OpKind.INDEX, end)])

        def hear() -> None:
            self._channel.await_all(coming)
            requests_known.set_result(now())

        self._threads["sampler"].submit(_failing(draw, there, requests_known))
        return requests_known

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
        lengths: OpSeconds,
        rate: float,
    ) -> None:
        super().__init__(machine, exchange, channel, recorder)
        self._seconds, self._nbytes = lengths.draw_nodes(rate), lengths.node_bytes()

    def begin(self, t: Iteration, ready: int) -> None:
        graph = self._exchange.graph(t)
        there: Future[list[tuple[OpKind, int]]] = Future()
        self._there[t] = there

        def draw() -> None:
            drawn = self._drawn(t, ready, _of(self._seconds, t))
            self._told(graph, counts=True)
            self._told(graph, counts=False)
            requests_known = now()
            end = self._uploaded(t, requests_known, float(self._nbytes[t % len(self._nbytes)]))
            there.set_result([(OpKind.SAMPLE, drawn), (OpKind.WAIT, requests_known), (OpKind.INDEX, end)])

        self._threads["sampler"].submit(_failing(draw, there))

    def wait(self, t: Iteration) -> list[tuple[OpKind, int]]:
        return self._there.pop(t).result()

    def _told(self, graph: SampledGraph, *, counts: bool) -> None:
        """Tell all peers what they will be sent, and hear the same of them."""
        ones = [1] * len(_sizes(graph.ptr))
        leaving = ones if counts else _sizes(graph.incoming_requests().ptr)
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
            for future in futures:
                if not future.done():
                    future.set_exception(error)

    return guarded


FORWARD, BACKWARD = Direction.FORWARD, Direction.BACKWARD


@dataclass
class DeviceIteration:
    """The compute stream of one worker. exchange: None of a single worker. central: inner columns are summed beneath
    transfers of the same iteration. nbytes: of all gradients."""

    machine: WaitMachine
    recorder: ScaledRecorder
    lengths: OpSeconds
    exchange: WaitingExchange | None
    sampler: Sampler
    central: bool
    nbytes: int

    def __post_init__(self) -> None:
        self._compute = Lane()
        self._compute.free = now()
        self.tau = 0 if self.exchange is None else self.exchange.tau

    def run(self, t: Iteration, reduce: Callable[[], None]) -> int:
        """Iteration t; how long it took, in ns of what the waits stand for. reduce: sums all workers' gradients."""
        begun = self._compute.free
        if self.exchange is not None and not self.tau and self.machine.accelerator.receives == AHEAD:
            self.exchange.expect(t, len(self.lengths.layers))
        requests_known = self.sampler.begin(t, begun)
        self._await_graph(t)
        for layer in range(len(self.lengths.layers)):
            self._forward(t, layer, requests_known if layer == 0 else None)
        self._kernel(OpKind.LOSS, t, _of(self.lengths.loss, t))
        for layer in reversed(range(len(self.lengths.layers))):
            self._backward(t, layer)
        if self.exchange is not None:
            self._reduce(t, reduce)
        self._kernel(OpKind.STEP, t, _of(self.lengths.step, t))
        return self.recorder.at(self._compute.free) - self.recorder.at(begun)

    def _await_graph(self, t: Iteration) -> None:
        for kind, until in self.sampler.wait(t):
            self._blocked(kind, t, until)
        if self.sampler.picks:
            self._kernel(OpKind.INDEX, t, _of(self.lengths.pick(), t))

    def _forward(self, t: Iteration, layer: Layer, requests_known: Future[int] | None) -> None:
        own, exchange = self.lengths.layers[layer], self.exchange
        beneath = self.central and not self.tau and exchange is not None
        if exchange is not None and not self.tau:
            exchange.send(t, layer, FORWARD, self._compute.free, requests_known)
        if beneath:
            self._kernel(OpKind.AGGREGATE, t, _of(own.inner_sum, t), layer, FORWARD)
        if exchange is not None:
            self._take_in(exchange, t, layer, FORWARD, _of(own.unpack, t))
            if self.tau:
                exchange.send(t, layer, FORWARD, self._compute.free, requests_known)
        if layer == 0:
            self._kernel(OpKind.LOOKUP, t, _of(self.lengths.lookup, t), layer, FORWARD)
        summed = own.cross_sum if beneath else own.cost.aggregate
        self._kernel(OpKind.AGGREGATE, t, _of(summed, t), layer, FORWARD)
        self._kernel(OpKind.UPDATE, t, _of(own.cost.update, t), layer, FORWARD)

    def _backward(self, t: Iteration, layer: Layer) -> None:
        own, exchange = self.lengths.layers[layer], self.exchange
        self._kernel(OpKind.UPDATE, t, _of(own.cost.update_backward, t), layer, BACKWARD)
        if layer == 0:
            return
        beneath = self.central and not self.tau and exchange is not None
        summed = own.cross_sum_back if beneath else own.cost.aggregate_backward
        self._kernel(OpKind.AGGREGATE, t, _of(summed, t), layer, BACKWARD)
        if exchange is None:
            return
        if not self.tau:
            exchange.send(t, layer, BACKWARD, self._compute.free)
        if beneath:
            self._kernel(OpKind.AGGREGATE, t, _of(own.inner_sum_back, t), layer, BACKWARD)
        self._take_in(exchange, t, layer, BACKWARD, _of(own.unpack_back, t - self.tau))
        if self.tau:
            exchange.send(t, layer, BACKWARD, self._compute.free)

    def _take_in(
        self, exchange: WaitingExchange, t: Iteration, layer: Layer, direction: Direction, seconds: float
    ) -> None:
        """Wait for received rows, and for the kernel that puts them where they belong."""
        self._blocked(OpKind.WAIT, t, exchange.receive(t, layer, direction), layer, direction)
        if t >= self.tau:
            self._kernel(OpKind.SCATTER, t, seconds, layer, direction)

    def _reduce(self, t: Iteration, reduce: Callable[[], None]) -> None:
        """Gradients to the host, once around all workers, and back."""
        machine, start = self.machine, self._compute.free
        machine.copy(machine.to_host, machine.reducing, start, self.nbytes)
        reduce()
        _, end = machine.copy(machine.to_device, machine.reducing, now(), self.nbytes)
        at = self.recorder.at
        self.recorder.add(OpKind.ALLREDUCE, "reduce", t, at(start), at(end))
        self._blocked(OpKind.WAIT, t, end)

    def _blocked(
        self, kind: OpKind, t: Iteration, until: int, layer: Layer = -1, direction: Direction = Direction.NONE
    ) -> None:
        """The compute stream has stood still until the instant `until`, for work of this kind."""
        start = self._compute.free
        if until <= start:
            return
        at = self.recorder.at
        self.recorder.add(kind, "compute", t, at(start), at(until), layer=layer, direction=direction)
        self._compute.free = until

    def _kernel(
        self, kind: OpKind, t: Iteration, seconds: float, layer: Layer = -1, direction: Direction = Direction.NONE
    ) -> None:
        length = self.machine.ns(seconds)
        if length:
            start, end = self._compute.work(0, length)
            at = self.recorder.at
            self.recorder.add(kind, "compute", t, at(start), at(end), layer=layer, direction=direction)


def _of(seconds: FloatArray, number: int) -> float:
    """Of iteration `number`, which trains the graph of this number; they come in turn."""
    return float(seconds[number % seconds.size]) if seconds.ndim else float(seconds)
