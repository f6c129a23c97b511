"""The exchange with a device's streams around it: pack kernels, copies down, messages, copies up, side by side.

The rings of slots, the threads and the messages are those of `runtime.exchange`. A thread each packs, copies down and
sends, and receives and copies up, in both directions: what a GPU has as streams. What a worker sends to another, rows
and gradients, goes over one connection (`gcnsim.methods.families.gpu_workers`), so both share a channel and have tags.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from gcnsim.core.ids import Iteration, Layer
from gcnsim.timeline import Direction, OpKind
from gcnsim.workload.staleness import source_iteration
from runtime.accelerator.machine import Lane, ScaledRecorder, WaitMachine, now
from runtime.exchange import Exchange, SampledGraph
from runtime.exchange.channels import Message, Posted
from runtime.exchange.exchange import TAG, Sent, pieces

if TYPE_CHECKING:
    from runtime.accelerator.lengths import OpSeconds

STAGES = ("pack", "down", "up", "sent")


class WaitingExchange(Exchange):
    """Transfers whose packing and copies are waits, and whose messages travel."""

    def __init__(self, machine: WaitMachine, *arguments: Any, **named: Any) -> None:
        """machine: of this worker; other arguments as of `Exchange`."""
        super().__init__(*arguments, **named | {"threaded": False, "together": True})
        assert isinstance(self._recorder, ScaledRecorder)
        self._machine, self._scaled = machine, self._recorder
        self._stage = {
            (direction, stage): ThreadPoolExecutor(1, f"{TAG[direction]}-{stage}")
            for direction in self._channel
            for stage in STAGES
        }
        self._lanes = {key: Lane() for key in self._stage}
        self._expected: dict[tuple[Direction, Layer], Posted] = {}
        self._there: dict[tuple[Direction, Layer, Iteration], int] = {}
        self._counting = threading.Lock()
        self.graphs: Sequence[SampledGraph] = ()
        """Those that the iterations train, in turn."""
        self.lengths: OpSeconds | None = None

    def close(self) -> None:
        """End the threads."""
        for thread in self._stage.values():
            thread.shutdown(wait=False, cancel_futures=True)

    def drain(self) -> None:
        """Wait for what is under way, what is being sent included."""
        super().drain()
        for direction in self._channel:
            self._stage[direction, "sent"].submit(int).result()

    def graph(self, number: int) -> SampledGraph:
        """The graph that iteration `number` trains."""
        return self.graphs[number % len(self.graphs)]

    def receive(self, t: Iteration, layer: Layer, direction: Direction) -> int:
        """Wait for what iteration t reads; when it was on the device, 0 at a cold start."""
        source = source_iteration(t, self.tau)
        if source is None:
            return 0
        sent = self._slot(direction, layer, source).sent
        assert sent is not None
        sent.done.result()
        return self._there.pop((direction, layer, source))

    def expect(self, t: Iteration, layers: int) -> None:
        """Post the receives of all transfers of the synchronous iteration t, whose slots nobody reads any more."""
        for direction in self._channel:
            for layer in range(1 if direction is Direction.BACKWARD else 0, layers):
                place = self._place(direction, layer, t)
                _, incoming = self._messages(self.graph(t), layer, direction, place)
                self._expected[direction, layer] = self._channel[direction].post(incoming)

    def send(
        self, t: Iteration, layer: Layer, direction: Direction, ready: int, requests_known: Future[int] | None = None
    ) -> None:
        """Start the transfer of iteration t, whose rows are made at the instant `ready`.

        requests_known: when the others' wishes are known, if they are not yet. What comes in is expected from now on:
        its slot has been read.
        """
        number = t + self.tau if direction is Direction.FORWARD else t
        graph = self.graph(number)
        place = self._place(direction, layer, t)
        outgoing, incoming = self._messages(graph, layer, direction, place)
        done: Future[SampledGraph] = Future()
        place.sent = Sent(t, done)
        coming = self._expected.pop((direction, layer), None) or self._channel[direction].post(incoming)
        packing = self._pack_ns(number, layer, direction)

        def pack() -> None:
            begun = ready if requests_known is None else max(ready, requests_known.result())
            start, end = self._lanes[direction, "pack"].work(begun, packing) if packing else (begun, begun)
            self._logged(OpKind.PACK, f"{TAG[direction]}.pack", t, layer, direction, start, end)
            self._next(direction, "down", done, down, end)

        def down(ready: int) -> None:
            start, end = self._copied(direction, "down", ready, outgoing)
            self._logged(OpKind.D2H, f"{TAG[direction]}.d2h", t, layer, direction, start, end)
            begun = now()
            leaving = self._channel[direction].post(outgoing)
            self._next(direction, "sent", done, sent, leaving, begun)

        def up(begun: int) -> None:
            arrived = self._arrived(coming, t, layer, direction, begun)
            start, end = self._copied(direction, "up", arrived, incoming)
            self._logged(OpKind.H2D, f"{TAG[direction]}.h2d", t, layer, direction, start, end)
            self._there[direction, layer, t] = max(arrived, end)
            done.set_result(graph)

        def sent(leaving: Posted, begun: int) -> None:
            self._channel[direction].await_all(leaving, lambda item: self._left(item, t, layer, direction, begun))

        # What comes in is watched from now on, whatever else this worker still does for what leaves.
        self._next(direction, "up", done, up, now())
        self._next(direction, "pack", done, pack)

    def _next(
        self, direction: Direction, stage: str, done: Future[SampledGraph], work: Callable[..., None], *arguments: Any
    ) -> None:
        """Do `work` in the thread of a stage; what fails there fails the transfer, and all later ones."""

        def guarded() -> None:
            try:
                if direction in self._failed:
                    raise self._failed[direction]
                work(*arguments)
            except BaseException as error:
                self._failed.setdefault(direction, error)
                if not done.done():
                    done.set_exception(error)

        self._stage[direction, stage].submit(guarded)

    def _messages(
        self, graph: SampledGraph, layer: Layer, direction: Direction, place: Any
    ) -> tuple[list[Message], list[Message]]:
        """What leaves for each peer, from the next one on, and what comes from each."""
        requests, tag = graph.incoming_requests(), self._tag(direction, layer)
        if direction is Direction.FORWARD:
            first = layer == 0 and graph.held is not None
            leaving = pieces(place.outgoing.wire(requests.rows), requests.ptr, requests.misses if first else None)
            coming = pieces(place.incoming.wire(graph.rows), graph.ptr, graph.misses if first else None)
        else:
            leaving = pieces(place.outgoing.wire(graph.rows), graph.ptr, None)
            coming = pieces(place.incoming.wire(requests.rows), requests.ptr, None)
        world, rank = len(leaving), self._channel[direction].rank
        peers = [(rank + step) % world for step in range(1, world)]
        outgoing = [Message(peer, leaving[peer], True, tag) for peer in peers]
        return outgoing, [Message(peer, coming[peer], False, tag) for peer in peers]

    def _pack_ns(self, number: int, layer: Layer, direction: Direction) -> int:
        assert self.lengths is not None
        own = self.lengths.layers[layer]
        seconds = own.pack if direction is Direction.FORWARD else own.pack_back
        return self._machine.ns(float(seconds[number % seconds.size]))

    def _copied(self, direction: Direction, stage: str, ready: int, messages: list[Message]) -> tuple[int, int]:
        way = self._machine.to_host if stage == "down" else self._machine.to_device
        nbytes = sum(message.nbytes for message in messages)
        return self._machine.copy(way, self._lanes[direction, stage], ready, nbytes)

    def _arrived(self, coming: Posted, t: Iteration, layer: Layer, direction: Direction, begun: int) -> int:
        """When all that comes in was there; what came while its thread was busy, was there before the last was done."""
        lane = self._lanes[direction, "up"]
        there, free = all(work.is_completed() for work in coming.works), lane.free

        def got(message: Message) -> None:
            stream = f"{TAG[direction]}.rx{message.peer}"
            self._logged(OpKind.WIRE, stream, t, layer, direction, begun, now(), message.peer)

        self._channel[direction].await_all(coming, got)
        arrived = min(now(), free) if there and free else now()
        lane.free = max(lane.free, arrived)
        return arrived

    def _left(self, message: Message, t: Iteration, layer: Layer, direction: Direction, begun: int) -> None:
        key = message.peer, "rows" if direction is Direction.FORWARD else "gradients"
        with self._counting:
            self.bytes_sent[key] = self.bytes_sent.get(key, 0) + message.nbytes
        stream = f"{TAG[direction]}.tx{message.peer}"
        self._logged(OpKind.WIRE, stream, t, layer, direction, begun, now(), message.peer, message.nbytes)

    def _logged(
        self,
        kind: OpKind,
        stream: str,
        t: Iteration,
        layer: Layer,
        direction: Direction,
        start: int,
        end: int,
        peer: int = -1,
        nbytes: float = 0.0,
    ) -> None:
        if end > start:
            at = self._scaled.at
            self._recorder.add(
                kind, stream, t, at(start), at(end), layer=layer, direction=direction, peer=peer, nbytes=nbytes
            )
