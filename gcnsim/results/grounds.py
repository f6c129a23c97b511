"""What an answer rests on: where its numbers come from, what was assumed, and what that does to the answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, TypedDict

from gcnsim.ids import Seconds
from gcnsim.shapes import ONLY_IF_SAID, SINCE, Amount, As, Count, OneOrMore, Positive, Share, Text


@dataclass(frozen=True, slots=True)
class Assumption:
    """A number that is assumed, and the ends of its range, with units."""

    name: Text
    value: Text
    low: Text
    high: Text
    basis: Text


@dataclass(frozen=True, slots=True)
class Assumed(Assumption):
    """One that an answer rests on."""

    in_interval: bool
    """Whether intervals cover it."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """The analytic bounds of a row's long-run mean iteration."""

    lower_s: Seconds
    upper_s: Seconds


@dataclass(frozen=True, slots=True)
class MaxWait:
    """How many joint draws of the assumptions were simulated within a limit of time."""

    max_wait_s: Positive
    """The time after which no further draw was begun."""
    draws: Count
    """Draws that were simulated of each setting whose draws are simulated."""
    wanted: Count
    """Draws without a limit."""

    @property
    def complete(self) -> bool:
        """Whether the limit left out no draw."""
        return self.draws == self.wanted


@dataclass(frozen=True, slots=True)
class Unlike:
    """In what a question is unlike most measured rows."""

    what: Text
    rows: Count
    """How many of them have it all the same."""


@dataclass(frozen=True, slots=True)
class LikeQuestions:
    """Of GPUs where nothing is fitted: times that others measured, and how far off they are predicted."""

    rows: Count
    """How many measured rows are like the recommended setting."""
    median_error: Amount | None
    """Of their absolute relative errors; null of fewer than three rows."""
    inside: Share | None
    """Share of their times in the predicted range; null of fewer than three rows."""
    alike: tuple[Text, ...]
    """What all of them have of the question."""
    unlike: tuple[Unlike, ...]
    """What of the question too few of them have."""
    text: Text


@dataclass(frozen=True, slots=True)
class MeasuredTimes:
    """Compute times that were measured, in the place of the cost laws'."""

    file: Text
    sha256: Text
    device: Text
    relative_error: Amount
    """Half the 90 % interval of a mean over that mean, of the least exactly known."""
    interpolated: tuple[Text, ...]
    """Settings whose rate lies between two measured ones."""
    links: Text
    """What network and messages are."""
    text: Text


class GraphFacts(TypedDict):
    """Which graph it is, and its hash or citations."""

    kind: Annotated[Text, "surrogate-profile, published-statistics, real, ..."]
    text: Text


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """Where the numbers come from."""

    MAY_SAY_MORE: ClassVar = True

    graph: Annotated[Mapping[str, Any], As(GraphFacts, Any)]
    model: str = field(default="", metadata=SINCE)
    device: Text
    interval: Text
    """What low and high cover."""
    assumptions: tuple[Assumed, ...]
    measured: tuple[Text, ...] = field(default=(), metadata=SINCE)
    """Figures that somebody measured."""
    calibration: Text
    """What figures were fitted to."""
    engine: Text
    version: Text
    seed: int
    scenario_hash: Text
    bounds: tuple[Bounds, ...] = field(default=(), metadata=SINCE)
    """Of each row."""
    warnings: tuple[Text, ...]
    given_figures: Text | None = field(default=None, metadata=ONLY_IF_SAID)
    """Figures of the catalogue that the question replaces (cluster.figures)."""
    faults: Text | None = field(default=None, metadata=ONLY_IF_SAID)
    """Faults of every row; only where there are any."""
    between_gpus: Text | None = field(default=None, metadata=ONLY_IF_SAID)
    """NVLink and transport, as the heading says them, and whether they are assumed."""
    between_gpus_basis: Text | None = field(default=None, metadata=ONLY_IF_SAID)
    """Where NVLink and transport come from."""
    mini_batches: Text | None = field(default=None, metadata=ONLY_IF_SAID)
    """Who draws mini-batches on GPUs, and where their rows lie, by method."""
    like_questions: LikeQuestions | None = field(default=None, metadata=ONLY_IF_SAID)
    measured_compute: MeasuredTimes | None = field(default=None, metadata=ONLY_IF_SAID)
    question_hash: Text | None = field(default=None, metadata=ONLY_IF_SAID)
    max_wait: MaxWait | None = field(default=None, metadata=ONLY_IF_SAID)


@dataclass(frozen=True, slots=True)
class AssumptionEffect(Assumption):
    """One, and seconds of the recommended setting's iteration with it alone at either end."""

    iteration_s_low: Positive
    """With this assumption alone at its low end."""
    iteration_s_high: Positive
    """With this assumption alone at its high end."""
    share: Share
    """Of the squared spreads of all assumptions."""


@dataclass(frozen=True, slots=True)
class Certainty:
    """How sure an answer is."""

    calibrated: bool
    label: Text
    draws: OneOrMore
    """Of the assumptions, jointly."""
    simulated: tuple[Text, ...]
    """The settings of which all draws were simulated, the recommended one first; none where the draws of all are
    estimated."""
    method: Text
    """What is done with the draws."""
    assumptions: tuple[AssumptionEffect, ...]
    """What each assumption does to the recommended setting's time, those that matter most first."""
    measure_first: Text | None = field(default=None, metadata=ONLY_IF_SAID)
    """The figure that moves the time most and how to measure it; only where one stands out."""
