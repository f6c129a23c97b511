"""Spans of a run whose waits are longer than what they stand for, recorded as what they stand for."""

from __future__ import annotations

from gcnsim.ids import Rank
from gcnsim.timeline import Timeline
from runtime.accelerator.clock import now
from runtime.record import Recorder


class ScaledRecorder(Recorder):
    """A recorder whose clock is `scale` times slower than the machine's."""

    def __init__(self, rank: Rank, scale: float, *, enabled: bool = True) -> None:
        super().__init__(rank, enabled)
        self._scale = scale

    def mark(self) -> int:
        """Now."""
        return self.at(now())

    def at(self, instant: int) -> int:
        """The mark of an instant of the machine's clock, in ns."""
        return round(instant / self._scale)

    def timeline(self, origin_ns: int, offset_ns: int = 0) -> Timeline:
        """See `Recorder.timeline`; both arguments are of the machine's clock."""
        return super().timeline(self.at(origin_ns), round(offset_ns / self._scale))
