"""What an answer says of where its numbers come from, as plain text; what it answers is in `sentences`.

Terminal and page print the same words. Text that came from outside (names, paths) has its control characters removed
here, so that a file name cannot control a terminal; pages escape it as well.
"""

from __future__ import annotations

from typing import NamedTuple

from gcnsim.report.answer.rows import labels_of, varies
from gcnsim.results import Assumed, AssumptionEffect, Row, SimulationReport, TargetRow, WhatIf, to_plain
from gcnsim.units import format_seconds, range_text


def target_title_of(answer: WhatIf) -> str:
    """The target, e.g. `Time to 90 % validation accuracy`; empty without one."""
    target = answer.target
    return f"Time to {100 * target.accuracy:g} % validation accuracy" if target else ""


def target_of(answer: WhatIf) -> list[tuple[str, str]]:
    """Per row, its label, and iterations, time and cost, or why they are not known."""
    if answer.target is None:
        return []
    labels = labels_of(answer.results)
    return [
        (f"{method} ({setting})" if setting else method, plain(_reached(row)))
        for (method, setting), row in zip(labels, answer.target.rows, strict=True)
    ]


def _reached(row: TargetRow) -> str:
    if row.seconds is None:
        return row.source
    seconds = f"{format_seconds(row.seconds)}{range_text(row.seconds_low, row.seconds_high)}"
    cost = "" if row.usd is None else f", {row.usd:.2f} USD"
    if row.cost is not None and row.currency is not None:
        cost = f", {row.cost:.2f} {row.currency}"
    return f"{seconds}{cost}: {row.iterations} iterations ({row.source})"


_TITLES = {"like_questions": "similar questions"}
"""Titles that are not just the key in words."""


class Assumption(NamedTuple):
    """A number that was assumed: its value, its range, why it is believed, and whether the intervals cover it."""

    name: str
    value: str
    range: str
    basis: str
    covered: bool


def plain(text: object) -> str:
    """`text` on one line without control characters."""
    return "".join(char if char.isprintable() else " " for char in str(text))


def number(value: object) -> str:
    """A number in up to four significant digits; any other value as plain text."""
    return f"{value:.4g}" if isinstance(value, float) else plain(value)


def provenance_of(answer: WhatIf | SimulationReport) -> list[tuple[str, str]]:
    """Where the numbers come from, as (what, said) pairs; assumptions and warnings are apart."""
    told = to_plain(answer.provenance)
    graph = told["graph"]
    pairs = told | {"graph": f"{graph['text']} ({graph['kind']})"}
    if isinstance(answer, WhatIf) and any(varies(answer.rows, key) for key in ("gpus", "device", "host")):
        pairs["device"] = f"of several machines the first asked for: {told['device']}"
    max_wait = answer.provenance.max_wait
    if max_wait is not None:
        given = format_seconds(max_wait.max_wait_s)
        pairs["max_wait"] = f"{given}; draws of the assumptions simulated: {max_wait.draws} of {max_wait.wanted}"
    if answer.provenance.like_questions is not None:
        pairs["like_questions"] = answer.provenance.like_questions.text
    if answer.provenance.measured_compute is not None:
        times = answer.provenance.measured_compute
        pairs["measured_compute"] = f"{times.text}; {times.links}"
    apart = ("assumptions", "measured", "bounds", "warnings")
    return [
        (_TITLES.get(name, name.replace("_", " ")), plain(said)) for name, said in pairs.items() if name not in apart
    ]


def assumptions_of(answer: WhatIf) -> list[Assumption]:
    """The assumed numbers in the answer's order."""
    return [
        Assumption(plain(each.name), plain(each.value), range_of(each), plain(each.basis), each.in_interval)
        for each in answer.provenance.assumptions
    ]


def range_of(each: Assumed | AssumptionEffect) -> str:
    """The two ends of the assumed range."""
    return plain(f"{each.low} to {each.high}")


def bounds_of(answer: WhatIf) -> list[tuple[str, str]]:
    """Per row, its label and the bounds of its long-run mean; empty where there are none."""
    labels = [f"{method} ({setting})" if setting else method for method, setting in labels_of(answer.results)]
    return [
        (plain(label), f"{format_seconds(limit.lower_s)} to {format_seconds(limit.upper_s)}")
        for label, limit in zip(labels, answer.provenance.bounds, strict=False)
    ]


def measured_of(answer: WhatIf | SimulationReport) -> list[str]:
    """The figures that were measured, with their values and where."""
    return [plain(text) for text in answer.provenance.measured]


def warnings_of(answer: WhatIf | SimulationReport) -> list[str]:
    """What the reader must know before trusting a number."""
    return [plain(text) for text in answer.provenance.warnings]


def knobs_of(row: Row) -> str:
    """The knob values of a row; the rate only if nodes are drawn."""
    drawn = "" if row.rate == 1.0 else f", rate {row.rate:g}"
    told = f", {row.setting}" if row.setting else ""
    return f"tau {row.tau}, epsilon {row.epsilon:g}, cache {100 * row.cache_fraction:.4g}%{drawn}{told}"
