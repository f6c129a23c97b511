"""What an answer advises: the setting to use, why, what one step more of each knob would bring."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Final, Literal

from gcnsim.results.plain import by_field
from gcnsim.results.row import Row
from gcnsim.shapes import (
    FROM,
    JUDGED,
    NIC_BANDWIDTH,
    ONLY_IF_SAID,
    TO,
    As,
    AtMostOne,
    Count,
    OneOrMore,
    Positive,
    Share,
    Text,
    Within,
)

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
    """What one step of a knob brings."""

    knob: Text
    start: int | float | str = field(metadata=FROM)
    end: int | float | str = field(metadata=TO)
    iteration_s: Positive
    """Seconds per iteration then."""
    gain: AtMostOne
    """Share of the iteration time that it saves, negative where it costs; of an epoch's where epoch_s is there."""
    gain_low: AtMostOne | None
    """Low end of its 90 % interval over joint draws of the assumptions. Null of CPU cores without a calibration."""
    gain_high: AtMostOne | None
    """High end of it."""
    fits: bool | None
    """Whether the GPUs hold it then; null where not known."""
    too_approximate: bool = False
    """Whether it samples less, or uses staler values, than may be recommended."""
    epoch_s: Positive | None = field(default=None, metadata=ONLY_IF_SAID)
    """Seconds per epoch, only where an epoch then has another number of iterations."""

    ADDED: ClassVar = ("distinguishable",)

    @property
    def distinguishable(self) -> bool | None:
        """Whether its interval leaves out that nothing changes; null without an interval."""
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

    knob: Text
    why: Text


@dataclass(frozen=True, slots=True)
class Excluded:
    """A setting that may not be recommended, in words, and why."""

    what: Text
    why: Text


@dataclass(frozen=True, slots=True)
class RuleReport:
    """What may be recommended."""

    methods: Annotated[tuple[Text, ...], Within(min_items=1)]
    min_sampling_rate: Share
    """The least."""
    max_staleness: Count
    """The most iterations."""
    text: Text


@dataclass(frozen=True, slots=True)
class Confidence:
    """How sure it is that the setting is the fastest, or nearly."""

    share: Share | None
    """Of the joint draws of the assumptions, those in which it is the fastest of the settings simulated, or within 3 %
    of it. Null of CPU cores without a calibration."""
    text: Text


@dataclass(frozen=True, slots=True)
class Alternative:
    """The choice on another machine that some would rather take."""

    role: Annotated[str, As(Literal["fewest GPUs", "cheapest"])]
    why: Text
    row: Annotated[Row, JUDGED]


@dataclass(frozen=True, slots=True)
class Recommendation:
    """The recommended setting, some of its row again, and why it is recommended."""

    why: Text
    verdict: Text
    """What to use, in a sentence."""
    confidence: Confidence
    note: str | None
    """What follows from its limit, where that is not plain; else null."""
    rule: RuleReport
    excluded: tuple[Excluded, ...]
    """Settings of results that may not be recommended."""
    row: Annotated[Row, JUDGED]
    """The recommended setting as a row."""
    in_results: Count | None
    """Its place in results; null where nobody asked for it."""
    alternatives: tuple[Alternative, ...] = ()
    """Other machines' settings that some would rather take; only where several machines were asked for."""
    by_machine: tuple[Annotated[Row, JUDGED], ...] = field(default=(), metadata=ONLY_IF_SAID)
    """The setting and the best one on each other machine, where nobody asked for them; only where several machines
    were asked for."""
    networks: Text = field(default="", metadata=ONLY_IF_SAID)
    """What each faster network brings; only where several were asked for."""

    ADDED: ClassVar = OF_THE_ROW

    def payload(self) -> dict[str, Any]:
        """As plain data, which say some of the row again."""
        row, own = self.row.payload(), by_field(self)
        again = {key: row[key] for key in OF_THE_ROW}
        first = {key: own.pop(key) for key in ("why", "verdict", "confidence")}
        limit = again.pop("limited_by")
        return again | first | {"limited_by": limit} | own


@dataclass(frozen=True, slots=True)
class LeftOutRow:
    """A setting that has no row, and why."""

    method: Text
    setting: str
    """Knobs of its own that are not at their default, in words."""
    reason: Text
    gpus: OneOrMore
    bandwidth_bytes_per_s: float = field(metadata=NIC_BANDWIDTH)
    device: Text
    """Device of every server; where servers differ, each in turn, separated by commas."""
