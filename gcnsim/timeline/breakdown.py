"""Assign each instant of an iteration to one part of it.

If several activities overlap, the worker's main stream takes precedence: computation, handling, the optimizer. Sampling
comes next, then the reason for waiting: the network, copies, the all-reduce, otherwise a peer.

The module also computes these parts for a run with only known means. `SpanSemantics` states what spans mean in
different sources, and `Spans` sorts the spans of a timeline by kind.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from enum import Enum
from functools import cached_property
from typing import Final, Protocol

import numpy as np

from gcnsim.core.ids import AnyArray, BoolArray, IntArray, Rank, Seconds
from gcnsim.timeline.span import PHASE, Intervals, IntervalSweep, OpKind, Phase, Timeline, of_kinds

EXPOSED: Final = ("handling", "network", "copies", "reduce", "waiting")
"""Parts that are exposed communication, by name."""

OTHER: Final = ("exposed_sampling", "optimizer", "rest")
"""Parts that are neither computation nor communication, by name."""

HIDDEN: Final = "hidden_comm"
"""Overlapping communication, which is not one of the parts."""


@dataclass(frozen=True, slots=True)
class Parts:
    """A worker's mean iteration: the sum of all parts but hidden_comm_s. handling_s to waiting_s are exposed
    communication."""

    worker: Rank
    compute_s: Seconds
    """Its kernels."""
    handling_s: Seconds
    """Copying of received rows."""
    network_s: Seconds
    """A message of rows from or to it is in transit."""
    copies_s: Seconds
    """Rows are packed or copied between device and host."""
    reduce_s: Seconds
    """The all-reduce."""
    waiting_s: Seconds
    """Waiting for a peer (none of the above)."""
    exposed_sampling_s: Seconds
    """Sampling that it waits for."""
    optimizer_s: Seconds
    rest_s: Seconds
    hidden_comm_s: Seconds
    """Its transfers that overlap other work."""


def exposed_s(parts: Parts) -> Seconds:
    """Exposed communication."""
    return _sum(parts, EXPOSED)


def other_s(parts: Parts) -> Seconds:
    """Time that is neither computation nor communication."""
    return _sum(parts, OTHER)


def iteration_s(parts: Parts) -> Seconds:
    """The whole iteration."""
    return _sum(parts, ("compute", *EXPOSED, *OTHER))


def _sum(parts: Parts, names: Sequence[str]) -> Seconds:
    seconds: list[Seconds] = [getattr(parts, f"{name}_s") for name in names]
    return sum(seconds)


PHASES: Final = ("compute", "exposed_comm", "exposed_other")
"""The three phases that every source has; predictions are validated by them."""


class WorkerSeconds(Protocol):
    """Seconds per iteration of one worker, as the summary in run.json has them."""

    @property
    def compute_s(self) -> Seconds:
        """Its kernels."""

    @property
    def wait_s(self) -> Seconds:
        """Its main thread waited."""

    @property
    def exposed_sampling_s(self) -> Seconds:
        """Sampling while it waited, or that it did itself."""

    @property
    def unpack_s(self) -> Seconds:
        """Received rows were copied, on any thread."""


def phases_of_means(means: WorkerSeconds, iteration_s: Seconds, *, samples_itself: bool) -> dict[str, Seconds]:
    """The three phases of an iteration, by PHASES; samples_itself: whether the main thread samples.

    The same as `breakdown`, from sums of spans: waits other than for sampling, and all copying of received rows, are
    exposed communication. It differs from `breakdown` if a helper thread copies received rows, and by the time between
    iterations.
    """
    sampler = 0.0 if samples_itself else means.exposed_sampling_s
    comm = max(means.wait_s - sampler, 0.0) + means.unpack_s
    other = max(iteration_s - means.compute_s - comm, 0.0)
    return dict(zip(PHASES, (means.compute_s, comm, other), strict=True))


RECEIVED: Final = (OpKind.UNPACK, OpKind.SCATTER)
TRANSFERS: Final = tuple(kind for kind, phase in PHASE.items() if phase is Phase.TRANSFER)


class SamplingShare(Enum):
    """Which sampling counts as a part of the iteration, outside computation, handling and the optimizer."""

    BESIDE_WAITS = "while the main stream does not wait for communication"
    WAITED_FOR = "while the main stream waits"
    ALWAYS = "whenever it is under way"


@dataclass(frozen=True, slots=True)
class SpanSemantics:
    """The meaning of spans in different sources.

    handling: kinds of communication work on the worker's main stream; handling_on_main: count only those on that
    stream, otherwise those on any. sampling: which counts as a part of the iteration. sent_only: a message is its
    sender's span (a receiver's ends with it, and begins when it starts to wait). peers_copies: a peer's packing and
    copying of rows for this worker counts too. reduce_together: an all-reduce counts from the arrival of the last
    worker. transfers_wait: the source does not say what is waited for, so every transfer and reduction that overlaps no
    other work counts as waiting.
    """

    handling: tuple[OpKind, ...] = RECEIVED
    handling_on_main: bool = True
    sampling: SamplingShare = SamplingShare.BESIDE_WAITS
    sent_only: bool = False
    peers_copies: bool = False
    reduce_together: bool = False
    transfers_wait: bool = False


SIMULATED: Final = SpanSemantics(handling=TRANSFERS, peers_copies=True)
"""A simulated run, in which everything is known. Waits for this worker's sampler and pauses are not communication."""

RECORDED: Final = SpanSemantics(sampling=SamplingShare.WAITED_FOR, sent_only=True, reduce_together=True)
"""A recorded run whose helper threads sample: while the main thread waits and its sampler works, it waits for sampling.
"""

RECORDED_SAMPLING_ITSELF: Final = SpanSemantics(sent_only=True, reduce_together=True)
"""A recorded run whose main thread samples: its waits are never for sampling."""

PROFILED: Final = SpanSemantics(handling_on_main=False, sampling=SamplingShare.ALWAYS, transfers_wait=True)
"""A trace of the PyTorch profiler, with unknown training stream, reasons for waiting and senders."""


SENDING = "tx"
"""The prefix of the last part of a sending stream's name (`f.tx2`)."""


class Spans:
    """A timeline with its spans in any order. main: the name of the training stream; None if unknown."""

    def __init__(self, timeline: Timeline, main: str | None) -> None:
        self.timeline = timeline
        self.main: BoolArray = self.streams([name == main for name in timeline.streams])
        # `functools.cache` on a method would make the spans refer to themselves and stay until garbage collection.
        self._of_kinds: dict[tuple[OpKind, ...], BoolArray] = {}
        self._of_phase: dict[Phase, BoolArray] = {}

    def streams(self, chosen: list[bool]) -> BoolArray:
        """Mask of the spans on the `chosen` streams, by index in the timeline."""
        mask: BoolArray = np.array(chosen, dtype=np.bool_)[self.timeline.stream]
        return mask

    def kinds(self, *kinds: OpKind) -> BoolArray:
        """Mask of the spans of these kinds."""
        if kinds not in self._of_kinds:
            self._of_kinds[kinds] = of_kinds(self.timeline.kind, kinds)
        return self._of_kinds[kinds]

    def phase(self, phase: Phase) -> BoolArray:
        """Mask of the spans of this phase."""
        if phase not in self._of_phase:
            self._of_phase[phase] = self.timeline.of_phase(phase)
        return self._of_phase[phase]

    @cached_property
    def sent(self) -> BoolArray:
        """Mask of the messages, as their senders recorded them."""
        ends = [name.rpartition(".")[2].startswith(SENDING) for name in self.timeline.streams]
        return self.kinds(OpKind.WIRE) & self.streams(ends)

    def of(self, rank: Rank) -> BoolArray:
        """Mask of the spans of a worker."""
        mask: BoolArray = self.timeline.worker == rank
        return mask

    def near(self, rank: Rank) -> BoolArray:
        """Mask of the spans of a worker, and of others' spans with this worker as peer."""
        mask: BoolArray = (self.timeline.worker == rank) | (self.timeline.peer == rank)
        return mask

    def covers(self, mask: BoolArray) -> Intervals:
        """The instants at which one of the spans in `mask` was active."""
        return Intervals.of(self.timeline.start_ps[mask], self.timeline.end_ps[mask])

    @cached_property
    def reduces_together(self) -> tuple[IntArray, IntArray]:
        """The all-reduces, by index among the spans, and the instant from which each has all workers."""
        spans = self.timeline
        chosen: IntArray = np.flatnonzero(self.kinds(OpKind.ALLREDUCE))
        # The k-th of an iteration is the same all-reduce on every worker.
        place = _places(spans.worker[chosen], spans.iteration[chosen])
        keys = list(zip(spans.iteration[chosen].tolist(), place.tolist(), strict=True))
        last: dict[tuple[int, int], int] = {}
        for key, start in zip(keys, spans.start_ps[chosen].tolist(), strict=True):
            last[key] = max(last.get(key, start), start)
        return chosen, np.array([last[key] for key in keys], dtype=np.int64)


def _places(workers: AnyArray, iterations: AnyArray) -> IntArray:
    """Per span, the number of earlier spans of its worker and iteration."""
    counters: dict[tuple[int, int], int] = {}
    found = []
    for key in zip(workers.tolist(), iterations.tolist(), strict=True):
        found.append(counters.get(key, 0))
        counters[key] = found[-1] + 1
    return np.array(found, dtype=np.int64)


NEVER = Intervals.of(np.zeros(0, np.int64), np.zeros(0, np.int64))


@dataclass(frozen=True, slots=True)
class Breakdown:
    """The instants of one worker's window by part (`Parts`), which make it up; hidden_comm overlaps them."""

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
        intervals = self.handling
        for name in EXPOSED[1:]:
            intervals = intervals.union(getattr(self, name))
        return intervals

    @property
    def other(self) -> int:
        """Picoseconds that are neither computation nor communication."""
        return sum(getattr(self, name).length for name in OTHER)

    def parts(self, rank: Rank, seconds: Callable[[int], Seconds]) -> Parts:
        """The same in seconds; seconds: of an iteration, by the picoseconds of the whole window."""
        return Parts(rank, **{f"{field.name}_s": seconds(getattr(self, field.name).length) for field in fields(self)})


def breakdown(
    spans: Spans, rank: Rank, window: Intervals, reading: SpanSemantics, no_communication: Intervals = NEVER
) -> Breakdown:
    """The breakdown of `window`, of worker `rank`.

    no_communication: waits of its main stream for its own sampler or a pause, as the source states them.
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
    phases = {
        "compute": spans.covers(own & spans.phase(Phase.COMPUTE)),
        "handling": spans.covers(handled),
        "optimizer": spans.covers(own & spans.phase(Phase.OPTIMIZER)),
        "exposed_sampling": _exposed(sampling, waits, reading.sampling),
        "network": network.intersection(waits),
        "copies": copies.intersection(waits),
        "reduce": reduce.intersection(waits),
        "waiting": waits,
    }
    sweep = IntervalSweep(window, network, copies, *phases.values())
    left = sweep.has(window)
    hidden = left & (sweep.has(network) | sweep.has(copies))
    intervalses: dict[str, Intervals] = {}
    for part, instants in phases.items():
        own_part = left & sweep.has(instants)
        intervalses[part] = sweep.instants(own_part)
        left &= ~own_part
        if part in EXPOSED:
            hidden &= ~own_part
    return Breakdown(**intervalses, rest=sweep.instants(left), hidden_comm=sweep.instants(hidden))


def _exposed(sampling: Intervals, waits: Intervals, rule: SamplingShare) -> Intervals:
    """The sampling that counts as a part of the iteration."""
    if rule is SamplingShare.ALWAYS:
        return sampling
    return sampling.intersection(waits) if rule is SamplingShare.WAITED_FOR else sampling.difference(waits)


def _reducing(spans: Spans, own: BoolArray, near: BoolArray, reading: SpanSemantics) -> Intervals:
    """The instants of an all-reduce for the worker."""
    if not reading.reduce_together:
        return spans.covers(near & spans.phase(Phase.REDUCE))
    place, starts = spans.reduces_together
    mine = own[place]
    return Intervals.of(starts[mine], spans.timeline.end_ps[place][mine])
