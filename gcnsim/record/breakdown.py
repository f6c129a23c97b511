"""Which part of an iteration each of its instants belongs to: one rule for recorded runs and for profilers' traces.

Where several things are under way at once, what the worker's own thread (the GPU's stream) does comes first: compute,
received rows taken in, optimizer; then what it waits for (docs/compare.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from gcnsim.timeline import Intervals

EXPOSED: Final = ("handling", "network", "copies", "reduce", "waiting")
"""Parts that are exposed communication."""

OTHER: Final = ("exposed_sampling", "optimizer", "rest")
HIDDEN: Final = "hidden_comm"
"""Beside the parts, none of them."""


@dataclass(frozen=True, slots=True)
class Busy:
    """When things of one worker were under way, overlapping as they may.

    handling: received rows are taken in by the thread that trains. exposed_sampling: sampling that it waits for or does
    itself. network: a message from or to the worker. copies: between device and host, and packing. reduce: the
    all-reduce, with all of them there. waits: it waits for any of these, or for a peer.
    """

    compute: Intervals
    handling: Intervals
    optimizer: Intervals
    exposed_sampling: Intervals
    network: Intervals
    copies: Intervals
    reduce: Intervals
    waits: Intervals


def breakdown(window: Intervals, busy: Busy) -> Mapping[str, Intervals]:
    """The instants of `window` by part: `compute`, those of EXPOSED and OTHER, which make it up; and HIDDEN."""
    found: dict[str, Intervals] = {}
    left = window
    asked = {
        "compute": busy.compute,
        "handling": busy.handling,
        "optimizer": busy.optimizer,
        "exposed_sampling": busy.exposed_sampling,
        "network": busy.network.both(busy.waits),
        "copies": busy.copies.both(busy.waits),
        "reduce": busy.reduce.both(busy.waits),
        "waiting": busy.waits,
    }
    for part, instants in asked.items():
        found[part], left = left.both(instants), left.minus(instants)
    hidden = busy.network.union(busy.copies).both(window)
    for part in EXPOSED:
        hidden = hidden.minus(found[part])
    return found | {"rest": left, HIDDEN: hidden}
