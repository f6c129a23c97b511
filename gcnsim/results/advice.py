"""What an answer advises: the setting to use, why, what one step more of each knob would bring."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from gcnsim.ids import Seconds
from gcnsim.results.plain import FROM, NIC_BANDWIDTH, ONLY_IF_SAID, TO, by_field
from gcnsim.results.row import Row

OF_THE_ROW: Final = (
    "gpus",
    "bandwidth",
    "device",
    "method",
    "tau",
    "epsilon",
    "rate",
    "cache_fraction",
    "dataset",
    "iteration_s",
    "iteration_s_low",
    "iteration_s_high",
    "setting",
    "fits",
    "limited_by",
)
"""What of its row a recommendation says again, as plain data."""


@dataclass(frozen=True, slots=True)
class Step:
    """What one step of a knob brings.

    gain: share of the iteration time it saves (negative: it costs), or of an epoch's where that then has another number
    of iterations: epoch_s, else None; gain_low, gain_high: its 90 % interval over joint draws of the assumptions, None
    without one. fits: whether the GPUs hold it then; None where that is not known. too_approximate: whether it samples
    less, or uses staler values, than may be recommended.
    """

    knob: str
    start: int | float | str = field(metadata=FROM)
    end: int | float | str = field(metadata=TO)
    iteration_s: Seconds
    gain: float
    gain_low: float | None
    gain_high: float | None
    fits: bool | None
    too_approximate: bool = False
    epoch_s: Seconds | None = field(default=None, metadata=ONLY_IF_SAID)

    @property
    def distinguishable(self) -> bool | None:
        """Whether its interval leaves out that nothing changes; None without an interval."""
        if self.gain_low is None or self.gain_high is None:
            return None
        return self.gain_low > 0 or self.gain_high < 0

    def payload(self) -> dict[str, Any]:
        """As plain data, with whether it is distinguishable."""
        told = by_field(self)
        last = {key: told.pop(key) for key in ("fits", "too_approximate")}
        return told | {"distinguishable": self.distinguishable} | last


@dataclass(frozen=True, slots=True)
class NoEffect:
    """A knob that changes nothing where the setting stands, and why."""

    knob: str
    why: str


@dataclass(frozen=True, slots=True)
class Excluded:
    """A setting that may not be recommended, in words, and why."""

    what: str
    why: str


@dataclass(frozen=True, slots=True)
class RuleReport:
    """What may be recommended. min_sampling_rate: the least; max_staleness: the most iterations."""

    methods: tuple[str, ...]
    min_sampling_rate: float
    max_staleness: int
    text: str


@dataclass(frozen=True, slots=True)
class Confidence:
    """share: of the joint draws of the assumptions, those in which the setting is the fastest, or nearly; None where
    they do not say how far times may be off."""

    share: float | None
    text: str


@dataclass(frozen=True, slots=True)
class Alternative:
    """The choice on another machine that some would rather take. role: `fewest GPUs` or `cheapest`."""

    role: str
    why: str
    row: Row


@dataclass(frozen=True, slots=True)
class Recommendation:
    """The recommended setting as a row, and why. verdict: what to use, in a sentence; note: what follows from its
    limit, None where that is plain; in_results: its place among the rows, None where nobody asked for it. by_machine:
    of several machines the setting and the best one on each other machine, where nobody asked for them. networks: what
    a faster network brings, where several were asked for.
    """

    why: str
    verdict: str
    confidence: Confidence
    note: str | None
    rule: RuleReport
    excluded: tuple[Excluded, ...]
    row: Row
    in_results: int | None
    alternatives: tuple[Alternative, ...] = ()
    by_machine: tuple[Row, ...] = ()
    networks: str = ""

    def payload(self) -> dict[str, Any]:
        """As plain data, which say some of the row again."""
        row, own = self.row.payload(), by_field(self)
        again = {key: row[key] for key in OF_THE_ROW}
        first = {key: own.pop(key) for key in ("why", "verdict", "confidence")}
        limit = again.pop("limited_by")
        for name in ("by_machine", "networks"):
            if not own[name]:
                del own[name]
        return again | first | {"limited_by": limit} | own


@dataclass(frozen=True, slots=True)
class LeftOutRow:
    """A setting that has no row, and why. setting: knobs of its own that are not at their default, in words."""

    method: str
    setting: str
    reason: str
    gpus: int
    bandwidth_bytes_per_s: float = field(metadata=NIC_BANDWIDTH)
    device: str
