"""What an answer advises: the setting to use, the reasons, and the gain from one more step of each knob."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Final, Literal

from gcnsim.core.shapes import (
    FROM,
    JUDGED,
    NIC_BANDWIDTH,
    OMIT_IF_NONE,
    TO,
    As,
    AtMostOne,
    Count,
    OneOrMore,
    Positive,
    Share,
    Text,
    Within,
    by_field,
)
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
"""The fields of its row that a recommendation repeats, as plain data."""


@dataclass(frozen=True, slots=True)
class Step:
    """The effect of one step of a knob."""

    knob: Text
    start: int | float | str = field(metadata=FROM)
    end: int | float | str = field(metadata=TO)
    iteration_s: Positive
    """Seconds per iteration after the change."""
    gain: AtMostOne
    """Share of the iteration time that it saves (epoch time if epoch_s is given); negative if it takes longer."""
    gain_low: AtMostOne | None
    """Low end of the 90 % interval over random draws of the assumptions. Null in older answers of CPU cores."""
    gain_high: AtMostOne | None
    """High end of the interval."""
    fits: bool | None
    """Whether it fits the GPUs' memory after the change; null if unknown."""
    too_approximate: bool = False
    """Whether its sampling rate or staleness violates the limits for recommendations."""
    epoch_s: Positive | None = field(default=None, metadata=OMIT_IF_NONE)
    """Seconds per epoch; only if the step changes the number of iterations per epoch."""

    ADDED: ClassVar = ("distinguishable",)

    @property
    def distinguishable(self) -> bool | None:
        """Whether the interval excludes zero; null without an interval."""
        if self.gain_low is None or self.gain_high is None:
            return None
        return self.gain_low > 0 or self.gain_high < 0

    def payload(self) -> dict[str, Any]:
        """As plain data, including `distinguishable`."""
        data = by_field(self)
        last = {key: data.pop(key) for key in ("fits", "too_approximate")}
        return data | {"distinguishable": self.distinguishable} | last


@dataclass(frozen=True, slots=True)
class NoEffect:
    """A knob that changes nothing at the recommended setting, and why."""

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
    """Lowest sampling rate that may be recommended."""
    max_staleness: Count
    """Highest staleness (tau) that may be recommended."""
    text: Text


@dataclass(frozen=True, slots=True)
class Confidence:
    """The chance that the setting is the fastest, or nearly."""

    share: Share | None
    """Share of random draws of the assumptions in which it is the fastest of the simulated settings, or within 3 %
    of it. Null in older answers of CPU cores."""
    text: Text


@dataclass(frozen=True, slots=True)
class Alternative:
    """The best setting on another machine that may be preferable."""

    role: Annotated[str, As(Literal["fewest GPUs", "cheapest"])]
    why: Text
    row: Annotated[Row, JUDGED]


@dataclass(frozen=True, slots=True)
class Recommendation:
    """The recommended setting, some fields of its row, and the reasons."""

    why: Text
    verdict: Text
    """What to use, in a sentence."""
    confidence: Confidence
    note: str | None
    """The consequence of its limit, if that is not obvious; else null."""
    rule: RuleReport
    excluded: tuple[Excluded, ...]
    """Settings of results that may not be recommended."""
    row: Annotated[Row, JUDGED]
    """The recommended setting as a row."""
    in_results: Count | None
    """Its place in results; null if it was not asked for."""
    alternatives: tuple[Alternative, ...] = ()
    """Settings on other machines that may be preferable; only if several machines were asked for."""
    by_machine: tuple[Annotated[Row, JUDGED], ...] = field(default=(), metadata=OMIT_IF_NONE)
    """The setting and the best one on each other machine, if they were not asked for; only if several machines
    were asked for."""
    networks: Text = field(default="", metadata=OMIT_IF_NONE)
    """The gain from each faster network; only if several were asked for."""

    ADDED: ClassVar = OF_THE_ROW

    def payload(self) -> dict[str, Any]:
        """As plain data, with some fields of the row."""
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
    """Knobs that only this method has and that differ from the default, in words."""
    reason: Text
    gpus: OneOrMore
    bandwidth_bytes_per_s: float = field(metadata=NIC_BANDWIDTH)
    device: Text
    """Device of every server; if servers differ, one after the other, separated by commas."""
