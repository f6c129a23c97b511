"""The spans of a timeline, and which of them are what: masks over all spans, each made once."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from gcnsim.ids import AnyArray, BoolArray, IntArray, Rank
from gcnsim.timeline import Intervals, OpKind, Phase, Timeline, of_kinds

SENDING = "tx"
"""How the last part of a stream's name begins where it sends (`f.tx2`)."""


class Spans:
    """A timeline, in any order of its spans. main: the name of the stream that trains; None where none is known."""

    def __init__(self, timeline: Timeline, main: str | None) -> None:
        self.timeline = timeline
        self.main: BoolArray = self.streams([name == main for name in timeline.streams])
        # Not `functools.cache` of a method: the spans would then hold themselves, and stay until garbage is looked for.
        self._of_kinds: dict[tuple[OpKind, ...], BoolArray] = {}
        self._of_phase: dict[Phase, BoolArray] = {}

    def streams(self, chosen: list[bool]) -> BoolArray:
        """Mask of the spans on the streams that are `chosen`, by their place in the timeline's."""
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
        """Mask of the messages as their senders have them."""
        ends = [name.rpartition(".")[2].startswith(SENDING) for name in self.timeline.streams]
        return self.kinds(OpKind.WIRE) & self.streams(ends)

    def of(self, rank: Rank) -> BoolArray:
        """Mask of the spans of a worker."""
        mask: BoolArray = self.timeline.worker == rank
        return mask

    def near(self, rank: Rank) -> BoolArray:
        """Mask of the spans of a worker, and of those of others whose peer it is."""
        mask: BoolArray = (self.timeline.worker == rank) | (self.timeline.peer == rank)
        return mask

    def covers(self, mask: BoolArray) -> Intervals:
        """When one of the spans in `mask` was under way."""
        return Intervals.of(self.timeline.start_ps[mask], self.timeline.end_ps[mask])

    @cached_property
    def reduces_together(self) -> tuple[IntArray, IntArray]:
        """The all-reduces, by their place among the spans, and from when each has all workers there."""
        spans = self.timeline
        chosen: IntArray = np.flatnonzero(self.kinds(OpKind.ALLREDUCE))
        # The k-th of an iteration is the same one on every worker.
        place = _places(spans.worker[chosen], spans.iteration[chosen])
        keys = list(zip(spans.iteration[chosen].tolist(), place.tolist(), strict=True))
        last: dict[tuple[int, int], int] = {}
        for key, start in zip(keys, spans.start_ps[chosen].tolist(), strict=True):
            last[key] = max(last.get(key, start), start)
        return chosen, np.array([last[key] for key in keys], dtype=np.int64)


def _places(workers: AnyArray, iterations: AnyArray) -> IntArray:
    """Per span, how many of its worker and iteration came before it."""
    counters: dict[tuple[int, int], int] = {}
    found = []
    for key in zip(workers.tolist(), iterations.tolist(), strict=True):
        found.append(counters.get(key, 0))
        counters[key] = found[-1] + 1
    return np.array(found, dtype=np.int64)
