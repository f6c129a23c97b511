"""One worker's device: its copy links, and how many times slower everything passes than what it stands for."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from gcnsim.hardware import LinkProfile, device, figures_of, host, link
from runtime.accelerator.clock import NS, Lane, wake_sharply
from runtime.accelerator.copies import CopyLink, Table
from runtime.accelerator.exchange import WaitingExchange
from runtime.accelerator.latency import measure
from runtime.accelerator.recording import ScaledRecorder
from runtime.emulation import Accelerator, Emulation
from runtime.emulation.accelerator import COPIES
from runtime.emulation.priority import first_in_line
from runtime.exchange import Channel, Exchange
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
