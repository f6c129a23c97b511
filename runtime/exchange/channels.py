"""Channels: one process group for each kind of traffic, so that transfers of different threads never mix.

Within a channel every rank posts the same transfers in the same order, which matches each send with its receive.

Only the exchange can emulate a slow network: messages between hosts are delayed inside this process. This serves
machines whose kernel cannot shape links or delay packets (docs/emulation.md). The workers of a host share its rate
equally, each with a separate token bucket. It has two limits. A worker cannot use the capacity that another leaves
unused, and traffic outside the channels is not slowed.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from gcnsim.core.ids import Iteration, Rank
from gcnsim.timeline import OpKind
from runtime.emulation import Emulation
from runtime.emulation.spec import PAYLOAD_SHARE
from runtime.record import Recorder


class PeerError(ConnectionError):
    """Another worker did not respond: it died, hangs, or the network failed. The message names it."""


@dataclass
class Meter:
    """One direction of a link: the time until which it is occupied."""

    rate: float
    """Payload bytes/s; infinite: only the latency is emulated."""
    _free: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, nbytes: int, since: float) -> float:
        """Occupy the link with `nbytes` from `since`, or from when it is free; returns the end."""
        with self._lock:
            self._free = max(self._free, since) + nbytes / self.rate
            return self._free


class LinkEmulation:
    """One worker's link to other hosts."""

    def __init__(self, emulation: Emulation, rank: Rank) -> None:
        """The link of worker `rank` under `emulation`."""
        self._emulation, self._host = emulation, emulation.host_of(rank)
        limited = emulation.limiter == "exchange"
        self._host_rate = emulation.bandwidth * PAYLOAD_SHARE if limited else float("inf")
        self._latency_s = emulation.latency_s if emulation.latency_by == "exchange" else 0.0
        self._out, self._in = (Meter(self._host_rate / emulation.workers_per_host) for _ in range(2))

    def before_send(self, peer: Rank, nbytes: int) -> None:
        """Wait as long as the link needs for a message of `nbytes` to `peer`."""
        if self._far(peer):
            _sleep_until(self._out.take(nbytes, time.monotonic()))

    def after_receive(self, peer: Rank, nbytes: int, waited: bool) -> None:
        """Delay a received message until it would have arrived. A message that nobody waited for has already been
        delayed enough.
        """
        if self._far(peer):
            now = time.monotonic()
            # The sender's link has already delayed it: only simultaneous traffic of other senders is added.
            until = self._in.take(nbytes, now - nbytes / self._in.rate)
            _sleep_until(until + self._latency_s if waited else until)

    def after_sum(self, nbytes: int, world: int, since: float) -> None:
        """Wait as long as a ring of `world` workers takes to sum `nbytes`, begun at `since`.

        There are 2 (n-1) steps of 1/n of the bytes; one worker's step per host crosses its link, at the host's full
        rate.
        """
        if self._emulation.hosts > 1:
            steps = 2 * (world - 1)
            _sleep_until(since + steps * (nbytes / world / self._host_rate + self._latency_s))

    def _far(self, peer: Rank) -> bool:
        return self._emulation.host_of(peer) != self._host


def wire_of(rank: Rank) -> LinkEmulation | None:
    """The emulated link of worker `rank`; None if the network itself is slow, or nothing is emulated."""
    emulation = Emulation.here()
    if emulation is None or "exchange" not in (emulation.limiter, emulation.latency_by):
        return None
    return LinkEmulation(emulation, rank)


def _sleep_until(when: float) -> None:
    left = when - time.monotonic()
    if left > 0:
        time.sleep(left)


@dataclass(frozen=True)
class Message:
    """A message to or from `peer`: a contiguous tensor that is sent or received into.

    tag: distinguishes messages of a channel that the two ends may post in different orders.
    """

    peer: Rank
    tensor: Tensor
    outgoing: bool
    tag: int = 0

    @property
    def nbytes(self) -> int:
        """Bytes of the tensor."""
        return self.tensor.numel() * self.tensor.element_size()


@dataclass(frozen=True)
class Posted:
    """Active messages and their handles: one handle each with gloo, one for all with NCCL."""

    messages: Sequence[Message]
    works: Sequence[Any]


@dataclass(frozen=True)
class Channel:
    """One kind of traffic. wire: a slow network to emulate, usually None."""

    name: str
    group: Any
    rank: Rank
    timeout_s: float
    wire: LinkEmulation | None = field(default=None, kw_only=True)

    def exchange(self, messages: Sequence[Message], done: Callable[[Message], None] = lambda _: None) -> None:
        """Send and receive all `messages`; `done` is called as each completes. See `post` and `await_all`."""
        self.await_all(self.post(messages), done)

    def post(self, messages: Sequence[Message]) -> Posted:
        """Start to send and receive all `messages`; empty ones are skipped on both sides."""
        real = sorted((message for message in messages if message.tensor.numel()), key=lambda message: message.outgoing)
        ops = [
            dist.P2POp(
                dist.isend if message.outgoing else dist.irecv, message.tensor, message.peer, self.group, message.tag
            )
            for message in real
        ]
        try:
            if self.wire is not None:
                return Posted(real, self._posted_slowly(self.wire, real))
            return Posted(real, dist.batch_isend_irecv(ops) if ops else [])
        except RuntimeError as error:
            raise self._error(error, None) from None

    def await_all(self, posted: Posted, done: Callable[[Message], None] = lambda _: None) -> None:
        """Wait for started messages, receives first; PeerError names the worker that failed or did not respond."""
        alike = len(posted.works) == len(posted.messages)
        on_device = any(message.tensor.is_cuda for message in posted.messages)
        for index, work in enumerate(posted.works):
            waited = self.wire is not None and not work.is_completed()
            self._wait(work, posted.messages[index].peer if alike else None, on_device=on_device)
            if alike:
                message = posted.messages[index]
                if self.wire is not None and not message.outgoing:
                    self.wire.after_receive(message.peer, message.nbytes, waited)
                done(message)
        for message in () if alike else posted.messages:
            done(message)

    def serving(self, kind: OpKind) -> Channel:
        """This channel, for use by ops of `kind`; only channels that answer locally distinguish uses."""
        return self

    def all_reduce(self, tensor: Tensor) -> Any:
        """Start summing `tensor` over all workers in place; `wait` waits for it."""
        try:
            work = dist.all_reduce(tensor, group=self.group, async_op=True)
            return work if self.wire is None else _Sum(work, self.wire, tensor, time.monotonic())
        except RuntimeError as error:
            raise self._error(error, None) from None

    def wait(self, work: Any) -> None:
        """Wait for a started sum."""
        self._wait(work, None)

    def gather(self, tensor: Tensor) -> list[Tensor]:
        """Every worker's `tensor` (equal shapes), by rank."""
        found = [torch.empty_like(tensor) for _ in range(dist.get_world_size(self.group))]
        try:
            dist.all_gather(found, tensor, group=self.group)
        except RuntimeError as error:
            raise self._error(error, None) from None
        return found

    def gather_arrays(self, payload: bytes) -> list[bytes]:
        """Every worker's bytes, by rank; lengths may differ."""
        lengths = [int(size) for size in self.gather(torch.tensor([len(payload)]))]
        padded = torch.zeros(max(lengths), dtype=torch.uint8)
        if payload:
            padded[: len(payload)] = torch.frombuffer(bytearray(payload), dtype=torch.uint8)
        return [tensor[:size].numpy().tobytes() for tensor, size in zip(self.gather(padded), lengths, strict=True)]

    def broadcast(self, tensor: Tensor, source: Rank = 0) -> None:
        """Fill `tensor` with that of `source`."""
        try:
            dist.broadcast(tensor, src=source, group=self.group)
        except RuntimeError as error:
            raise self._error(error, source) from None

    def barrier(self) -> None:
        """Wait until every worker is here."""
        work = self.all_reduce(torch.zeros(1))
        self.wait(work)

    def _posted_slowly(self, wire: LinkEmulation, messages: Sequence[Message]) -> list[Any]:
        """Post receives at once and each send when the emulated link has let it through."""
        works = []
        for message in messages:
            if message.outgoing:
                wire.before_send(message.peer, message.nbytes)
            post = dist.isend if message.outgoing else dist.irecv
            works.append(post(message.tensor, message.peer, self.group, message.tag))
        return works

    def _wait(self, work: Any, peer: Rank | None, *, on_device: bool = False) -> None:
        try:
            work.wait()
            if on_device:
                # NCCL's wait blocks the current stream alone.
                torch.cuda.current_stream().synchronize()
        except RuntimeError as error:
            raise self._error(error, peer) from None

    def _error(self, error: RuntimeError, peer: Rank | None) -> PeerError:
        who = "a worker" if peer is None else f"worker {peer}"
        text = " ".join(str(error).split())
        silent = "imed out" in text or "imeout" in text
        why = f"timed out: no answer within {self.timeout_s:g} s" if silent else f"the connection failed: {text[:200]}"
        return PeerError(f"{who}: {why} (channel {self.name})")


@dataclass(frozen=True)
class _Sum:
    """An active sum on an emulated slow link."""

    work: Any
    wire: LinkEmulation
    tensor: Tensor
    since: float

    def wait(self) -> None:
        """Wait for the sum, and for the time that the link would have taken."""
        self.work.wait()
        self.wire.after_sum(self.tensor.numel() * self.tensor.element_size(), dist.get_world_size(), self.since)


@dataclass(frozen=True)
class TimedChannel(Channel):
    """A channel whose user is recorded: as op of `kind` while it works, as waiting while it exchanges.

    Must be closed.
    """

    recorder: Recorder
    stream: str
    t: Iteration
    kind: OpKind
    since: list[int]
    inner: Channel

    @classmethod
    def over(cls, channel: Channel, recorder: Recorder, stream: str, t: Iteration, kind: OpKind) -> TimedChannel:
        """`channel` with its use recorded on `stream` from now on."""
        since = [recorder.mark()]
        return cls(
            channel.name,
            channel.group,
            channel.rank,
            channel.timeout_s,
            recorder,
            stream,
            t,
            kind,
            since,
            channel.serving(kind),
        )

    def exchange(self, messages: Sequence[Message], done: Callable[[Message], None] = lambda _: None) -> None:
        """See `Channel`."""
        self.close()
        start = self.recorder.mark()
        self.inner.exchange(messages, done)
        self.since[0] = self.recorder.mark()
        self.recorder.add(OpKind.WAIT, self.stream, self.t, start, self.since[0])

    def close(self) -> None:
        """Record the work since the last exchange."""
        now = self.recorder.mark()
        self.recorder.add(self.kind, self.stream, self.t, self.since[0], now)
        self.since[0] = now


class Channels:
    """The channels of a run, opened on first use; every rank must open the same ones in the same order."""

    def __init__(self, rank: Rank, world: int, timeout_s: float, backend: str) -> None:
        """backend: for rows and gradients, gloo or nccl; all other messages are small and use gloo."""
        self.rank, self.world, self.backend = rank, world, backend
        self.now: Callable[[], int] = time.perf_counter_ns
        """The worker's clock, in ns."""
        self._timeout_s = timeout_s
        self._open: dict[str, Channel] = {}
        self._wire = wire_of(rank)

    def open(self, name: str, *, bulk: bool = False) -> Channel:
        """The channel called `name`; `bulk` ones carry device tensors with the run's backend."""
        if name not in self._open:
            group = None
            if self.world > 1:
                backend = self.backend if bulk else "gloo"
                group = dist.new_group(timeout=timedelta(seconds=self._timeout_s), backend=backend)
                if backend == "nccl":
                    # The first use of a communicator needs every rank, but a worker may have nothing to exchange.
                    dist.all_reduce(torch.zeros(1, device="cuda"), group=group)
            self._open[name] = Channel(name, group, self.rank, self._timeout_s, wire=self._wire)
        return self._open[name]

    def control(self) -> Channel | None:
        """A channel for small data on the host; None for a single worker."""
        return self.open("control") if self.world > 1 else None

    def close(self) -> None:
        """Leave all channels; no worker may have active messages."""
        for channel in self._open.values():
            if channel.group is not None:
                dist.destroy_process_group(channel.group)
        self._open.clear()
