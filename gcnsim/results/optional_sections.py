"""Parts of only some answers: without faults, other seeds, measured times, time to an accuracy."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from gcnsim.core.shapes import (
    OMIT_IF_NONE,
    SINCE,
    Amount,
    Count,
    Currency,
    OneOrMore,
    Positive,
    SamplingRate,
    SentShare,
    Share,
    Staleness,
    Text,
    Within,
)
from gcnsim.hardware import PRICINGS
from gcnsim.results.provenance import Assumed


@dataclass(frozen=True, slots=True)
class FaultFree:
    """The recommended setting without the injected faults."""

    iteration_s: Positive
    """Seconds per iteration."""
    times: Positive
    """Time of the recommended setting with the faults, divided by the time without."""


@dataclass(frozen=True, slots=True)
class PartitionSeeds:
    """The recommended setting's iteration under several seeds of the partitioner."""

    seeds: tuple[Count, ...]
    iteration_s: tuple[Positive, ...]
    mean_s: Positive
    low_s: Positive
    high_s: Positive
    best: Count
    """The seed with the shortest iteration."""
    numbered_low_s: Positive | None = None
    """The scenario's own partition, with its parts numbered anew: the fastest of many numberings; null where the
    numbers do not matter or are given."""
    numbered_high_s: Positive | None = None
    placed_s: Positive | None = None
    """The same with `partition.placement: balanced`."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """The value that a single assumption would need."""

    name: Text
    value: Text


@dataclass(frozen=True, slots=True)
class Differs:
    """How a measured run differs from its row."""

    field: Text
    measured: Text
    asked: Text

    def __str__(self) -> str:
        """For example `device t4, not a100-40`."""
        return f"{self.field} {self.measured}, not {self.asked}"


@dataclass(frozen=True, slots=True)
class Suspect:
    """A possible cause of the difference between measured and predicted time."""

    name: Text
    """An assumption."""
    reaches: Positive
    """Time divided by the predicted one, at the nearer end of the assumption's range."""


@dataclass(frozen=True, slots=True)
class TimeAgain:
    """A row's iteration under the draws that agree with the measurement."""

    iteration_s: Positive
    iteration_s_low: Positive | None
    """Low end of the 90 % interval. Null in older answers of CPU cores."""
    iteration_s_high: Positive | None
    """High end of the interval."""


@dataclass(frozen=True, slots=True)
class MeasuredReport:
    """A measured iteration and its prediction."""

    row: Count
    """Its place in results."""
    setting: Text
    measured_s: Positive
    predicted_s: Positive
    ratio: Positive
    """Measured time divided by predicted time."""
    consistent: bool | None
    """Whether the assumptions allow the measured time. Null in older answers of CPU cores."""
    explanations: tuple[Explanation, ...]
    """The value that each single assumption would need, the smallest change first."""
    rows: tuple[TimeAgain, ...] | None
    """Every row predicted again, under the draws that agree with the measured time; null if none agrees."""
    text: Text
    differs: tuple[Differs, ...] = ()
    """How the measured run differs from the row; its time then says nothing about the row."""
    suspects: tuple[Suspect, ...] = ()
    """If the assumptions do not allow the time: the likeliest cause, if any; earlier answers have up to three."""


@dataclass(frozen=True, slots=True)
class FailuresReport:
    """A training with failures, and checkpoints as often as is best: means, by Daly (2006). Null: it practically never
    ends."""

    checkpoint_every_s: Positive | None
    """Seconds of training between checkpoints; null: it is done soonest without a checkpoint."""
    seconds: Amount | None
    """Until done, with checkpoints, lost work and restarts."""
    seconds_low: Amount | None
    seconds_high: Amount | None
    failures: Amount | None
    """Expected failures and interruptions until done."""
    cost: Amount | None
    """In US dollars; null also if no price is known."""
    saved: bool | None = field(default=None, metadata=OMIT_IF_NONE)
    """True: interruptions lose no work, because a checkpoint fits into their notice."""


@dataclass(frozen=True, slots=True)
class OtherPricing:
    """The same training at the other of two prices, on demand or spot, with failures but without interruptions."""

    pricing: Annotated[str, Within(enum=PRICINGS)]
    seconds: Amount
    """Until done."""
    cost: Amount
    """In US dollars."""
    break_even_per_hour: Amount | None
    """Interruptions of a spot server per hour below which spot costs less; null: it never does."""


@dataclass(frozen=True, slots=True)
class RecordedCurve:
    """The evaluations of a recorded run of a row's method, knobs, graph and model."""

    run: Text
    iterations: tuple[OneOrMore, ...]
    """Done at each evaluation."""
    accuracy: tuple[Share, ...]
    """On validation nodes."""


@dataclass(frozen=True, slots=True)
class TargetRow:
    """Iterations, seconds and costs of one row until its training is done; null if unknown, and source says why."""

    method: Text
    tau: Staleness
    epsilon: SamplingRate
    rate: SentShare
    gpus: OneOrMore
    iterations: OneOrMore | None
    """According to the recorded runs, or as given; null: unknown, source says why."""
    seconds: Amount | None
    seconds_low: Amount | None
    seconds_high: Amount | None
    source: Text
    cost: Amount | None = field(default=None, metadata=SINCE)
    """In the currency; null if no price is known."""
    currency: Currency | None = field(default=None, metadata=SINCE)
    failures: FailuresReport | None = field(default=None, metadata=OMIT_IF_NONE)
    other_pricing: OtherPricing | None = field(default=None, metadata=OMIT_IF_NONE)
    one_price: bool | None = field(default=None, metadata=OMIT_IF_NONE)
    """True: on demand and spot are not compared, because both have the same price."""
    curves: tuple[RecordedCurve, ...] | None = field(default=None, metadata=OMIT_IF_NONE)
    """Of the recorded runs that tell of this row."""


@dataclass(frozen=True, slots=True)
class EnergyRow:
    """Power and energy of a row at the machine, without its building; null if unknown. Intervals: 90 %."""

    unknown: Text | None = None
    """Why the power is unknown; null if it is known."""
    watts: Amount | None = None
    """Mean power."""
    joules: Amount | None = None
    """Energy of an iteration."""
    joules_low: Amount | None = None
    joules_high: Amount | None = None
    kwh: Amount | None = None
    """Until the training is done, with failures where they are asked for; null also if that is not asked, or
    practically never."""
    kwh_low: Amount | None = None
    kwh_high: Amount | None = None
    """Null also where the training practically never ends at this end."""
    cost: Amount | None = None
    """Of these kWh, in US dollars."""
    cost_per_1000_iterations: Amount | None = None


@dataclass(frozen=True, slots=True)
class EnergyReport:
    """Energy of every row, and what its electricity costs."""

    rows: tuple[EnergyRow, ...]
    """One entry for each row of results; of a recommendation the choice alone."""
    currency: Currency
    assumptions: tuple[Assumed, ...]
    """Behind the power; beyond those of the time."""
    recommended: EnergyRow | None = field(default=None, metadata=OMIT_IF_NONE)
    """Of the recommended setting, if it is none of these rows."""


@dataclass(frozen=True, slots=True)
class PricesReport:
    """The prices behind the costs, if the user chose them."""

    pricing: Annotated[str, Within(enum=PRICINGS)]
    currency: Currency
    """USD; earlier versions could convert."""


@dataclass(frozen=True, slots=True)
class TargetReport:
    """Time until the training is done, of every row."""

    accuracy: Share | None
    """The validation accuracy to reach; null: the iterations are given."""
    runs: tuple[Text, ...]
    """The recorded runs used."""
    rows: tuple[TargetRow, ...]
    """One entry for each row of results."""
    recommended: TargetRow | None = field(default=None, metadata=OMIT_IF_NONE)
    """Of the recommended setting, if it is none of these rows."""

    @property
    def known(self) -> bool:
        """Whether the time of any row is known."""
        return any(row is not None and row.seconds is not None for row in (*self.rows, self.recommended))
