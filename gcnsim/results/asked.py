"""What only some questions ask: faults left out, other seeds, measured times, time until an accuracy is reached."""

from __future__ import annotations

from dataclasses import dataclass

from gcnsim.ids import Iteration, Seconds


@dataclass(frozen=True, slots=True)
class FaultFree:
    """The recommended setting without the injected faults. times: its time with them over that without."""

    iteration_s: Seconds
    times: float


@dataclass(frozen=True, slots=True)
class PartitionSeeds:
    """The recommended setting's iteration under several seeds of the partitioner. best: the seed of the shortest."""

    seeds: tuple[int, ...]
    iteration_s: tuple[Seconds, ...]
    mean_s: Seconds
    low_s: Seconds
    high_s: Seconds
    best: int


@dataclass(frozen=True, slots=True)
class Explanation:
    """What one assumption alone would have to be."""

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class Differs:
    """In what a measured run is another than the row that it is given to."""

    field: str
    measured: str
    asked: str

    def __str__(self) -> str:
        """For example `device t4, not a100-40`."""
        return f"{self.field} {self.measured}, not {self.asked}"


@dataclass(frozen=True, slots=True)
class Suspect:
    """What may make a measured time differ from the predicted one.

    name: an assumption, or a part of the iteration. reaches: the time over the predicted one at the assumption's
    nearer end; of a part of the iteration, with that part as measured. measure: what to measure next, in words.
    """

    name: str
    reaches: float
    measure: str


@dataclass(frozen=True, slots=True)
class TimeAgain:
    """A row's iteration under the draws that agree with what was measured, and its 90 % interval; None without one."""

    iteration_s: Seconds
    iteration_s_low: Seconds | None
    iteration_s_high: Seconds | None


@dataclass(frozen=True, slots=True)
class MeasuredReport:
    """A measured iteration beside the predicted one. row: its place among the rows; setting: it in words; ratio:
    measured over predicted. consistent: whether the assumptions allow it, None where no error is known; explanations:
    those least far from their values first. rows: all rows again, None where no draws agree. differs: in what the
    measured run is another than the row; then nothing follows from its time. suspects: where the assumptions do not
    allow the time, the likeliest first.
    """

    row: int
    setting: str
    measured_s: Seconds
    predicted_s: Seconds
    ratio: float
    consistent: bool | None
    explanations: tuple[Explanation, ...]
    rows: tuple[TimeAgain, ...] | None
    text: str
    differs: tuple[Differs, ...] = ()
    suspects: tuple[Suspect, ...] = ()


@dataclass(frozen=True, slots=True)
class TargetRow:
    """Iterations, seconds with their interval, and US dollars until an accuracy is reached; None where not known, of
    which source says why. cost: the same in the currency asked for.
    """

    method: str
    tau: int
    epsilon: float
    rate: float
    gpus: int
    iterations: Iteration | None
    seconds: Seconds | None
    seconds_low: Seconds | None
    seconds_high: Seconds | None
    usd: float | None
    source: str
    cost: float | None = None
    currency: str | None = None


@dataclass(frozen=True, slots=True)
class PricesReport:
    """By which prices costs are, where somebody chose them. exchange: who says what a currency is worth, "" of US
    dollars."""

    pricing: str
    currency: str
    per_usd: float
    exchange: str


@dataclass(frozen=True, slots=True)
class TargetReport:
    """Time until a validation accuracy (share of one) is reached, of every row. runs: those that may tell."""

    accuracy: float
    runs: tuple[str, ...]
    rows: tuple[TargetRow, ...]
