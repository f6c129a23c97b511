"""What only some questions ask: faults left out, other seeds, measured times, time until an accuracy is reached."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from gcnsim.hardware import PRICINGS
from gcnsim.shapes import (
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


@dataclass(frozen=True, slots=True)
class FaultFree:
    """The recommended setting without the injected faults."""

    iteration_s: Positive
    """Seconds per iteration."""
    times: Positive
    """The recommended setting's time with the faults over that without."""


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


@dataclass(frozen=True, slots=True)
class Explanation:
    """What one assumption alone would have to be."""

    name: Text
    value: Text


@dataclass(frozen=True, slots=True)
class Differs:
    """In what a measured run is another than the row that it is given to."""

    field: Text
    measured: Text
    asked: Text

    def __str__(self) -> str:
        """For example `device t4, not a100-40`."""
        return f"{self.field} {self.measured}, not {self.asked}"


@dataclass(frozen=True, slots=True)
class Suspect:
    """What may make a measured time differ from the predicted one."""

    name: Text
    """An assumption, or a part of the iteration."""
    reaches: Positive
    """Time over the predicted one at the assumption's nearer end; of a part of the iteration, with that part as
    measured."""
    measure: Text
    """What to measure next, in words."""


@dataclass(frozen=True, slots=True)
class TimeAgain:
    """A row's iteration under the draws that agree with what was measured."""

    iteration_s: Positive
    iteration_s_low: Positive | None
    """Low end of its 90 % interval. Null of CPU cores without a calibration."""
    iteration_s_high: Positive | None
    """High end of it."""


@dataclass(frozen=True, slots=True)
class MeasuredReport:
    """A measured iteration beside the predicted one."""

    row: Count
    """Its place in results."""
    setting: Text
    measured_s: Positive
    predicted_s: Positive
    ratio: Positive
    """Measured over predicted."""
    consistent: bool | None
    """Whether the assumptions allow the measured time. Null of CPU cores without a calibration."""
    explanations: tuple[Explanation, ...]
    """What each assumption alone would have to be, those least far from their values first."""
    rows: tuple[TimeAgain, ...] | None
    """Each of results again, under the draws that agree with the measured time; null where none do."""
    text: Text
    differs: tuple[Differs, ...] = ()
    """In what the measured run is another than the row; then nothing follows from its time."""
    suspects: tuple[Suspect, ...] = ()
    """Where the assumptions do not allow the time: what may be wrong, the likeliest first."""


@dataclass(frozen=True, slots=True)
class TargetRow:
    """Iterations, seconds and costs of one row until an accuracy is reached; null where not known, of which source says
    why."""

    method: Text
    tau: Staleness
    epsilon: SamplingRate
    rate: SentShare
    gpus: OneOrMore
    iterations: OneOrMore | None
    """Of the recorded runs; null: not known, source says why."""
    seconds: Amount | None
    seconds_low: Amount | None
    seconds_high: Amount | None
    usd: Amount | None
    """On the cheapest rented devices of the catalogue; null where nobody rents them out."""
    source: Text
    cost: Amount | None = field(default=None, metadata=SINCE)
    """The same in the currency asked for."""
    currency: Currency | None = field(default=None, metadata=SINCE)


@dataclass(frozen=True, slots=True)
class PricesReport:
    """By which prices costs are, where somebody chose them."""

    pricing: Annotated[str, Within(enum=PRICINGS)]
    currency: Currency
    per_usd: Positive
    """Units of the currency for one US dollar."""
    exchange: str
    """Who says what a currency is worth; empty of US dollars."""


@dataclass(frozen=True, slots=True)
class TargetReport:
    """Time until a validation accuracy is reached, of every row."""

    accuracy: Share
    runs: tuple[Text, ...]
    """Those that may tell."""
    rows: tuple[TargetRow, ...]
    """One for each of results."""
