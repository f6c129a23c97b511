"""What a recommendation found, in the shape of the JSON schema `gcnsim.recommend/1`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from gcnsim.ids import Iteration, Seconds
from gcnsim.results.asked import PricesReport
from gcnsim.results.grounds import AssumptionEffect, Provenance
from gcnsim.results.plain import ONLY_IF_SAID, by_field
from gcnsim.results.row import Row

RECOMMEND: Final = "gcnsim.recommend/1"


@dataclass(frozen=True, slots=True)
class GoalReport:
    """What was to be least, and the limits; None where there is none. Costs are in `currency`."""

    text: str
    minimise: str
    currency: str
    iteration_s: Seconds | None = None
    epoch_s: Seconds | None = None
    training_s: Seconds | None = None
    per_hour: float | None = None
    most_cost: float | None = None


@dataclass(frozen=True, slots=True)
class PointReport:
    """A setting on a machine. name: both in words. servers: how many of `host`, None of no instance type.

    seconds, cost: of `iterations`, with the 90 % interval of the joint draws; cost None where no price is known.
    meets_share: of the draws, those in which it is within every limit. on_front: whether nothing beats it at the stated
    values; beaten_share: of the draws in which what beats it most often does.
    """

    name: str
    machine: str
    host: str | None
    servers: int
    iterations: Iteration
    seconds: Seconds
    seconds_low: Seconds
    seconds_high: Seconds
    cost: float | None
    cost_low: float | None
    cost_high: float | None
    meets: bool
    meets_share: float
    row: Row
    on_front: bool = True
    beaten_share: float = 0.0


@dataclass(frozen=True, slots=True)
class RunnerUp:
    """The second best. faster_share, cheaper_share: of the joint draws, those in which it is so."""

    point: PointReport
    why: str
    faster_share: float
    cheaper_share: float


@dataclass(frozen=True, slots=True)
class SearchReport:
    """Settings considered, and what became of them (`gcnsim.capacity.search.Search`). sampled: whether only some of a
    larger grid were considered."""

    settings: int
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
class Relaxed:
    """What would be chosen on the same machine if more approximation were allowed. option: what allows it; shorter_low,
    shorter_high: share of the choice's time that it saves, 90 % of the paired draws."""

    option: str
    name: str
    seconds: Seconds
    cost: float | None
    shorter: float
    shorter_low: float
    shorter_high: float
    meets: bool


@dataclass(frozen=True, slots=True)
class Change:
    """A single change of the closest setting. meets: whether every limit is then kept; excess: the largest limited
    amount over its limit."""

    knob: str
    start: int | float | str
    end: int | float | str
    iteration_s: Seconds
    meets: bool
    excess: float


@dataclass(frozen=True, slots=True)
class Missed:
    """Of a goal that nothing meets: how close the closest setting comes, and what single changes of it bring.

    excess: the largest limited amount over its limit; None where the GPUs hold no setting.
    """

    text: str
    excess: float | None
    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True)
class Held:
    """How approximate a setting may be, as a clause, and what allowing more would bring."""

    text: str
    least_epsilon: float
    most_tau: int
    relaxed: tuple[Relaxed, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """All that a recommendation found. choice: the best that meets the goal, or, where nothing does (`missed`), what
    comes closest. compared: what seconds and costs are of (an iteration, an epoch, a training)."""

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
    held: Held
    calibrated: bool
    label: str
    missed: Missed | None = field(default=None, metadata=ONLY_IF_SAID)
    prices: PricesReport | None = field(default=None, metadata=ONLY_IF_SAID)

    def payload(self) -> dict[str, Any]:
        """As plain data."""
        return {"schema": RECOMMEND} | by_field(self)
