"""One worker's device: its copy links, and how many times slower everything passes than what it stands for.

What a small message takes between two workers, measured before the first iteration: the network's own figures.

One pair of workers of different hosts and one of the same host, one after the other, while all others wait. The time is
that of the exchange, its threads included, as every message of the run has it.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any, Final

import torch

from gcnsim.hardware import LinkProfile, device, figures_of, host, link
from gcnsim.ids import Rank
from runtime.accelerator.clock import NS, Lane, now, wake_sharply
from runtime.accelerator.copies import CopyLink, Table
from runtime.accelerator.exchange import WaitingExchange
from runtime.accelerator.recording import ScaledRecorder
from runtime.emulation import Accelerator, Emulation
from runtime.emulation.accelerator import COPIES
from runtime.emulation.priority import first_in_line
from runtime.exchange import Channel, Exchange
from runtime.exchange.channels import Message
from runtime.launch import Place

MODELS: Final = ("gcn", "graphsage")


class WaitMachine:
    """What a worker at `place` has in the place of a GPU."""

    def __init__(self, accelerator: Accelerator, emulation: Emulation, place: Place, shared: Path | None) -> None:
        """shared: the file of the copy links that workers have in common; None: they have none."""
        self.accelerator, self.emulation, self.place = accelerator, emulation, place
        self.device, self.host = device(accelerator.name), host(accelerator.host)
        self.scale = accelerator.scale
        copies = link(self.device.link)
        self.copy_latency = self.ns(copies.latency_s.value)
        self.to_host, self.to_device = self._links(copies, shared)
        self.reducing = Lane()
        wake_sharply()

    @classmethod
    def here(cls, place: Place) -> WaitMachine | None:
        """That of this worker; None where it really computes."""
        emulation = Emulation.here()
        if emulation is None or emulation.accelerator is None:
            return None
        shared = os.environ.get(COPIES)
        accelerator = Accelerator(**emulation.accelerator)
        return cls(accelerator, emulation, place, Path(shared) if shared else None)

    def _links(self, copies: LinkProfile, shared: Path | None) -> tuple[CopyLink, CopyLink]:
        """The links to the host and back."""
        rate = copies.bandwidth.value * copies.efficiency.value / self.scale / NS
        if shared is None:
            return CopyLink(Table(), rate), CopyLink(Table(), rate)
        switch = self.place.local_rank // self.accelerator.gpus_per_switch
        first = 2 * (self.emulation.host_of(self.place.rank) * self.emulation.workers_per_host + switch)
        return CopyLink(Table(shared, first), rate), CopyLink(Table(shared, first + 1), rate)

    @property
    def factor(self) -> float:
        """This worker's kernels take so many times as long."""
        return self.accelerator.slow_factor if self.accelerator.slow_worker == self.place.rank else 1.0

    def ns(self, seconds: float) -> int:
        """How long `seconds` of the device take here, in ns."""
        return round(seconds * self.scale * NS)

    def copy(self, way: CopyLink, lane: Lane, ready: int, nbytes: float) -> tuple[int, int]:
        """Copy `nbytes`, in order with the others of `lane`; when it began and ended. Nothing takes no time."""
        start = max(lane.free, ready)
        if nbytes > 0:
            lane.free = way.carry(start + self.copy_latency, nbytes)
        return start, max(lane.free, start) if nbytes > 0 else start

    def recorder(self, *, enabled: bool) -> ScaledRecorder:
        """Of what the waits stand for."""
        return ScaledRecorder(self.place.rank, self.scale, enabled=enabled)

    def exchange(self, *given: Any, **named: Any) -> Exchange:
        """An exchange whose packing and copies are waits; arguments as of `Exchange`."""
        return WaitingExchange(self, *given, **named)

    def measured(self, channel: Channel, control: Channel | None) -> dict[str, Any]:
        """The facts for the run's record, with the network's latencies, just before the first iteration; all workers
        together. From now on this worker is first in line for a core."""
        realtime = first_in_line(True)
        found = measure(channel, control, self.emulation) if control is not None else {}
        facts: dict[str, Any] = {name: None if each is None else each / self.scale for name, each in found.items()}
        facts["figures"] = {name: figure.value for name, figure in figures_of(self.device).items()}
        accelerator = replace(self.accelerator, realtime=realtime, **facts)
        return self.emulation.asdict() | {"accelerator": accelerator.asdict()}


ROUNDS: Final = 60
BURST: Final = 20
"""Messages one right behind another; what each adds is a message's own cost."""


def measure(channel: Channel, control: Channel, emulation: Emulation) -> dict[str, float | None]:
    """Seconds by name (`latency_s`, `local_latency_s`, `message_s`), the same on all workers; None without a pair."""
    far = emulation.workers_per_host if emulation.hosts > 1 else None
    near = 1 if emulation.workers_per_host > 1 else None
    found: dict[str, float | None] = {"latency_s": None, "local_latency_s": None, "message_s": None}
    for name, peer in (("latency_s", far), ("local_latency_s", near)):
        if peer is None:
            continue
        one = _agreed(channel, control, peer, 1)
        many = _agreed(channel, control, peer, BURST)
        found[name] = one
        if name == "latency_s" or found["message_s"] is None:
            found["message_s"] = max(many - one, 0.0) / (BURST - 1)
    return found


def _agreed(channel: Channel, control: Channel, peer: Rank, count: int) -> float:
    """Seconds of `count` messages one way, half of a round trip, as worker 0 sees it."""
    took = torch.zeros(1, dtype=torch.float64)
    control.barrier()
    if channel.rank in (0, peer):
        took[0] = _one_way(channel, peer if channel.rank == 0 else 0, count, first=channel.rank == 0)
    control.broadcast(took)
    return float(took)


def _one_way(channel: Channel, other: Rank, count: int, *, first: bool) -> float:
    leaving = [Message(other, torch.ones(1), True) for _ in range(count)]
    coming = [Message(other, torch.zeros(1), False) for _ in range(count)]
    seconds = []
    for _ in range(ROUNDS):
        begun = now()
        for messages in (leaving, coming) if first else (coming, leaving):
            channel.exchange(messages)
        seconds.append((now() - begun) * 1e-9 / 2)
    return median(seconds)
