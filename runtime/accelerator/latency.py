"""What a small message takes between two workers, measured before the first iteration: the network's own figures.

One pair of workers of different hosts and one of the same host, one after the other, while all others wait. The time is
that of the exchange, its threads included, as every message of the run has it.
"""

from __future__ import annotations

from statistics import median
from typing import Final

import torch

from gcnsim.ids import Rank
from runtime.accelerator.clock import now
from runtime.emulation import Emulation
from runtime.exchange import Channel
from runtime.exchange.channels import Message

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
