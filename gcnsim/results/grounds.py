"""What an answer rests on: where its numbers come from, what was assumed, and what that does to the answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gcnsim.ids import Seconds
from gcnsim.results.plain import ONLY_IF_SAID


@dataclass(frozen=True, slots=True)
class Assumed:
    """A number that is assumed, and the ends of its range, with units. in_interval: whether intervals cover it."""

    name: str
    value: str
    low: str
    high: str
    basis: str
    in_interval: bool


@dataclass(frozen=True, slots=True)
class Bounds:
    """The analytic bounds of a row's long-run mean iteration."""

    lower_s: Seconds
    upper_s: Seconds


@dataclass(frozen=True, slots=True)
class MaxWait:
    """The time after which no further joint draw of the assumptions was simulated. draws: of each setting whose draws
    are simulated, how many were; wanted: how many are without a limit."""

    max_wait_s: Seconds
    draws: int
    wanted: int

    @property
    def complete(self) -> bool:
        """Whether the limit left out no draw."""
        return self.draws == self.wanted


@dataclass(frozen=True, slots=True)
class Unlike:
    """In what a question is unlike most measured rows, and how many of those counted have it all the same."""

    what: str
    rows: int


@dataclass(frozen=True, slots=True)
class LikeQuestions:
    """How far off settings were that are like the recommended one: times that others measured on GPUs, predicted
    without fitted figures. median_error: of the absolute relative errors; inside: share of the times in their range;
    both None of too few rows. alike: what all these rows have of the question.
    """

    rows: int
    median_error: float | None
    inside: float | None
    alike: tuple[str, ...]
    unlike: tuple[Unlike, ...]
    text: str


@dataclass(frozen=True, slots=True)
class MeasuredTimes:
    """Compute times that somebody measured, in the place of the cost laws'. relative_error: half the 90 % interval of a
    mean over that mean, of the least exactly known; interpolated: the settings whose rate lies between measured ones.
    links: what network and messages are, in words.
    """

    file: str
    sha256: str
    device: str
    relative_error: float
    interpolated: tuple[str, ...]
    links: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """Where the numbers of an answer come from, in words. graph: its kind and text, and hash or citations; interval:
    what the intervals cover; measured: figures that somebody measured; calibration: what figures were fitted to;
    between_gpus: NVLink and transport, as the heading says them; between_gpus_basis: where that comes from;
    mini_batches: who draws them on GPUs, and where their rows lie, by method; like_questions: of GPUs, where nothing is
    fitted; measured_compute: times in the place of the cost laws';
    bounds: of each row; max_wait: where draws were limited. Older files lack model, measured and bounds.
    """

    graph: Mapping[str, Any]
    model: str = ""
    device: str
    interval: str
    assumptions: tuple[Assumed, ...]
    measured: tuple[str, ...] = ()
    calibration: str
    engine: str
    version: str
    seed: int
    scenario_hash: str
    bounds: tuple[Bounds, ...] = ()
    warnings: tuple[str, ...]
    given_figures: str | None = field(default=None, metadata=ONLY_IF_SAID)
    faults: str | None = field(default=None, metadata=ONLY_IF_SAID)
    between_gpus: str | None = field(default=None, metadata=ONLY_IF_SAID)
    between_gpus_basis: str | None = field(default=None, metadata=ONLY_IF_SAID)
    mini_batches: str | None = field(default=None, metadata=ONLY_IF_SAID)
    like_questions: LikeQuestions | None = field(default=None, metadata=ONLY_IF_SAID)
    measured_compute: MeasuredTimes | None = field(default=None, metadata=ONLY_IF_SAID)
    question_hash: str | None = field(default=None, metadata=ONLY_IF_SAID)
    max_wait: MaxWait | None = field(default=None, metadata=ONLY_IF_SAID)


@dataclass(frozen=True, slots=True)
class AssumptionEffect:
    """An assumption, and seconds of the recommended setting's iteration with it alone at its low and at its high end.

    share: of the squared spreads of all assumptions.
    """

    name: str
    value: str
    low: str
    high: str
    basis: str
    iteration_s_low: Seconds
    iteration_s_high: Seconds
    share: float


@dataclass(frozen=True, slots=True)
class Certainty:
    """How sure an answer is. draws: of the assumptions, jointly; simulated: the settings of which they were simulated,
    the recommended one first, none where they are estimated of all; method: what is done with them; assumptions: those
    that matter most first; measure_first: the figure to measure first, and how.
    """

    calibrated: bool
    label: str
    draws: int
    simulated: tuple[str, ...]
    method: str
    assumptions: tuple[AssumptionEffect, ...]
    measure_first: str | None = field(default=None, metadata=ONLY_IF_SAID)
