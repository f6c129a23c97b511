"""A slow network that only the exchange knows: messages between hosts are held back, in this process's own time.

For machines whose kernel may not shape links, or cannot delay packets (docs/emulation.md). The workers of a host share
its rate equally, each by a bucket of its own. What it cannot do: let one worker have what another leaves, or slow what
no channel sends.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field

from gcnsim.ids import Rank
from runtime.emulation import Emulation
from runtime.emulation.spec import PAYLOAD_SHARE


@dataclass
class Meter:
    """One direction of a link: until when it is taken."""

    rate: float
    """Payload bytes/s; infinite: only the latency is emulated."""
    _free: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, nbytes: int, since: float) -> float:
        """Take the link for `nbytes` from `since`, or from when it is free; until when."""
        with self._lock:
            self._free = max(self._free, since) + nbytes / self.rate
            return self._free


class LinkEmulation:
    """One worker's link to other hosts."""

    def __init__(self, emulation: Emulation, rank: Rank) -> None:
        """The link of worker `rank` as `emulation` has it."""
        self._emulation, self._host = emulation, emulation.host_of(rank)
        limited = emulation.limiter == "exchange"
        self._host_rate = emulation.bandwidth * PAYLOAD_SHARE if limited else float("inf")
        self._latency_s = emulation.latency_s if emulation.latency_by == "exchange" else 0.0
        self._out, self._in = (Meter(self._host_rate / emulation.workers_per_host) for _ in range(2))

    def before_send(self, peer: Rank, nbytes: int) -> None:
        """Wait as long as the link takes for a message of `nbytes` to `peer`."""
        if self._far(peer):
            _sleep_until(self._out.take(nbytes, time.monotonic()))

    def after_receive(self, peer: Rank, nbytes: int, waited: bool) -> None:
        """Wait until a message that is here would be; one that nobody waited for is here long enough."""
        if self._far(peer):
            now = time.monotonic()
            # It took the sender's link as long already: only what other senders did at the same time is added.
            until = self._in.take(nbytes, now - nbytes / self._in.rate)
            _sleep_until(until + self._latency_s if waited else until)

    def after_sum(self, nbytes: int, world: int, since: float) -> None:
        """Wait as long as a ring of `world` workers takes to sum `nbytes`, begun at `since`.

        2 (n-1) steps of 1/n of the bytes; one worker's step of a host crosses its link, at the host's whole rate.
        """
        if self._emulation.hosts > 1:
            steps = 2 * (world - 1)
            _sleep_until(since + steps * (nbytes / world / self._host_rate + self._latency_s))

    def _far(self, peer: Rank) -> bool:
        return self._emulation.host_of(peer) != self._host


def wire_of(rank: Rank) -> LinkEmulation | None:
    """The wire of worker `rank`; None where the network itself is slow, or nothing is emulated."""
    emulation = Emulation.here()
    if emulation is None or "exchange" not in (emulation.limiter, emulation.latency_by):
        return None
    return LinkEmulation(emulation, rank)


def _sleep_until(when: float) -> None:
    left = when - time.monotonic()
    if left > 0:
        time.sleep(left)
