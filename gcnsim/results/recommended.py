"""What a recommendation found, in the shape of the JSON schema `gcnsim.recommend/1`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from gcnsim.ids import Iteration, Seconds
from gcnsim.results.advice import RuleReport
from gcnsim.results.asked import PricesReport
from gcnsim.results.grounds import AssumptionEffect, Provenance
from gcnsim.results.plain import ONLY_IF_SAID, by_field
from gcnsim.results.row import Row

RECOMMEND: Final = "gcnsim.recommend/1"


@dataclass(frozen=True, slots=True)
class BudgetReport:
    """A budget: at most `amount` a `period` (hour, day, month or year), of hours_per_day hours of use a day."""

    amount: float
    period: str
    hours_per_day: float


@dataclass(frozen=True, slots=True)
class GoalReport:
    """What was to be least, and the limits; None where there is none. Costs are in `currency`.

    confidence: the chance of meeting them that was asked for. budget: what per_hour is of.
    """

    text: str
    minimise: str
    currency: str
    iteration_s: Seconds | None = None
    epoch_s: Seconds | None = None
    training_s: Seconds | None = None
    per_hour: float | None = None
    most_cost: float | None = None
    confidence: float = 0.9
    budget: BudgetReport | None = field(default=None, metadata=ONLY_IF_SAID)


@dataclass(frozen=True, slots=True)
class PointReport:
    """A setting on a machine. name: both in words. servers: how many of `host`, None of no instance type.

    seconds, cost: of `iterations`, with the 90 % interval of the joint draws; cost None where no price is known.
    meets: whether the chance of being within every limit is at least the one asked for; chance: the share of the draws
    in which it is. on_front: whether nothing beats it at the stated values; beaten_share: of the draws in which what
    beats it most often does. Of CPU cores without a calibration intervals and chance are None, and it meets a limit
    where it is within it at the stated values.
    """

    name: str
    machine: str
    host: str | None
    servers: int
    iterations: Iteration
    seconds: Seconds
    seconds_low: Seconds | None
    seconds_high: Seconds | None
    cost: float | None
    cost_low: float | None
    cost_high: float | None
    meets: bool
    chance: float | None
    row: Row
    on_front: bool = True
    beaten_share: float = 0.0


@dataclass(frozen=True, slots=True)
class RunnerUp:
    """The second best. faster_share, cheaper_share: of the joint draws, those in which it is so; None where they do
    not say it."""

    point: PointReport
    why: str
    faster_share: float | None
    cheaper_share: float | None


@dataclass(frozen=True, slots=True)
class SearchReport:
    """Settings considered, and what became of them (`gcnsim.capacity.search.Search`). space: the machines in words.
    slower: those that another one of their machine beats by its estimate. grid: of how many they were picked."""

    space: str
    settings: int
    slower: int
    same: int
    refused: int
    too_large: int
    unpriced: int
    missed: int
    beaten: int
    simulated: int
    text: str
    grid: int | None = field(default=None, metadata=ONLY_IF_SAID)


@dataclass(frozen=True, slots=True)
class Confirmed:
    """An option run again by the reference engine. same: whether it gave the same picoseconds; None: not run."""

    name: str
    same: bool | None
    why: str


@dataclass(frozen=True, slots=True)
class KnobEffect:
    """A knob alone over the values that were asked for, from the choice: the least and the most that is compared."""

    knob: str
    value: str
    low: str
    high: str
    seconds_low: Seconds
    seconds_high: Seconds
    cost_low: float | None
    cost_high: float | None


@dataclass(frozen=True, slots=True)
class OtherRule:
    """What would be chosen on the same machine by another rule of what may be recommended. option: that rule.

    shorter, shorter_low, shorter_high: share of the choice's time that it saves (negative: it takes longer), 90 % of
    the paired draws. chance: of meeting the target; meets: whether that is enough. Of CPU cores without a calibration
    both ends and the chance are None.
    """

    option: str
    name: str
    seconds: Seconds
    cost: float | None
    shorter: float
    shorter_low: float | None
    shorter_high: float | None
    meets: bool
    chance: float | None


@dataclass(frozen=True, slots=True)
class Change:
    """A single change of the closest setting. chance: of being within every limit then; meets: whether that is enough;
    excess: the largest limited amount over its limit, at the stated values; None where it is not known."""

    knob: str
    start: int | float | str
    end: int | float | str
    iteration_s: Seconds
    meets: bool
    chance: float | None
    excess: float | None


@dataclass(frozen=True, slots=True)
class Missed:
    """Of a goal that nothing meets: how close the setting of the best chance comes, and what would raise the chance.

    excess: the largest limited amount over its limit; None where the GPUs hold no setting. raised: in words what would
    raise the chance. changes: single changes of the setting.
    """

    text: str
    raised: str
    excess: float | None
    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """All that a recommendation found. choice: the best that meets the goal, or, where nothing does (`missed`), what
    has the best chance. rule: what may be recommended. compared: what seconds and costs are of (an iteration, an epoch,
    a training)."""

    scenario: Mapping[str, Any]
    provenance: Provenance
    goal: GoalReport
    compared: str
    verdict: str
    choice: PointReport
    runner_up: RunnerUp | None
    front: tuple[PointReport, ...]
    limited_by: str
    search: SearchReport
    confirmed: tuple[Confirmed, ...]
    confirmation: str
    knobs: tuple[KnobEffect, ...]
    assumptions: tuple[AssumptionEffect, ...]
    decides: str
    rule: RuleReport
    other_rules: tuple[OtherRule, ...]
    calibrated: bool
    label: str
    missed: Missed | None = field(default=None, metadata=ONLY_IF_SAID)
    prices: PricesReport | None = field(default=None, metadata=ONLY_IF_SAID)

    @property
    def rows(self) -> tuple[PointReport, ...]:
        """The choice, the runner-up and the front, each once, the fastest first."""
        others = () if self.runner_up is None else (self.runner_up.point,)
        found = {each.name: each for each in (*others, self.choice, *self.front)}
        return tuple(sorted(found.values(), key=lambda each: (each.seconds, each.name)))

    def payload(self) -> dict[str, Any]:
        """As plain data."""
        return {"schema": RECOMMEND} | by_field(self)
