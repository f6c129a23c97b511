"""The basis of an answer: the sources of its numbers, the assumptions, and their effect."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, TypedDict

from gcnsim.core.ids import Seconds
from gcnsim.core.shapes import OMIT_IF_NONE, SINCE, Amount, As, Count, OneOrMore, Positive, Share, Text


@dataclass(frozen=True, slots=True)
class Assumption:
    """An assumed number and the ends of its range, with units."""

    name: Text
    value: Text
    low: Text
    high: Text
    basis: Text


@dataclass(frozen=True, slots=True)
class Assumed(Assumption):
    """An assumption of an answer."""

    in_interval: bool
    """Whether intervals cover it."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """The analytic bounds of a row's long-run mean iteration."""

    lower_s: Seconds
    upper_s: Seconds


@dataclass(frozen=True, slots=True)
class Unlike:
    """A property of the question that few measured rows have."""

    what: Text
    rows: Count
    """How many of the rows have it."""


@dataclass(frozen=True, slots=True)
class LikeQuestions:
    """For GPUs without fitted figures: times that others measured, and the errors of their predictions.

    All were known when formulas and assumed values were chosen: errors of new ones are larger, and how many lie in
    their ranges says nothing, so it is not given.
    """

    rows: Count
    """How many measured rows are like the recommended setting."""
    median_error: Amount | None
    """Median of their absolute relative errors; null for fewer than three rows."""
    alike: tuple[Text, ...]
    """The properties of the question that all of them share."""
    unlike: tuple[Unlike, ...]
    """The properties of the question that too few of them have."""
    text: Text


@dataclass(frozen=True, slots=True)
class MeasuredTimes:
    """Measured compute times, which replace the cost formulas."""

    file: Text
    sha256: Text
    device: Text
    relative_error: Amount
    """Half the 90 % interval of a mean, divided by the mean, for the least exact one."""
    interpolated: tuple[Text, ...]
    """Settings with a rate between two measured rates."""
    links: Text
    """The basis of network and message times."""
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
    """What the interval covers."""
    assumptions: tuple[Assumed, ...]
    measured: tuple[Text, ...] = field(default=(), metadata=SINCE)
    """Measured figures."""
    calibration: Text
    """The measurements to which figures were fitted."""
    engine: Text
    version: Text
    seed: int
    scenario_hash: Text
    bounds: tuple[Bounds, ...] = field(default=(), metadata=SINCE)
    """One entry for each row."""
    warnings: tuple[Text, ...]
    given_figures: Text | None = field(default=None, metadata=OMIT_IF_NONE)
    """Figures of the catalogue that the question replaces (cluster.figures)."""
    faults: Text | None = field(default=None, metadata=OMIT_IF_NONE)
    """Faults of every row; only if there are any."""
    between_gpus: Text | None = field(default=None, metadata=OMIT_IF_NONE)
    """NVLink and transport as in the heading, and whether they are assumed."""
    between_gpus_basis: Text | None = field(default=None, metadata=OMIT_IF_NONE)
    """Where NVLink and transport come from."""
    mini_batches: Text | None = field(default=None, metadata=OMIT_IF_NONE)
    """What draws mini-batches on GPUs, and where their rows are stored, by method."""
    like_questions: LikeQuestions | None = field(default=None, metadata=OMIT_IF_NONE)
    measured_compute: MeasuredTimes | None = field(default=None, metadata=OMIT_IF_NONE)
    question_hash: Text | None = field(default=None, metadata=OMIT_IF_NONE)


@dataclass(frozen=True, slots=True)
class AssumptionEffect(Assumption):
    """An assumption, and the iteration time of the recommended setting at both ends of its range."""

    iteration_s_low: Positive
    """With this assumption alone at its low end."""
    iteration_s_high: Positive
    """With this assumption alone at its high end."""
    share: Share
    """Share of the variance: its squared spread over the sum for all assumptions."""
    decides: Share | None = field(default=None, metadata=OMIT_IF_NONE)
    """Share of the random draws in which the setting is recommended only with, or only without, this assumption's
    drawn value in place of the stated one; absent below three draws."""
    seconds_low: Positive | None = field(default=None, metadata=OMIT_IF_NONE)
    """In a recommendation: seconds of what is compared, a training with its failures, at the low end; at most 100
    years."""
    seconds_high: Positive | None = field(default=None, metadata=OMIT_IF_NONE)
    """The same at the high end."""

    @property
    def ends(self) -> tuple[float, float]:
        """What is compared at the low and the high end in seconds: in a recommendation its own, else an iteration."""
        if self.seconds_low is None or self.seconds_high is None:
            return self.iteration_s_low, self.iteration_s_high
        return self.seconds_low, self.seconds_high


@dataclass(frozen=True, slots=True)
class Certainty:
    """The certainty of an answer."""

    calibrated: bool
    label: Text
    draws: OneOrMore
    """Number of random draws of the assumptions."""
    simulated: tuple[Text, ...]
    """The settings whose draws were all simulated, the recommended one first; empty if the draws of all are
    estimated."""
    method: Text
    """How the draws are used."""
    assumptions: tuple[AssumptionEffect, ...]
    """The effect of each assumption on the recommended setting's time, the largest first."""
    measure_first: Text | None = field(default=None, metadata=OMIT_IF_NONE)
    """The figure that changes the time most and how to measure it; only if one stands out."""
