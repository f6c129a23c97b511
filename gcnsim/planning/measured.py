"""A measured iteration beside the predicted one: whether the assumptions allow it, which of them would explain it, and
what it makes of the other rows.

A recorded run is first compared with its row: nothing follows from the time of another graph, model, device, number of
workers or partition.

Where some joint draws of the assumptions give the measured time, these draws are what is left of the uncertainty: every
draw is weighted by how well it agrees (a normal distribution of the logarithm around the measured time), and all rows
are given again under these weights. So one measured setting calibrates the others as far as they share what is unknown.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from gcnsim.diagnosis import impossible
from gcnsim.errors import ScenarioError, UnitError
from gcnsim.ids import FloatArray, Seconds
from gcnsim.machine import resolve_machine
from gcnsim.methods import is_method, method_type
from gcnsim.planning.candidate import INTERVAL, Candidate
from gcnsim.planning.study_cache import StudyCache
from gcnsim.planning.suspects import suspects
from gcnsim.results import MEASURE_CORES, NO_RANGE, Differs, Explanation, MeasuredReport, TimeAgain
from gcnsim.scenario import figure_text, setting_text
from gcnsim.sources import RangeEnd, resolve_model
from gcnsim.uncertainty import Assumption, assumptions_of
from gcnsim.units import SECONDS, format_seconds

if TYPE_CHECKING:
    from gcnsim.runs.measured import Measured

OPTION: Final = "--measured"

PRECISION: Final = 0.02
"""How far the time of a draw may be from what is measured, as a standard deviation: the simulation's own error."""

FEW: Final = 4.0
"""Draws that must agree, at least, by their weights: with fewer the rest is a guess."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """A measured time of an iteration.

    method: whose it is; None: of the only row. spread: relative standard error. run: the recorded run or trace that has
    it; None for a time as typed.
    """

    text: str
    method: str | None
    seconds: Seconds
    spread: float = 0.0
    run: Measured | None = field(default=None, compare=False)


def read_measurement(text: str) -> Measurement:
    """`640ms`, a recorded run or a profiler's trace by path, each also as `METHOD=...`.

    Raises ScenarioError or UnitError naming the option, FileError for a run that cannot be read.
    """
    method, equals, value = text.partition("=")
    if not equals or not is_method(method.strip()):
        method, value = "", text
    name, value = method_type(method.strip()).name if method else None, value.strip()
    if os.path.exists(value):
        from gcnsim.runs.measured import read_measured  # SciPy, which few questions need

        found = read_measured(value)
        return Measurement(text, name, found.iteration_s, found.error_s / found.iteration_s, found)
    try:
        seconds = SECONDS.parse(value)
    except UnitError as error:
        raise UnitError(f"{OPTION}: {error}; or the path of a recorded run or trace") from None
    if not 0 < seconds < float("inf"):
        raise ScenarioError(f"{OPTION}: {value} is not allowed; a time above 0")
    return Measurement(text, name, seconds)


def beside_measured(
    studies: StudyCache, measured: Sequence[Measurement], rows: Sequence[Candidate]
) -> list[MeasuredReport]:
    """Each measurement beside its row. Raises ScenarioError where its row cannot be found."""
    return [_beside(studies, each, _row_of(each, rows), rows) for each in measured]


def _row_of(measured: Measurement, rows: Sequence[Candidate]) -> int:
    places = [place for place, each in enumerate(rows) if measured.method in (None, each.scenario.method.name)]
    if len(places) == 1:
        return places[0]
    whose = "any row" if measured.method is None else measured.method
    hint = "ask for one setting" if measured.method else "write METHOD=TIME, or ask for one setting"
    if not places:
        raise ScenarioError(f"{OPTION}: {measured.text} is of {whose}, which was not asked for")
    raise ScenarioError(f"{OPTION}: {measured.text} could be any of {len(places)} rows; {hint}")


def _beside(studies: StudyCache, measured: Measurement, place: int, rows: Sequence[Candidate]) -> MeasuredReport:
    row = rows[place]
    differs = _differs(studies, measured, row)
    if differs:
        return _incomparable(measured, place, row, differs)
    ratio = measured.seconds / row.iteration_s
    weights = _weights(row.times, measured)
    enough = float(weights.sum()) > 0 and float(weights.sum() ** 2 / (weights**2).sum()) >= FEW
    agree = enough if row.ranged else None
    least, most = float(row.times.min()), float(row.times.max())
    wrong = impossible(row.result, measured.seconds, _least_rows(studies, row))
    if wrong is not None:
        text = f"{setting_text(row.scenario.method)}: {measured.text} is {wrong}; check bandwidth, servers and method"
        return MeasuredReport(
            place, setting_text(row.scenario.method), measured.seconds, row.iteration_s, ratio, False, (), None, text
        )
    told = MeasuredReport(
        row=place,
        setting=setting_text(row.scenario.method),
        measured_s=measured.seconds,
        predicted_s=row.iteration_s,
        ratio=ratio,
        consistent=agree,
        explanations=() if agree is None else _explanations(studies, row, ratio),
        suspects=() if agree is not False else suspects(studies, row, measured.seconds, measured.run),
        rows=tuple(_again(each, weights) for each in rows) if agree else None,
        text="",
    )
    return replace(told, text=_text(told, least, most))


def _least_rows(studies: StudyCache, row: Candidate) -> float:
    """Rows that travel where the workload leaves fewest, over the likely ones; 1 where it leaves nothing open."""
    if RangeEnd.LOW not in studies.accesses.corners:
        return 1.0
    features = resolve_model(row.scenario.workload, studies.accesses.declared).features
    counts = (studies.accesses.counts(row.scenario, features, end) for end in (RangeEnd.LOW, RangeEnd.LIKELY))
    least, likely = (float(each.rows.mean(axis=0).sum()) for each in counts)
    return min(1.0, least / likely) if likely else 1.0


def _differs(studies: StudyCache, measured: Measurement, row: Candidate) -> tuple[Differs, ...]:
    if measured.run is None:
        return ()
    from gcnsim.planning.measured_setting import differences

    return differences(measured.run, studies, row)


def _incomparable(measured: Measurement, place: int, row: Candidate, differs: tuple[Differs, ...]) -> MeasuredReport:
    """The report of a run of another question than its row's."""
    setting = setting_text(row.scenario.method)
    text = (
        f"{setting}: {measured.text} ran in {format_seconds(measured.seconds)}, but it is another question: "
        f"{'; '.join(map(str, differs))}. Ask for what was measured, or compare it by gcnsim validate"
    )
    ratio = measured.seconds / row.iteration_s
    return MeasuredReport(
        place, setting, measured.seconds, row.iteration_s, ratio, False, (), None, text, differs=differs
    )


def _weights(times: FloatArray, measured: Measurement) -> FloatArray:
    apart = np.log(times / measured.seconds) / np.hypot(PRECISION, measured.spread)
    return np.asarray(np.where(np.abs(apart) < 5.0, np.exp(-0.5 * apart**2), 0.0))


def _again(row: Candidate, weights: FloatArray) -> TimeAgain:
    """A row's time under the weights: the weighted mean and 90 % interval; as predicted where draws say nothing."""
    if not row.ranged:
        return TimeAgain(row.iteration_s, None, None)
    order = np.argsort(row.times)
    share = np.cumsum(weights[order]) / weights.sum()
    low, high = (float(row.times[order][min(np.searchsorted(share, end), share.size - 1)]) for end in INTERVAL)
    mean = float((row.times * weights).sum() / weights.sum())
    return TimeAgain(mean, min(low, mean), max(high, mean))


def _explanations(studies: StudyCache, row: Candidate, ratio: float) -> tuple[Explanation, ...]:
    """What each assumption alone would have to be for the measured time, those least far from their values first."""
    scenario = row.scenario
    machine = resolve_machine(scenario.cluster)
    known = {each.name: each for each in assumptions_of(machine, batches=scenario.method.mini_batches)}
    found = []
    left_open = studies.factors(scenario)
    for name, ends in left_open.alone.items():
        low, high = left_open.scaled(row.iteration_s, np.array(ends)) / row.iteration_s
        position = _position((float(low), float(high)), ratio)
        if position is not None:
            found.append((abs(position), name, _would_be(name, known, position)))
    return tuple(each for _, _, each in sorted(found, key=lambda item: item[:2]))


def _position(ends: tuple[float, float], ratio: float) -> float | None:
    """Where in its range, from -1 to 1, an assumption gives `ratio` times the time; None: nowhere."""
    for side, end in zip((-1.0, 1.0), ends, strict=True):
        if abs(np.log(end)) > 1e-6 and np.log(ratio) / np.log(end) >= 0:
            position = float(np.log(ratio) / np.log(end))
            if position <= 1.0:
                return side * position
    return None


def _would_be(name: str, known: Mapping[str, Assumption], position: float) -> Explanation:
    if name not in known:
        side = "low" if position < 0 else "high"
        return Explanation(name, f"{100 * abs(position):.0f} % of the way to its {side} end")
    each = known[name]
    value = float(f"{float(each.at(np.array(position))):.3g}")
    return Explanation(name, figure_text(name, value))


def _text(told: MeasuredReport, least: Seconds, most: Seconds) -> str:
    measured, predicted = format_seconds(told.measured_s), format_seconds(told.predicted_s)
    head = f"{told.setting}: measured {measured}, predicted {predicted}"
    reach = f"{format_seconds(least)} to {format_seconds(most)}"
    if told.consistent is None:
        return f"{head}; how far {NO_RANGE} may be off is not known; {MEASURE_CORES}"
    if not told.consistent and least <= told.measured_s <= most:
        return f"{head}; hardly any draw of the assumptions gives that (they reach from {reach}){_next(told)}"
    if not told.consistent:
        return (
            f"{head}; the assumptions allow {reach}: the time depends on something that is not modelled, or the "
            f"cluster is not as described{_next(told)}"
        )
    if not told.explanations:
        return f"{head}; several assumptions together explain it, none alone"
    ways = " or ".join(f"{each.name} {each.value}" for each in told.explanations[:2])
    return f"{head}; one assumption alone would explain it: {ways}"


def _next(told: MeasuredReport) -> str:
    """What to measure next, most promising first; nothing where nothing is suspected."""
    if not told.suspects:
        return ""
    found = (f"{place}. {each.name} ({each.measure})" for place, each in enumerate(told.suspects, 1))
    return f". Measure next: {'; '.join(found)}"
