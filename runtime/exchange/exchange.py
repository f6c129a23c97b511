"""The exchange: one transfer per iteration, layer and direction, through a ring of tau slots.

At iteration t a layer reads the rows of iteration t - tau (`gcnsim.workload.staleness`). Then its own rows start to
travel into the slot that was just read. With tau 0 the same slot is filled and read within the layer. Each slot is
tagged with its iteration, so a row of another age can never be read.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import torch
from torch import Tensor

from gcnsim.core.ids import Iteration, Layer
from gcnsim.timeline import Direction, OpKind
from gcnsim.workload.staleness import slot, source_iteration
from runtime.exchange.channels import Channel, Channels, Message, Posted
from runtime.exchange.sampled_graph import SampledGraph
from runtime.exchange.staging import CopyStream, Staging
from runtime.record import Mark, Recorder

TAG = {Direction.FORWARD: "f", Direction.BACKWARD: "b"}
ROWS = "rows"
"""The channel of both directions, if they share one."""


@dataclass
class Sent:
    """A transfer, active or done. iteration: of the values. drawn: the graph whose rows travel."""

    iteration: Iteration
    done: Future[SampledGraph]


@dataclass
class _Slot:
    """The buffers of one transfer."""

    outgoing: Staging
    incoming: Staging
    sent: Sent | None = None


@dataclass(frozen=True)
class _Transfer:
    """An active transfer of rows or gradients: `count` rows arrive in `target`."""

    t: Iteration
    layer: Layer
    direction: Direction
    drawn: SampledGraph
    target: Staging
    count: int
    start: Mark
    posted: Posted


Smooth = Callable[[Direction, Layer, Tensor], Tensor]


class Exchange:
    """Transfers of all layers in both directions. widths: d_0 ... d_L. tau: age of the rows that are read.

    threaded: one thread per direction makes the transfers during the computation; otherwise they are made when their
    result is requested. Errors of a thread are raised where its result is awaited.
    """

    def __init__(
        self,
        channels: Channels,
        recorder: Recorder,
        widths: tuple[int, ...],
        tau: int,
        dtype: torch.dtype,
        device: torch.device,
        *,
        name: str = "",
        threaded: bool = True,
        smooth: Smooth | None = None,
        together: bool = False,
    ) -> None:
        """Open the channels `name` + forward and backward. together: use one channel for both, whose messages have
        tags.
        """
        self.tau, self.synchronous = tau, tau == 0
        self._recorder, self._device, self._dtype = recorder, device, dtype
        self._smooth = smooth
        self._channel: dict[Direction, Channel] = {
            direction: channels.open(f"{name}{ROWS if together else TAG[direction]}", bulk=True)
            for direction in (Direction.FORWARD, Direction.BACKWARD)
        }
        self._copies = {direction: CopyStream(device) for direction in self._channel}
        self._threads = {
            direction: tuple(ThreadPoolExecutor(1, f"{name}{TAG[direction]}-{what}") for what in ("post", "fetch"))
            for direction in self._channel
            if threaded and channels.world > 1
        }
        self._slots = {
            (direction, layer, index): _Slot(
                Staging(widths[layer], dtype, device, channels.backend),
                Staging(widths[layer], dtype, device, channels.backend),
            )
            for direction in self._channel
            for layer in range(len(widths) - 1)
            for index in range(max(tau, 1))
        }
        self._failed: dict[Direction, BaseException] = {}
        self.features: Tensor | None = None
        """True features of all boundary nodes, [B, d_0], for a warm start of layer 0."""
        self.bytes_sent: dict[tuple[int, str], int] = {}
        """Bytes sent so far per peer and kind (rows, gradients)."""

    def rows(self, t: Iteration, layer: Layer, graph: SampledGraph) -> Tensor:
        """The rows of `graph`'s boundary with the values of t - tau, [U, d]; at a cold start zeros or features."""
        source = source_iteration(t, self.tau)
        if source is None:
            return self._cold(layer, graph)
        place = self._slot(Direction.FORWARD, layer, source)
        read = self._wait(place, t, layer, Direction.FORWARD)
        assert read.graph == graph.graph, f"rows of graph {read.graph} where {graph.graph} is trained"
        rows = place.incoming.rows(graph.rows)
        if self._smooth is None:
            return rows
        start = self._recorder.mark_compute()
        smoothed = self._smooth(Direction.FORWARD, layer, rows)
        self._span(OpKind.UNPACK, "compute", t, layer, Direction.FORWARD, start)
        return smoothed

    def send_rows(self, t: Iteration, layer: Layer, h: Tensor, upcoming: Future[SampledGraph]) -> None:
        """Start the transfer of H^(t,layer), [I, d], for the graph that iteration t + tau trains."""
        place = self._place(Direction.FORWARD, layer, t)
        event = self._copies[Direction.FORWARD].mark()
        rows = h.detach()

        def post() -> _Transfer:
            graph = upcoming.result()
            with self._copies[Direction.FORWARD].after(event):
                return self._forward(t, layer, rows, graph, place)

        place.sent = Sent(t, self._submit(Direction.FORWARD, post))

    def gradient_buffer(self, t: Iteration, layer: Layer, graph: SampledGraph) -> Tensor:
        """The buffer for the gradients of `graph`'s boundary rows, [U, d].

        Waits until its previous contents are sent.
        """
        source = source_iteration(t, self.tau)
        if source is not None and not self.synchronous:
            self._wait(self._slot(Direction.BACKWARD, layer, source), t, layer, Direction.BACKWARD)
        return self._place(Direction.BACKWARD, layer, t).outgoing.rows(graph.rows)

    def send_gradients(self, t: Iteration, layer: Layer, graph: SampledGraph) -> None:
        """Start the transfer of `gradient_buffer`, which its owners add in iteration t + tau."""
        place = self._place(Direction.BACKWARD, layer, t)
        event = self._copies[Direction.BACKWARD].mark()

        def post() -> _Transfer:
            with self._copies[Direction.BACKWARD].after(event):
                return self._backward(t, layer, graph, place)

        place.sent = Sent(t, self._submit(Direction.BACKWARD, post))

    def add_gradients(self, t: Iteration, layer: Layer, grad: Tensor) -> None:
        """Add the others' gradients of iteration t - tau to `grad`, [I, d], worker by worker; none at a cold start."""
        source = source_iteration(t, self.tau)
        if source is None:
            return
        place = self._slot(Direction.BACKWARD, layer, source)
        graph = self._wait(place, t, layer, Direction.BACKWARD)
        requests = graph.incoming_requests()
        start = self._recorder.mark_compute()
        received = place.incoming.rows(requests.rows)
        if self._smooth is not None:
            received = self._smooth(Direction.BACKWARD, layer, received)
        # Within a worker no index repeats, so the order of the sum is the same everywhere.
        for first, last in itertools.pairwise(requests.ptr):
            if last > first:
                grad.index_add_(0, requests.index[first:last], received[first:last])
        self._span(OpKind.SCATTER, "compute", t, layer, Direction.BACKWARD, start)

    def await_gradients(self, t: Iteration, layer: Layer) -> None:
        """Wait for the others' gradients of iteration t - tau."""
        source = source_iteration(t, self.tau)
        if source is not None:
            self._wait(self._slot(Direction.BACKWARD, layer, source), t, layer, Direction.BACKWARD)

    def drain(self) -> None:
        """Wait for every active transfer; raises the first error of any."""
        for place in self._slots.values():
            if place.sent is not None:
                place.sent.done.result()

    def close(self) -> None:
        """End the threads."""
        for thread in itertools.chain(*self._threads.values()):
            thread.shutdown(wait=False, cancel_futures=True)

    def in_flight(self) -> dict[tuple[Direction, Layer, Iteration], tuple[SampledGraph, Tensor]]:
        """The data that later iterations read: the graph and the received rows of every slot, after all transfers."""
        self.drain()
        found = {}
        for (direction, layer, _), place in self._slots.items():
            if place.sent is not None and not self.synchronous:
                graph = place.sent.done.result()
                count = graph.rows if direction is Direction.FORWARD else graph.incoming_requests().rows
                place.incoming.await_ready()
                found[direction, layer, place.sent.iteration] = graph, place.incoming.rows(count)
        return found

    def put_back(
        self, direction: Direction, layer: Layer, iteration: Iteration, graph: SampledGraph, rows: Tensor
    ) -> None:
        """Restore the result of `in_flight`."""
        place = self._place(direction, layer, iteration)
        place.incoming.rows(rows.shape[0]).copy_(rows)
        done: Future[SampledGraph] = Future()
        done.set_result(graph)
        place.sent = Sent(iteration, done)

    def _forward(self, t: Iteration, layer: Layer, h: Tensor, graph: SampledGraph, place: _Slot) -> _Transfer:
        """Pack the requested rows and start their transfer."""
        requests = graph.incoming_requests()
        first_layer = layer == 0 and graph.held is not None
        start = self._recorder.mark_compute()
        torch.index_select(h, 0, requests.index, out=place.outgoing.rows(requests.rows))
        self._span(OpKind.PACK, "f.pack", t, layer, Direction.FORWARD, start)
        self._to_wire(t, layer, Direction.FORWARD, place, requests.rows)
        outgoing = pieces(place.outgoing.wire(requests.rows), requests.ptr, requests.misses if first_layer else None)
        incoming = pieces(place.incoming.wire(graph.rows), graph.ptr, graph.misses if first_layer else None)
        transfer = self._posted(t, layer, Direction.FORWARD, graph, place.incoming, graph.rows, outgoing, incoming)
        if first_layer and graph.hits:
            self._from_cache(t, graph, place.incoming.wire(graph.rows))
        return transfer

    def _from_cache(self, t: Iteration, graph: SampledGraph, rows: Tensor) -> None:
        """Insert the cached rows between the transferred ones."""
        assert graph.held is not None
        start = self._recorder.mark_compute()
        slots = graph.held.slot[graph.needed]
        hit = torch.from_numpy((slots >= 0).nonzero()[0]).to(rows.device)
        held = torch.from_numpy(slots[slots >= 0].astype("int64")).to(self._device)
        rows[hit] = graph.held.rows[held].to(rows.device)
        self._span(OpKind.LOOKUP, "f.pack", t, 0, Direction.FORWARD, start)

    def _backward(self, t: Iteration, layer: Layer, graph: SampledGraph, place: _Slot) -> _Transfer:
        """Start the transfer of the boundary's gradients."""
        requests = graph.incoming_requests()
        self._to_wire(t, layer, Direction.BACKWARD, place, graph.rows)
        outgoing = pieces(place.outgoing.wire(graph.rows), graph.ptr, None)
        incoming = pieces(place.incoming.wire(requests.rows), requests.ptr, None)
        return self._posted(t, layer, Direction.BACKWARD, graph, place.incoming, requests.rows, outgoing, incoming)

    def _to_wire(self, t: Iteration, layer: Layer, direction: Direction, place: _Slot, count: int) -> None:
        start = self._recorder.mark_compute()
        place.outgoing.to_wire(count)
        if place.outgoing.staged:
            self._span(OpKind.D2H, f"{TAG[direction]}.d2h", t, layer, direction, start)

    def _posted(
        self,
        t: Iteration,
        layer: Layer,
        direction: Direction,
        graph: SampledGraph,
        target: Staging,
        count: int,
        outgoing: list[Tensor],
        incoming: list[Tensor],
    ) -> _Transfer:
        messages = [Message(peer, piece, False) for peer, piece in enumerate(incoming)]
        messages += [Message(peer, piece, True) for peer, piece in enumerate(outgoing)]
        start = self._recorder.mark()
        return _Transfer(t, layer, direction, graph, target, count, start, self._channel[direction].post(messages))

    def _finish(self, transfer: _Transfer) -> SampledGraph:
        """Wait for a transfer, then copy the received data to the device."""
        direction, tag = transfer.direction, TAG[transfer.direction]
        kind = "rows" if direction is Direction.FORWARD else "gradients"

        def done(message: Message) -> None:
            nbytes = message.tensor.numel() * message.tensor.element_size() if message.outgoing else 0
            if nbytes:
                key = message.peer, kind
                self.bytes_sent[key] = self.bytes_sent.get(key, 0) + nbytes
            stream = f"{tag}.{'tx' if message.outgoing else 'rx'}{message.peer}"
            where = transfer.t, transfer.layer, direction, transfer.start
            self._span(OpKind.WIRE, stream, *where, message.peer, nbytes)

        # NCCL's wait blocks the current stream, not this thread, so it must be the copy stream.
        with self._copies[direction].after(None):
            self._channel[direction].await_all(transfer.posted, done)
            start = self._recorder.mark_compute()
            transfer.target.from_wire(transfer.count)
            if transfer.target.staged:
                self._span(OpKind.H2D, f"{tag}.h2d", transfer.t, transfer.layer, direction, start)
        return transfer.drawn

    def _cold(self, layer: Layer, graph: SampledGraph) -> Tensor:
        width = self._slots[Direction.FORWARD, layer, 0].incoming.rows(0).shape[1]
        if layer == 0 and self.features is not None:
            return self.features[torch.from_numpy(graph.needed).to(self._device)]
        return torch.zeros(graph.rows, width, dtype=self._dtype, device=self._device)

    def _wait(self, place: _Slot, t: Iteration, layer: Layer, direction: Direction) -> SampledGraph:
        assert place.sent is not None
        start = self._recorder.mark_compute()
        blocked = not place.sent.done.done()
        graph = place.sent.done.result()
        place.incoming.await_ready()
        # A GPU may also wait for the copy of rows that have arrived.
        if blocked or place.incoming.ready is not None:
            self._span(OpKind.WAIT, "compute", t, layer, direction, start)
        return graph

    def _place(self, direction: Direction, layer: Layer, t: Iteration) -> _Slot:
        return self._slots[direction, layer, slot(t, self.tau) if self.tau else 0]

    def _tag(self, direction: Direction, layer: Layer) -> int:
        """The tag of a message, if both directions of all layers share one channel."""
        return 2 * layer + (direction is Direction.BACKWARD)

    def _slot(self, direction: Direction, layer: Layer, source: Iteration) -> _Slot:
        place = self._place(direction, layer, source)
        assert place.sent is not None, f"no transfer of iteration {source} was started"
        assert place.sent.iteration == source, f"slot holds iteration {place.sent.iteration}, wanted {source}"
        return place

    def _submit(self, direction: Direction, post: Callable[[], _Transfer]) -> Future[SampledGraph]:
        """Start a transfer in one thread and await it in another, so that the network never waits for packing."""
        done: Future[SampledGraph] = Future()
        if direction not in self._threads:
            begun = self._recorder.mark_compute()
            transfer = post()
            done.set_result(self._finish(transfer))
            self._span(OpKind.WAIT, "compute", transfer.t, transfer.layer, direction, begun)
            return done
        poster, waiter = self._threads[direction]

        def fail(error: BaseException) -> None:
            # Nothing more is sent in this direction: others would take it for the missing message.
            self._failed.setdefault(direction, error)
            done.set_exception(error)

        def finish(transfer: _Transfer) -> None:
            try:
                done.set_result(self._finish(transfer))
            except BaseException as error:
                fail(error)

        def start() -> None:
            if direction in self._failed:
                done.set_exception(self._failed[direction])
                return
            try:
                waiter.submit(finish, post())
            except BaseException as error:
                fail(error)

        poster.submit(start)
        return done

    def _span(
        self,
        kind: OpKind,
        stream: str,
        t: Iteration,
        layer: Layer,
        direction: Direction,
        start: Mark,
        peer: int = -1,
        nbytes: float = 0.0,
    ) -> None:
        end = self._recorder.mark() if kind is OpKind.WIRE else self._recorder.mark_compute()
        self._recorder.add(kind, stream, t, start, end, layer=layer, direction=direction, peer=peer, nbytes=nbytes)


def pieces(rows: Tensor, ptr: tuple[int, ...], firsts: tuple[int, ...] | None) -> list[Tensor]:
    """The rows of every peer, or only the first ones."""
    counts = firsts or [last - first for first, last in itertools.pairwise(ptr)]
    return [rows[first : first + count] for first, count in zip(ptr, counts, strict=False)]
