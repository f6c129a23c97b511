"""Which part of an iteration each of its instants belongs to.

Where several things are under way at once, what the worker's main stream does comes first: computation, handling, the
optimizer; then sampling; then what it waits for: the network, copies, the all-reduce, else a peer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields

import numpy as np

from gcnsim.breakdown.parts import EXPOSED, OTHER, Parts
from gcnsim.breakdown.reading import Reading, Sampling
from gcnsim.breakdown.spans import Spans
from gcnsim.ids import BoolArray, Rank, Seconds
from gcnsim.timeline import Intervals, OpKind, Phase, Sweep

NEVER = Intervals.of(np.zeros(0, np.int64), np.zeros(0, np.int64))


@dataclass(frozen=True, slots=True)
class Breakdown:
    """The instants of one worker's window by part (`Parts`), which make it up; hidden_comm beside them."""

    compute: Intervals
    handling: Intervals
    network: Intervals
    copies: Intervals
    reduce: Intervals
    waiting: Intervals
    exposed_sampling: Intervals
    optimizer: Intervals
    rest: Intervals
    hidden_comm: Intervals

    @property
    def exposed(self) -> Intervals:
        """Exposed communication."""
        found = self.handling
        for name in EXPOSED[1:]:
            found = found.union(getattr(self, name))
        return found

    @property
    def other(self) -> int:
        """Picoseconds of what is neither computation nor communication."""
        return sum(getattr(self, name).length for name in OTHER)

    def parts(self, rank: Rank, seconds: Callable[[int], Seconds]) -> Parts:
        """The same in seconds; seconds: of an iteration, by the picoseconds of the whole window."""
        return Parts(rank, **{f"{each.name}_s": seconds(getattr(self, each.name).length) for each in fields(self)})


def breakdown(
    spans: Spans, rank: Rank, window: Intervals, reading: Reading, no_communication: Intervals = NEVER
) -> Breakdown:
    """The breakdown of `window`, of worker `rank`. no_communication: waits of its main stream that are for something
    else, its own sampler or a pause; as the source knows them.
    """
    own, near, wires = spans.of(rank), spans.near(rank), spans.kinds(OpKind.WIRE)
    handled = own & spans.kinds(*reading.handling)
    if reading.handling_on_main:
        handled = handled & spans.main
    copied = spans.phase(Phase.TRANSFER) & ~wires & ~handled & ~(own & spans.main)
    network = spans.covers(near & (spans.sent if reading.sent_only else wires))
    copies = spans.covers(copied & (near if reading.peers_copies else own))
    reduce = _reducing(spans, own, near, reading)
    waits = spans.covers(own & spans.phase(Phase.WAIT) & (spans.main | reading.transfers_wait)).difference(
        no_communication
    )
    if reading.transfers_wait:
        waits = waits.union(network).union(copies).union(reduce)
    sampling = spans.covers(own & spans.phase(Phase.SAMPLING))
    asked = {
        "compute": spans.covers(own & spans.phase(Phase.COMPUTE)),
        "handling": spans.covers(handled),
        "optimizer": spans.covers(own & spans.phase(Phase.OPTIMIZER)),
        "exposed_sampling": _exposed(sampling, waits, reading.sampling),
        "network": network.intersection(waits),
        "copies": copies.intersection(waits),
        "reduce": reduce.intersection(waits),
        "waiting": waits,
    }
    sweep = Sweep(window, network, copies, *asked.values())
    left = sweep.has(window)
    hidden = left & (sweep.has(network) | sweep.has(copies))
    found: dict[str, Intervals] = {}
    for part, instants in asked.items():
        own_part = left & sweep.has(instants)
        found[part] = sweep.instants(own_part)
        left &= ~own_part
        if part in EXPOSED:
            hidden &= ~own_part
    return Breakdown(**found, rest=sweep.instants(left), hidden_comm=sweep.instants(hidden))


def _exposed(sampling: Intervals, waits: Intervals, rule: Sampling) -> Intervals:
    """The sampling that is a part of the iteration."""
    if rule is Sampling.ALWAYS:
        return sampling
    return sampling.intersection(waits) if rule is Sampling.WAITED_FOR else sampling.difference(waits)


def _reducing(spans: Spans, own: BoolArray, near: BoolArray, reading: Reading) -> Intervals:
    """When an all-reduce is under way for the worker."""
    if not reading.reduce_together:
        return spans.covers(near & spans.phase(Phase.REDUCE))
    place, starts = spans.reduces_together
    mine = own[place]
    return Intervals.of(starts[mine], spans.timeline.end_ps[place][mine])
