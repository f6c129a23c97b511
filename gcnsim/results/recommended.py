"""What a recommendation found, in the shape of the JSON schema `gcnsim.recommend/1`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Literal

from gcnsim.results.advice import RuleReport
from gcnsim.results.asked import PricesReport
from gcnsim.results.grounds import AssumptionEffect, Provenance
from gcnsim.results.plain import by_field
from gcnsim.results.row import Row
from gcnsim.shapes import (
    ONLY_IF_SAID,
    Amount,
    As,
    Count,
    Currency,
    OneOrMore,
    Positive,
    Share,
    Text,
    Within,
)

RECOMMEND: Final = "gcnsim.recommend/1"


@dataclass(frozen=True, slots=True)
class BudgetReport:
    """What per_hour is of: at most this amount a period, of so many hours of use a day."""

    amount: Positive
    period: Annotated[str, As(Literal["hour", "day", "month", "year"])]
    hours_per_day: Annotated[float, Within(exclusive_minimum=0, maximum=24)]


@dataclass(frozen=True, slots=True)
class GoalReport:
    """What was to be least, and the limits; null where there is none."""

    text: Text
    minimise: Annotated[str, As(Literal["cost", "gpus", "time"])]
    currency: Currency
    iteration_s: Positive | None = None
    """The most seconds of an iteration."""
    epoch_s: Positive | None = None
    training_s: Positive | None = None
    per_hour: Amount | None = None
    """The most that an hour may cost."""
    most_cost: Amount | None = None
    """The most that the training may cost."""
    confidence: Share = 0.9
    """The chance of meeting the limits that was asked for."""
    budget: BudgetReport | None = field(default=None, metadata=ONLY_IF_SAID)


@dataclass(frozen=True, slots=True)
class PointReport:
    """A setting on a machine. Of CPU cores without a calibration intervals and chance are null, and it meets a limit
    where it is within it at the stated values."""

    name: Text
    """Both in words."""
    machine: Text
    host: Text | None
    """Null of no instance type."""
    servers: OneOrMore
    iterations: OneOrMore
    """That seconds and cost are of: an iteration, an epoch or a training."""
    seconds: Positive
    """Of these iterations."""
    seconds_low: Positive | None
    """Low end of the 90 % interval of the joint draws."""
    seconds_high: Positive | None
    """High end of it."""
    cost: Amount | None
    """In the currency of the goal; null where no price is known."""
    cost_low: Amount | None
    cost_high: Amount | None
    meets: bool
    """Whether the chance of meeting the limits is at least the one asked for."""
    chance: Share | None
    """Of meeting the limits: the share of the joint draws of the assumptions in which every one is kept."""
    row: Row
    on_front: bool = True
    """Whether nothing is faster and cheaper at the stated values."""
    beaten_share: Share = 0.0
    """Of the joint draws, those in which what beats it most often does."""


@dataclass(frozen=True, slots=True)
class RunnerUp:
    """The second best, and why it is."""

    point: PointReport
    why: Text
    faster_share: Share | None
    """Of the joint draws, those in which it is faster. Null of CPU cores without a calibration."""
    cheaper_share: Share | None
    """Those in which it is cheaper."""


@dataclass(frozen=True, slots=True)
class SearchReport:
    """Settings considered, and what became of them (`gcnsim.capacity.search.Search`)."""

    space: Text
    """The machines that were considered."""
    settings: Count
    slower: Count
    """Left out: another one of the same machine is faster by its estimate."""
    same: Count
    refused: Count
    too_large: Count
    unpriced: Count
    missed: Count
    """Miss a limit even at their analytic bound."""
    beaten: Count
    """At their bound slower and dearer than what was simulated."""
    simulated: Count
    text: Text
    grid: Count | None = field(default=None, metadata=ONLY_IF_SAID)
    """Of how many they were picked."""


@dataclass(frozen=True, slots=True)
class Confirmed:
    """An option run again by the reference engine."""

    name: Text
    same: bool | None
    """Whether the reference engine gave the same picoseconds; null: not run again."""
    why: str


@dataclass(frozen=True, slots=True)
class KnobEffect:
    """A knob alone over the values that were asked for, from the choice: the least and the most that is compared."""

    knob: Text
    value: Text
    low: Text
    high: Text
    seconds_low: Positive
    """Of what is compared, at the value that gives least."""
    seconds_high: Positive
    """At the value that gives most."""
    cost_low: Amount | None
    cost_high: Amount | None


@dataclass(frozen=True, slots=True)
class OtherRule:
    """What would be chosen on the same machine by another rule of what may be recommended."""

    option: Text
    """That rule."""
    name: Text
    """The setting in words."""
    seconds: Positive
    """Of what is compared."""
    cost: Amount | None
    shorter: float
    """Share of the choice's time that it saves; negative where it takes longer."""
    shorter_low: float | None
    """Low end of the 90 % interval of the paired draws. Null of CPU cores without a calibration."""
    shorter_high: float | None
    """High end of it."""
    meets: bool
    """Whether the chance is at least the one asked for."""
    chance: Share | None
    """Of meeting the limits. Null of CPU cores without a calibration."""


@dataclass(frozen=True, slots=True)
class Change:
    """A single change of the closest setting."""

    knob: Text
    start: int | float | str
    end: int | float | str
    iteration_s: Positive
    """Seconds per iteration then."""
    meets: bool
    """Whether the chance is at least the one asked for."""
    chance: Share | None
    """Of meeting the limits then. Null of CPU cores without a calibration."""
    excess: Amount | None
    """The largest limited amount over its limit, at the stated values; null where it is not known."""


@dataclass(frozen=True, slots=True)
class Missed:
    """Of a goal that nothing meets: how close the setting of the best chance comes, and what would raise the chance."""

    text: Text
    raised: Text
    """What would raise the chance."""
    excess: Amount | None
    """The largest limited amount over its limit; null where the GPUs hold no setting."""
    changes: tuple[Change, ...]
    """Single changes of the setting."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """All that a recommendation found. Seconds, bytes and fractions; costs in the currency of the goal."""

    scenario: Mapping[str, Any]
    """The choice as a scenario."""
    provenance: Provenance
    goal: GoalReport
    compared: Annotated[str, As(Literal["an iteration", "an epoch", "a training"])]
    """What seconds and costs are of."""
    verdict: Text
    choice: PointReport
    """The best that meets the goal, or, where nothing does, what has the best chance."""
    runner_up: RunnerUp | None
    front: Annotated[tuple[PointReport, ...], Within(min_items=1)]
    """What nothing surely beats in time and cost, the fastest first."""
    limited_by: Text
    search: SearchReport
    confirmed: tuple[Confirmed, ...]
    confirmation: str
    knobs: tuple[KnobEffect, ...]
    """Each knob alone over the values considered, the one that moves the time most first."""
    assumptions: tuple[AssumptionEffect, ...]
    """What each assumption does to the choice's time, those that matter most first."""
    decides: str
    rule: RuleReport
    other_rules: tuple[OtherRule, ...]
    """What would be chosen on the same machine by another rule of what may be recommended."""
    calibrated: bool
    label: Text
    missed: Missed | None = field(default=None, metadata=ONLY_IF_SAID)
    prices: PricesReport | None = field(default=None, metadata=ONLY_IF_SAID)
    """Only where prices were chosen."""

    @property
    def rows(self) -> tuple[PointReport, ...]:
        """The choice, the runner-up and the front, each once, the fastest first."""
        others = () if self.runner_up is None else (self.runner_up.point,)
        found = {each.name: each for each in (*others, self.choice, *self.front)}
        return tuple(sorted(found.values(), key=lambda each: (each.seconds, each.name)))

    def payload(self) -> dict[str, Any]:
        """As plain data."""
        return {"schema": RECOMMEND} | by_field(self)
