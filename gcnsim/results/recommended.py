"""The result of a recommendation, in the shape of the JSON schema `gcnsim.recommend/1`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Literal

from gcnsim.core.shapes import (
    OMIT_IF_NONE,
    Amount,
    As,
    Count,
    Currency,
    OneOrMore,
    Positive,
    Share,
    Text,
    Within,
    by_field,
)
from gcnsim.results.advice import RuleReport
from gcnsim.results.optional_sections import EnergyReport, PricesReport, TargetRow
from gcnsim.results.provenance import AssumptionEffect, Provenance
from gcnsim.results.row import Row

RECOMMEND: Final = "gcnsim.recommend/1"


@dataclass(frozen=True, slots=True)
class BudgetReport:
    """The budget behind per_hour: an amount per period, with this many hours of use per day."""

    amount: Positive
    period: Annotated[str, As(Literal["hour", "day", "month", "year"])]
    hours_per_day: Annotated[float, Within(exclusive_minimum=0, maximum=24)]


@dataclass(frozen=True, slots=True)
class GoalReport:
    """What is minimised, and the limits; null without a limit."""

    text: Text
    minimise: Annotated[str, As(Literal["cost", "gpus", "time"])]
    currency: Currency
    iteration_s: Positive | None = None
    """Limit of the iteration time, in seconds."""
    epoch_s: Positive | None = None
    training_s: Positive | None = None
    per_hour: Amount | None = None
    """Limit of the cost per hour."""
    most_cost: Amount | None = None
    """Limit of the cost of the training."""
    confidence: Share = 0.9
    """The required chance of meeting the limits."""
    budget: BudgetReport | None = field(default=None, metadata=OMIT_IF_NONE)


@dataclass(frozen=True, slots=True)
class PointReport:
    """A setting on a machine."""

    name: Text
    """Setting and machine in words."""
    machine: Text
    host: Text | None
    """Null if it is not an instance type."""
    servers: OneOrMore
    iterations: OneOrMore
    """Iterations that seconds and cost refer to: one, an epoch or a training."""
    seconds: Positive
    """Seconds for these iterations; of a training with its failures."""
    seconds_low: Positive | None
    """Low end of the 90 % interval over the random draws; at most 100 years."""
    seconds_high: Positive | None
    """High end of the interval; at most 100 years."""
    cost: Amount | None
    """In the currency of the goal; null if no price is known."""
    cost_low: Amount | None
    cost_high: Amount | None
    meets: bool
    """Whether the chance of meeting the limits is at least the required one."""
    chance: Share
    """Chance of meeting the limits: the share of random draws of the assumptions in which all are met."""
    row: Row
    on_front: bool = True
    """Whether no option is both faster and cheaper at the stated values."""
    beaten_share: Share = 0.0
    """Share of the random draws in which its strongest rival beats it."""


@dataclass(frozen=True, slots=True)
class RunnerUp:
    """The second best option, and the reason."""

    point: PointReport
    why: Text
    faster_share: Share
    """Share of the random draws in which it is faster."""
    cheaper_share: Share
    """Share of the draws in which it is cheaper."""


@dataclass(frozen=True, slots=True)
class SearchReport:
    """Numbers of settings considered, and what became of them (`gcnsim.planning.capacity_search.Search`)."""

    space: Text
    """The machines that were considered."""
    settings: Count
    slower: Count
    """Omitted: another one on the same machine has a faster estimate."""
    same: Count
    refused: Count
    too_large: Count
    unpriced: Count
    missed: Count
    """Settings that miss a limit even at their analytic bound."""
    beaten: Count
    """Settings that are slower and more expensive, even at their bound, than a simulated one."""
    simulated: Count
    text: Text
    grid: Count | None = field(default=None, metadata=OMIT_IF_NONE)
    """Size of the grid that they were selected from."""


@dataclass(frozen=True, slots=True)
class Confirmed:
    """An option run again by the reference engine."""

    name: Text
    same: bool | None
    """Whether the reference engine gave the same picoseconds; null: not run again."""
    why: str


@dataclass(frozen=True, slots=True)
class KnobEffect:
    """One knob varied alone over its values, starting from the choice: the lowest and highest result."""

    knob: Text
    value: Text
    low: Text
    high: Text
    seconds_low: Positive
    """Result at the value that gives the lowest."""
    seconds_high: Positive
    """Result at the value that gives the highest."""
    cost_low: Amount | None
    cost_high: Amount | None


@dataclass(frozen=True, slots=True)
class OtherRule:
    """The choice on the same machine under other limits."""

    option: Text
    """The other limit."""
    name: Text
    """The setting in words."""
    seconds: Positive
    """Seconds of what is compared."""
    cost: Amount | None
    shorter: float
    """Share of the choice's time that it saves; negative if it takes longer."""
    shorter_low: float
    """Low end of the 90 % interval over paired draws."""
    shorter_high: float
    """High end of the interval."""
    meets: bool
    """Whether the chance is at least the required one."""
    chance: Share
    """Chance of meeting the limits."""


@dataclass(frozen=True, slots=True)
class Change:
    """A single change of the closest setting."""

    knob: Text
    start: int | float | str
    end: int | float | str
    iteration_s: Positive
    """Seconds per iteration after the change."""
    meets: bool
    """Whether the chance is at least the required one."""
    chance: Share
    """Chance of meeting the limits after the change. Null in older answers of CPU cores."""
    excess: Amount | None
    """The largest ratio of an amount to its limit, at the stated values; null if unknown."""


@dataclass(frozen=True, slots=True)
class Missed:
    """If no option meets the goal: how close the best one comes, and what would raise its chance."""

    text: Text
    raised: Text
    """What would raise the chance."""
    excess: Amount | None
    """The largest ratio of an amount to its limit; null if no setting fits the GPUs' memory."""
    changes: tuple[Change, ...]
    """Single changes of the setting."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """The complete recommendation. Units: seconds, bytes, fractions of one; costs in the currency of the goal."""

    scenario: Mapping[str, Any]
    """The choice as a scenario."""
    provenance: Provenance
    goal: GoalReport
    compared: Annotated[str, As(Literal["an iteration", "an epoch", "a training"])]
    """What seconds and costs refer to."""
    verdict: Text
    choice: PointReport
    """The best option that meets the goal; if none does, the one with the best chance."""
    runner_up: RunnerUp | None
    front: Annotated[tuple[PointReport, ...], Within(min_items=1)]
    """The Pareto front of time and cost, the fastest first."""
    limited_by: Text
    search: SearchReport
    confirmed: tuple[Confirmed, ...]
    confirmation: str
    knobs: tuple[KnobEffect, ...]
    """Each knob varied alone over its values, the largest effect first."""
    assumptions: tuple[AssumptionEffect, ...]
    """The effect of each assumption on the choice's time, the largest first."""
    decides: str
    rule: RuleReport
    other_rules: tuple[OtherRule, ...]
    """The choice on the same machine under other limits."""
    calibrated: bool
    label: Text
    missed: Missed | None = field(default=None, metadata=OMIT_IF_NONE)
    prices: PricesReport | None = field(default=None, metadata=OMIT_IF_NONE)
    """The chosen prices; only if the user chose some."""
    training: TargetRow | None = field(default=None, metadata=OMIT_IF_NONE)
    """The choice's training until it is done; only if its iterations are asked for."""
    energy: EnergyReport | None = field(default=None, metadata=OMIT_IF_NONE)
    """The choice's energy and what its electricity costs; only if asked for."""

    @property
    def rows(self) -> tuple[PointReport, ...]:
        """The choice, the runner-up and the front, each once, the fastest first."""
        others = () if self.runner_up is None else (self.runner_up.point,)
        by_name = {other.name: other for other in (*others, self.choice, *self.front)}
        return tuple(sorted(by_name.values(), key=lambda item: (item.seconds, item.name)))

    def payload(self) -> dict[str, Any]:
        """As plain data."""
        return {"schema": RECOMMEND} | by_field(self)
