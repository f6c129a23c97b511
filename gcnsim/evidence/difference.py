"""Compare two iterations: part by part, link by link, worker by worker, and in words.

Each side is read from a file that the simulator wrote: a result, or one row of a what-if. The parts of each side add up
to its iteration, so their differences add up to the difference of the iterations.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from gcnsim.core.errors import FileError
from gcnsim.core.json_files import mistake, parse_json, read_text
from gcnsim.core.units import format_bytes, format_fraction, format_seconds
from gcnsim.evidence.iteration_report import WHOLE, IterationReport, report_of_result, report_of_row, worker_dicts
from gcnsim.evidence.setting_facts import differing, facts_of_row
from gcnsim.results import Row, SimulationReport, from_plain
from gcnsim.timeline.breakdown import EXPOSED, OTHER, Parts, iteration_s

RESULT, ANSWER = "gcnsim.result/1", "gcnsim.what-if/1"
ROUNDING = 1e-3
"""The share by which parts in a file may miss their sum, because of rounded digits."""

ROW = "#"
"""The separator between a what-if's file and the number of a row, which starts at 1."""


def read_answer(path: str, label: str) -> IterationReport:
    """Read the side in the JSON file at `path`: from `gcnsim simulate`, or a row (`FILE#2`) of `gcnsim what-if`.

    Raises FileError, naming the file and what is wrong with it.
    """
    name, mark, number = path.rpartition(ROW)
    file = Path(name if mark and not Path(path).exists() else path)
    number = number if file == Path(name) and mark else ""
    document = parse_json(read_text(file), file)
    schema = document.get("schema") if isinstance(document, dict) else None
    if schema not in (RESULT, ANSWER):
        raise FileError(f"{file}: schema: {schema!r} is not known; allowed: {RESULT} or {ANSWER}, by --json or --out")
    wrong = mistake(document, "result" if schema == RESULT else "what-if")
    if wrong:
        raise FileError(f"{file}: {wrong}")
    rows = [document["result"]] if schema == RESULT else document["results"]
    for row in rows:
        _check_row(row, file)
    if schema == RESULT:
        if number:
            raise FileError(f"{path}: {file} has one result; allowed: its name alone")
        _check_workers(document, file)
        try:
            report = from_plain(SimulationReport, document)
        except TypeError as error:
            raise FileError(f"{file}: {error}; not what gcnsim simulate writes") from None
        return report_of_result(report, label)
    place = _row(number, len(rows), file)
    row = Row.read(rows[place])
    return replace(report_of_row(row, label), facts=facts_of_row(document["scenario"], row))


def _check_row(row: dict[str, Any], file: Path) -> None:
    """Raise FileError if a part is larger than the total it belongs to."""
    whole = row["iteration_s"]
    if not whole > 0:
        raise FileError(f"{file}: iteration_s is {whole}; allowed: above 0")
    parts = sum(row[name] for name in WHOLE)
    if abs(parts - whole) > ROUNDING * whole:
        raise FileError(f"{file}: {', '.join(WHOLE)} make {parts:g} s, iteration_s is {whole:g}; allowed: as much")
    low, high = row["iteration_s_low"], row["iteration_s_high"]
    if (low is None) is not (high is None):
        raise FileError(f"{file}: iteration_s_low, iteration_s_high: one is null; allowed: both or none")
    if low is not None and not low <= whole <= high:
        raise FileError(f"{file}: iteration_s {whole:g} is outside its interval")


def _check_workers(document: dict[str, Any], file: Path) -> None:
    """Raise FileError if the slowest worker is missing, or if its parts do not add up to its iteration."""
    workers = document.get("workers", ())
    if not workers:
        return
    slowest = document.get("slowest", 0)
    if not 0 <= slowest < len(workers):
        raise FileError(f"{file}: slowest is {slowest}, it has {len(workers)} workers")
    parts = iteration_s(Parts(**workers[slowest]))
    whole = document["result"]["iteration_s"]
    if abs(parts - whole) > ROUNDING * whole:
        raise FileError(
            f"{file}: parts of worker {slowest} make {parts:g} s, iteration_s is {whole:g}; allowed: as much"
        )


def _row(number: str, rows: int, file: Path) -> int:
    """The index of a row. Raises FileError."""
    if not number and rows == 1:
        return 0
    if not re.fullmatch("[0-9]{1,9}", number) or not 1 <= int(number) <= rows:
        name = f"there is no row {number!r}" if number else f"has {rows} rows"
        raise FileError(f"{file}: {name}; name one: {file}{ROW}1 to {file}{ROW}{rows}")
    return int(number) - 1


SCHEMA: Final = "gcnsim.compare/1"

PARTS: Final[Mapping[str, str]] = {
    "compute_s": "compute",
    "exposed_comm_s": "exposed communication",
    "handling_s": "unpacking received rows",
    "network_s": "row messages in flight",
    "copies_s": "packing and copies",
    "reduce_s": "all-reduce",
    "waiting_s": "waiting for peers",
    "exposed_other_s": "the rest",
    "exposed_sampling_s": "sampling",
    "optimizer_s": "optimizer",
    "rest_s": "all else",
}
WITHIN: Final = {
    f"{part}_s": whole for whole, parts in (("exposed_comm_s", EXPOSED), ("exposed_other_s", OTHER)) for part in parts
}
BENEATH: Final = ("hidden_comm_s", "sampling_s")

RUN: Final = "run"
TRACE: Final = "trace"
MEASURED: Final = (RUN, TRACE)
"""The kinds of measured sides."""

NAMED_SHARE: Final = 0.8
"""The parts named in words make up this share of all changes; at most three are named."""

MOST: Final = 3
SAME: Final = 0.005
"""Iterations that differ by less than 0.5 % count as equal, which is the precision of a simulation of a few iterations.
"""


def compare(a: IterationReport, b: IterationReport) -> dict[str, Any]:
    """Both sides as plain data in the format `gcnsim.compare/1`. Differences are B minus A.

    Seconds and bytes are per iteration, or per epoch if the sides differ in iterations per epoch.
    """
    epochs = a.per_epoch != b.per_epoch
    if epochs:
        a, b = a.epoch(), b.epoch()
    differs = differing(a.facts, b.facts, alike=not {a.kind, b.kind} & {*MEASURED})
    detailed = a.parts is not None and b.parts is not None
    difference = b.iteration_s - a.iteration_s
    parts = [_part(name, _seconds(a, name), _seconds(b, name), difference) for name in (PARTS if detailed else WHOLE)]
    return {
        "schema": SCHEMA,
        "a": _about(a),
        "b": _about(b),
        "per": "epoch" if epochs else "iteration",
        "differs": differs,
        "iteration_s": _pair(a.iteration_s, b.iteration_s) | {"ratio": b.iteration_s / a.iteration_s},
        "detailed": detailed,
        "parts": parts,
        "beneath": [{"name": name} | _pair(a.beneath[name], b.beneath[name]) for name in BENEATH],
        "links": [_link(name, a, b) for name in sorted({*a.links, *b.links}, key=_natural)],
        "workers": {"a": worker_dicts(a.workers), "b": worker_dicts(b.workers)},
        "accuracy": {"a": [*map(list, a.learning)], "b": [*map(list, b.learning)]},
        "says": [
            *_sentences(a, b, [part for part in parts if not detailed or part["part"] not in WHOLE[1:]], epochs),
            *_learned(a, b),
        ],
        "notes": [*_unlike(a, b, differs), *_notes(a, b)],
    }


def _learned(a: IterationReport, b: IterationReport) -> Iterator[str]:
    """Who reaches the lower of the best accuracies first, of two recorded runs."""
    if a.learning and b.learning:
        share = min(max(point[2] for point in side.learning) for side in (a, b))
        ends = [next(point for point in side.learning if point[2] >= share) for side in (a, b)]
        times = [f"after {format_seconds(seconds)} ({done:,} iterations)" for done, seconds, _ in ends]
        yield f"A reaches {100 * share:.1f} % validation accuracy {times[0]}, B {times[1]}."


def _seconds(side: IterationReport, name: str) -> float:
    return side.whole[name] if name in WHOLE else float(getattr(side.parts, name))


def _about(side: IterationReport) -> dict[str, Any]:
    return {
        "label": side.label,
        "kind": side.kind,
        "setting": side.setting,
        "slowest": side.slowest,
        "iterations_per_epoch": side.per_epoch,
        "iteration_s_low": side.low_s,
        "iteration_s_high": side.high_s,
    }


def _pair(a: float, b: float) -> dict[str, float]:
    return {"a": a, "b": b, "difference": b - a}


def _part(name: str, a: float, b: float, difference: float) -> dict[str, Any]:
    share = (b - a) / difference if difference else None
    return {"part": name, "within": WITHIN.get(name)} | _pair(a, b) | {"share": share}


def _link(name: str, a: IterationReport, b: IterationReport) -> dict[str, Any]:
    entry: dict[str, Any] = {"link": name}
    for key, side in (("a", a), ("b", b)):
        link = side.links.get(name)
        seconds = None if link is None else link.seconds
        entry[key] = {
            "bytes": None if link is None else link.nbytes,
            "seconds": seconds,
            "busy": None if seconds is None else seconds / side.iteration_s,
        }
    return entry


def _natural(name: str) -> list[tuple[int, str]]:
    """Sort key that puts `nic2.tx` before `nic10.tx`."""
    return [(int(piece) if piece.isdecimal() and len(piece) < 19 else -1, piece) for piece in re.split(r"(\d+)", name)]


def _sentences(
    a: IterationReport, b: IterationReport, leaves: Sequence[Mapping[str, Any]], epochs: bool
) -> Iterator[str]:
    """A few sentences: whether the difference is noise, its size, its causes, and the link that changed most."""
    yield from _within_spread(a, b)
    times = f"{format_seconds(b.iteration_s)} instead of {format_seconds(a.iteration_s)}"
    difference = b.iteration_s - a.iteration_s
    if abs(difference) < SAME * a.iteration_s:
        yield f"A and B take equally long: {times}."
    else:
        more = "more" if difference > 0 else "less"
        named = [_named(entry) for entry in _largest(leaves)]
        per = "epoch" if epochs else "iteration"
        yield (
            f"B takes {format_seconds(abs(difference))} {more} per {per} than A ({times}, "
            f"{100 * difference / a.iteration_s:+.1f} %): {'; '.join(named)}."
        )
    yield from _busiest(a, b)


def _within_spread(a: IterationReport, b: IterationReport) -> Iterator[str]:
    """For two measured sides, whether their means differ by less than single iterations do."""
    if not a.spread_s or not b.spread_s or abs(b.iteration_s - a.iteration_s) > math.hypot(a.spread_s, b.spread_s):
        return
    of_a, of_b = format_seconds(a.spread_s), format_seconds(b.spread_s)
    yield (
        f"The difference is within the spread of the iterations (standard deviation {of_a} in A, {of_b} in B): it may "
        "be noise. Repeat both runs to be sure."
    )


def _largest(leaves: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    order = sorted(leaves, key=lambda leaf: -abs(leaf["difference"]))
    changed = sum(abs(entry["difference"]) for entry in order)
    chosen: list[Mapping[str, Any]] = []
    for entry in order[:MOST]:
        if sum(abs(one["difference"]) for one in chosen) < NAMED_SHARE * changed:
            chosen.append(entry)
    return chosen


def _named(part: Mapping[str, Any]) -> str:
    more = "more" if part["difference"] > 0 else "less"
    share = part["share"]
    of_all = "" if share is None or share <= 0 else f" ({format_fraction(share)} of the difference)"
    return f"{PARTS[part['part']]} {format_seconds(abs(part['difference']))} {more}{of_all}"


def _busiest(a: IterationReport, b: IterationReport) -> Iterator[str]:
    """The busiest link of either side, among those that both have."""

    def busy(side: IterationReport, name: str) -> float:
        return (side.links[name].seconds or 0.0) / side.iteration_s

    both = [name for name in a.links if name in b.links and a.links[name].seconds and b.links[name].seconds]
    if both:
        name = max(both, key=lambda item: max(busy(a, item), busy(b, item)))
        yield (
            f"The busiest link, {name}, carries {format_bytes(b.links[name].nbytes)} instead of "
            f"{format_bytes(a.links[name].nbytes)}, and is busy {format_fraction(busy(b, name))} of the time "
            f"instead of {format_fraction(busy(a, name))}."
        )


def _unlike(a: IterationReport, b: IterationReport, differs: Sequence[Mapping[str, str]]) -> Iterator[str]:
    """The differences that make the two sides hard to compare."""
    if a.per_epoch != b.per_epoch:
        yield (
            f"an epoch has {a.per_epoch} iteration(s) in A and {b.per_epoch} in B: seconds and bytes of both are those "
            "of an epoch"
        )
    names = [difference["field"] for difference in differs]
    for noun, of in (("workloads", ("workload.", "graph")), ("devices", ("cluster.device",))):
        if any(name.startswith(of) for name in names):
            yield f"the {noun} are not the same: they also contribute to the difference, not only the method"


def _notes(a: IterationReport, b: IterationReport) -> Iterator[str]:
    """The warnings to read before using the comparison."""
    for key, side in (("A", a), ("B", b)):
        if side.parts is None:
            yield f"{key} ({side.label}) has only three parts, without details"
    if RUN in (a.kind, b.kind):
        yield "bytes of recorded runs are those of rows and gradients"
    for key, side in (("A", a), ("B", b)):
        if side.kind == TRACE:
            slow = "profiling itself lengthens iterations, and bytes of links are not known"
            yield f"{key} ({side.label}) is a profiler's trace: {slow}"
        yield from side.notes
    if (a.kind in MEASURED) != (b.kind in MEASURED):
        yield "one side is measured, the other predicted: their difference includes the error of the prediction"
