"""Compare a measured iteration with the predicted one: whether the assumptions allow it, which of them explain it, and
what it implies for the other rows.

A recorded run is first compared with the setting of its row: graph, model, device, number of workers and partition. If
they differ, nothing follows from its time.

If some joint draws of the assumptions give the measured time, these draws describe the remaining uncertainty. Every
draw is weighted by its agreement with the measured time (a normal distribution of the logarithm). All rows are then
recomputed with these weights. So one measured setting calibrates the others as far as they share unknown figures.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from gcnsim.core.errors import ScenarioError, UnitError
from gcnsim.core.ids import FloatArray, Seconds
from gcnsim.core.units import BANDWIDTH, SECONDS, format_seconds
from gcnsim.methods import is_method, method_type
from gcnsim.planning.candidate import INTERVAL, Candidate
from gcnsim.planning.certainty import assumptions_by_name, times_alone
from gcnsim.planning.study import Studies
from gcnsim.results import Differs, Explanation, MeasuredReport, Suspect, TimeAgain
from gcnsim.scenario import figure_text, setting_text
from gcnsim.scenario.machine import resolve_machine
from gcnsim.simulation.diagnosis import impossible
from gcnsim.simulation.source import RangeEnd

if TYPE_CHECKING:
    from gcnsim.records.recorded_run import Measured, RecordedRun

OPTION: Final = "--measured"

PRECISION: Final = 0.02
"""The error of a simulation, as the standard deviation of the agreement between a draw and a measurement."""

FEW: Final = 4.0
"""The least effective number of draws that must agree; fewer do not support a conclusion."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """A measured iteration time.

    method: the method it belongs to; None for the only row. spread: relative standard error. run: the recorded run or
    trace it comes from; None for a typed time.
    """

    text: str
    method: str | None
    seconds: Seconds
    spread: float = 0.0
    run: Measured | None = field(default=None, compare=False)


def read_measurement(text: str) -> Measurement:
    """Parse `640ms`, or the path of a recorded run or profiler trace; each may also be written `METHOD=...`.

    Raises ScenarioError or UnitError naming the option, FileError for an unreadable run.
    """
    method, equals, value = text.partition("=")
    if not equals or not is_method(method.strip()):
        method, value = "", text
    name, value = method_type(method.strip()).name if method else None, value.strip()
    if os.path.exists(value):
        from gcnsim.records.recorded_run import read_measured  # Importing SciPy is slow and few questions need it.

        measured = read_measured(value)
        return Measurement(text, name, measured.iteration_s, measured.error_s / measured.iteration_s, measured)
    try:
        seconds = SECONDS.parse(value)
    except UnitError as error:
        raise UnitError(f"{OPTION}: {error}; or the path of a recorded run or trace") from None
    if not 0 < seconds < float("inf"):
        raise ScenarioError(f"{OPTION}: {value} is not allowed; a time above 0")
    return Measurement(text, name, seconds)


def beside_measured(
    studies: Studies, measured: Sequence[Measurement], rows: Sequence[Candidate]
) -> list[MeasuredReport]:
    """Compare each measurement with its row. Raises ScenarioError if it has no row."""
    return [_beside(studies, measurement, _row_of(measurement, rows), rows) for measurement in measured]


def _row_of(measured: Measurement, rows: Sequence[Candidate]) -> int:
    places = [index for index, row in enumerate(rows) if measured.method in (None, row.scenario.method.name)]
    if len(places) == 1:
        return places[0]
    whose = "any row" if measured.method is None else measured.method
    hint = "ask for one setting" if measured.method else "write METHOD=TIME, or ask for one setting"
    if not places:
        raise ScenarioError(f"{OPTION}: {measured.text} is of {whose}, which was not asked for")
    raise ScenarioError(f"{OPTION}: {measured.text} could be any of {len(places)} rows; {hint}")


def _beside(studies: Studies, measured: Measurement, place: int, rows: Sequence[Candidate]) -> MeasuredReport:
    row = rows[place]
    setting, ratio = setting_text(row.scenario.method), measured.seconds / row.iteration_s
    report = MeasuredReport(place, setting, measured.seconds, row.iteration_s, ratio, False, (), None, text="")
    differs = () if measured.run is None else differences(measured.run, studies, row)
    if differs:
        text = (
            f"{setting}: {measured.text} ran in {format_seconds(measured.seconds)}, but it is another question: "
            f"{'; '.join(map(str, differs))}. Ask for what was measured, or compare it by gcnsim validate"
        )
        return replace(report, text=text, differs=differs)
    wrong = impossible(row.result, measured.seconds, _least_rows(studies, row))
    if wrong is not None:
        return replace(report, text=f"{setting}: {measured.text} is {wrong}; check bandwidth, servers and method")
    weights = _weights(row.times, measured)
    enough = float(weights.sum()) > 0 and float(weights.sum() ** 2 / (weights**2).sum()) >= FEW
    report = replace(
        report,
        consistent=enough,
        explanations=_explanations(studies, row, ratio),
        suspects=tuple(filter(None, [None if enough else suspect(studies, row, ratio)])),
        rows=tuple(_again(other, weights) for other in rows) if enough else None,
    )
    return replace(report, text=_text(report, float(row.times.min()), float(row.times.max())))


def _least_rows(studies: Studies, row: Candidate) -> float:
    """Return the ratio of the fewest feature rows sent under the workload's uncertainty to the likely number; 1 without
    uncertainty.
    """
    if RangeEnd.LOW not in studies.accesses.assumption_bounds:
        return 1.0
    counts = (studies.counts(row.scenario, end) for end in (RangeEnd.LOW, RangeEnd.LIKELY))
    least, likely = (float(count.rows.mean(axis=0).sum()) for count in counts)
    return min(1.0, least / likely) if likely else 1.0


def _weights(times: FloatArray, measured: Measurement) -> FloatArray:
    apart = np.log(times / measured.seconds) / np.hypot(PRECISION, measured.spread)
    return np.asarray(np.where(np.abs(apart) < 5.0, np.exp(-0.5 * apart**2), 0.0))


def _again(row: Candidate, weights: FloatArray) -> TimeAgain:
    """A row's time under the weights: the weighted mean and 90 % interval."""
    order = np.argsort(row.times)
    share = np.cumsum(weights[order]) / weights.sum()
    low, high = (float(row.times[order][min(np.searchsorted(share, end), share.size - 1)]) for end in INTERVAL)
    mean = float((row.times * weights).sum() / weights.sum())
    return TimeAgain(mean, min(low, mean), max(high, mean))


def _explanations(studies: Studies, row: Candidate, ratio: float) -> tuple[Explanation, ...]:
    """Return the value of each assumption that alone would explain the measured time, closest to its stated value
    first.
    """
    known, explanations = assumptions_by_name(row.scenario), []
    for name, times in times_alone(studies, row).items():
        low, high = times / row.iteration_s
        position = _position((float(low), float(high)), ratio)
        if position is None:
            continue
        words = f"{100 * abs(position):.0f} % of the way to its {'low' if position < 0 else 'high'} end"
        if name in known:
            words = figure_text(name, float(f"{float(known[name].at(np.array(position))):.3g}"))
        explanations.append((abs(position), name, Explanation(name, words)))
    return tuple(explanation for _, _, explanation in sorted(explanations, key=lambda item: item[:2]))


def _position(ends: tuple[float, float], ratio: float) -> float | None:
    """Return the position in its range, from -1 to 1, at which an assumption multiplies the time by `ratio`; None if
    nowhere.
    """
    for side, end in zip((-1.0, 1.0), ends, strict=True):
        if abs(np.log(end)) > 1e-6 and np.log(ratio) / np.log(end) >= 0:
            position = float(np.log(ratio) / np.log(end))
            if position <= 1.0:
                return side * position
    return None


def _text(report: MeasuredReport, least: Seconds, most: Seconds) -> str:
    measured, predicted = format_seconds(report.measured_s), format_seconds(report.predicted_s)
    head = f"{report.setting}: measured {measured}, predicted {predicted}"
    reach = f"{format_seconds(least)} to {format_seconds(most)}"
    if not report.consistent:
        why = (
            f"hardly any draw of the assumptions gives that (they reach from {reach})"
            if least <= report.measured_s <= most
            else f"the assumptions allow {reach}: the time depends on something that is not modelled, or the "
            "cluster is not as described"
        )
        return f"{head}; {why}" + "".join(f". First suspect: {one.name}" for one in report.suspects)
    if not report.explanations:
        return f"{head}; several assumptions together explain it, none alone"
    ways = " or ".join(f"{one.name} {one.value}" for one in report.explanations[:2])
    return f"{head}; one assumption alone would explain it: {ways}"


LEAST: Final = 0.02
"""The least change in time that makes a suspect."""


def suspect(studies: Studies, row: Candidate, ratio: float) -> Suspect | None:
    """The assumption that alone moves the time furthest towards the measured one, at its better end; None: none does.

    ratio: measured time over predicted time.
    """
    side = 1.0 if ratio > 1.0 else -1.0
    reaches = {
        name: float(times.max() if ratio > 1.0 else times.min()) / row.iteration_s
        for name, times in times_alone(studies, row).items()
    }
    first = max(reaches, key=lambda name: side * reaches[name], default=None)
    return None if first is None or side * (reaches[first] - 1.0) <= LEAST else Suspect(first, reaches[first])


WORDS: Final[Mapping[str, str]] = {
    "workload.model": "model",
    "workload.layers": "layers",
    "workload.features": "features",
    "workload.hidden": "hidden width",
    "workload.classes": "classes",
    "cluster.device": "device",
    "cluster.gpus": "workers",
    "method.name": "method",
    "method.tau": "tau",
    "method.epsilon": "epsilon",
    "method.rate": "rate",
    "method.cache": "cache",
    "cluster.gpus_per_server": "workers per server",
    "cluster.bandwidth": "bandwidth",
}
"""The compared properties after the graph, in order, with the words shown to readers."""

KNOBS: Final = ("tau", "epsilon", "rate", "cache")

OTHER_PARTS: Final = 0.05
"""Boundaries that differ by more than this belong to different partitions; METIS with another seed stays within it."""


def differences(measured: Measured, studies: Studies, row: Candidate) -> tuple[Differs, ...]:
    """Return the properties in which the measured run differs from `row`; properties unknown on either side are
    skipped.

    Raises FileError for an unreadable run, ScenarioError for a device that is not in the catalogue.
    """
    from gcnsim.evidence.setting_facts import facts_of_profile, facts_of_run
    from gcnsim.records.recorded_run import read_recorded_run

    run = None if measured.kind == "trace" else read_recorded_run(measured.path)
    facts = facts_of_profile(measured.workers, measured.devices, measured.path) if run is None else facts_of_run(run)
    wanted = _setting_of(studies, row)
    differses = [*_graph(run, studies)] if run is not None else []
    same_graph = run is not None and not differses
    differses += [
        Differs(word, facts[name], wanted[name])
        for name, word in WORDS.items()
        if name in facts and name in wanted and facts[name] != wanted[name]
    ]
    if run is not None and same_graph and not differses:
        differses += _boundaries(run, studies, row)
    return tuple(differses)


def _setting_of(studies: Studies, row: Candidate) -> dict[str, str]:
    """Return the row's setting, by the names of `facts_of_run`."""
    scenario, method = row.scenario, row.scenario.method
    cluster, machine = scenario.cluster, resolve_machine(scenario.cluster)
    model = studies.model(scenario)
    shapes = model.shapes
    setting = {
        "workload.model": model.name,
        "workload.layers": str(len(shapes)),
        "workload.features": str(model.features),
        "workload.hidden": str(shapes[0].d_out),
        "workload.classes": str(shapes[-1].d_out),
        "cluster.device": machine.device.name,
        "cluster.gpus": str(cluster.gpus),
        "cluster.gpus_per_server": str(cluster.gpus_per_server),
        "cluster.bandwidth": BANDWIDTH.exact(cluster.bandwidth),
        "method.name": method.name,
    }
    knobs = (name for name in KNOBS if method.has(name))
    return setting | {f"method.{name}": f"{getattr(method, name):.12g}" for name in knobs}


def _graph(run: RecordedRun, studies: Studies) -> Iterator[Differs]:
    """Compare graphs by content if both are known, otherwise by name."""
    source = studies.accesses
    name, content = run.graph["name"], run.graph["hash"]
    if source.graph_hash is None:
        if name.casefold() != source.name.casefold():
            yield Differs("graph", name, source.name)
    elif content != source.graph_hash:
        hashes = (f" ({content[:8]})", f" ({source.graph_hash[:8]})") if name == source.name else ("", "")
        yield Differs("graph", name + hashes[0], source.name + hashes[1])


def _boundaries(run: RecordedRun, studies: Studies, row: Candidate) -> Iterator[Differs]:
    """Return the boundary sizes summed over workers, if they belong to different partitions."""
    predicted, measured = int(studies.counts(row.scenario).boundary_nodes.sum()), sum(run.boundary)
    if abs(measured - predicted) > OTHER_PARTS * max(predicted, 1):
        yield Differs("boundary nodes of all parts", f"{measured:,}", f"{predicted:,}")
