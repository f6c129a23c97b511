"""A recommendation as text: the choice in one sentence, why, the front, and what decides."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Sequence

from gcnsim.report.answer.provenance import plain
from gcnsim.report.answer.sentences import money
from gcnsim.results import Advice, AssumptionEffect, Missed, PointReport
from gcnsim.terminal.tables import aligned
from gcnsim.units import format_seconds

WIDTH = 100
MOST_POINTS = 12
"""Points of the front that are printed, the fastest first; JSON has all."""
MOST_ASSUMPTIONS = 5


def render_recommended(advice: Advice, width: int | None = None) -> str:
    """The recommendation as text for a terminal of `width` columns; None: that of the terminal, 100 in a pipe."""
    width = width or shutil.get_terminal_size((WIDTH, 24)).columns
    lines = [plain(f"{advice.choice.row.dataset}: {advice.goal.text}"), ""]
    lines += _wrapped(advice.verdict, width)
    lines += ["", *_pairs(_why(advice), width)]
    if advice.missed is not None and advice.missed.changes:
        lines += ["", *_changes(advice.missed)]
    lines += ["", *_front(advice)]
    lines += ["", *_tornado(advice)]
    if advice.held.relaxed:
        lines += ["", "If more approximation were allowed (same machine)", *_relaxed(advice)]
    if advice.provenance.warnings:
        lines += ["", "Warnings", *(line for each in advice.provenance.warnings for line in _wrapped(each, width))]
    return "\n".join(lines) + "\n"


def time_text(value: float) -> str:
    """Seconds for people, hours of what is long."""
    return f"{value / 3600.0:.3g} h" if value >= 3600.0 else format_seconds(value)


def _why(advice: Advice) -> list[tuple[str, str]]:
    second = advice.runner_up
    told = [("limited by", advice.limited_by)]
    if advice.missed is not None:
        told.append(("missed", advice.missed.text))
    if second is not None:
        told.append(("runner-up", f"{second.point.name}: {second.why}"))
    told += [("considered", advice.search.text), ("confirmed", advice.confirmation), ("held fixed", advice.held.text)]
    if advice.choice.row.price is not None:
        # What is paid by the GPU is the same whatever connects them.
        by_gpu = "" if advice.choice.host else "; networks and GPUs per server are not priced"
        told.append(("price", f"{advice.choice.row.price}{by_gpu}"))
    told += [("decides", advice.decides), ("certainty", f"{advice.label}; intervals: 90 % of the joint draws")]
    return [(name, text) for name, text in told if text]


def _front(advice: Advice) -> list[str]:
    chosen = [each for each in advice.front if each.name == advice.choice.name]
    others = [each for each in advice.front if each.name != advice.choice.name]
    shown = sorted([*chosen, *others[: MOST_POINTS - len(chosen)]], key=lambda each: each.seconds)
    times, of = _thousand(advice)
    rows = [_point(each, times, each in chosen) for each in shown]
    heads = ("", "machine", "setting", "time", "(range)", f"{advice.goal.currency}{of}", "(range)", "")
    more = len(advice.front) - len(shown)
    left = [f"  ({more} more in JSON)"] if more > 0 else []
    title = f"Front of time against cost of {advice.compared} (= cannot be told apart from what beats it)"
    return [title, *aligned(rows, heads, left=[True, True, True, False, True, False, True, True], gap=1), *left]


def _thousand(advice: Advice) -> tuple[float, str]:
    """By how much costs are multiplied to be read, and what that is of: a training is one, of iterations a thousand."""
    whole = advice.choice.iterations > advice.choice.row.iterations_per_epoch
    return (1.0, "") if whole else (1000.0, " of 1,000")


def _point(point: PointReport, times: float, chosen: bool) -> tuple[str, ...]:
    cost = "-" if point.cost is None else money(times * point.cost)
    ends = [None if each is None else money(times * each) for each in (point.cost_low, point.cost_high)]
    return (
        "*" if chosen else "",
        plain(point.machine),
        plain(" ".join((point.row.method, *point.row.knobs))),
        time_text(point.seconds),
        f"({time_text(point.seconds_low)} to {time_text(point.seconds_high)})",
        cost,
        "" if None in ends else f"({ends[0]} to {ends[1]})",
        "" if point.on_front else "=",
    )


def _changes(missed: Missed) -> list[str]:
    """Single changes of the closest setting, the most useful first."""
    rows = [
        (
            plain(each.knob),
            plain(f"{each.start} -> {each.end}"),
            f"{time_text(each.iteration_s)} per iteration",
            "meets the goal" if each.meets else "",
        )
        for each in missed.changes
    ]
    return ["Single changes of the closest", *aligned(rows, left=4, indent=2)]


def _tornado(advice: Advice) -> list[str]:
    """Knobs and assumptions together, those that move the time most first."""
    work = advice.choice.iterations
    found = [
        (each.seconds_low, each.seconds_high, "knob", each.knob, f"{each.low} .. {each.high}") for each in advice.knobs
    ]
    most = sorted(advice.assumptions, key=_span, reverse=True)[:MOST_ASSUMPTIONS]
    for one in most:
        low, high = sorted((one.iteration_s_low * work, one.iteration_s_high * work))
        found.append((low, high, "assumed", one.name, f"{one.low} .. {one.high}"))
    found.sort(key=lambda each: each[0] / each[1])
    rows = [
        (kind, plain(name), f"{time_text(low)} to {time_text(high)}", plain(ends))
        for low, high, kind, name, ends in found
    ]
    return ["What moves the time, each alone", *aligned(rows, left=4, indent=2)]


def _span(effect: AssumptionEffect) -> float:
    low, high = sorted((effect.iteration_s_low, effect.iteration_s_high))
    return high / low


def _relaxed(advice: Advice) -> list[str]:
    currency, rows = advice.goal.currency, []
    times, of = _thousand(advice)
    for each in advice.held.relaxed:
        cost = "" if each.cost is None else f"{money(times * each.cost)} {currency}{of}"
        saved = f"{100 * each.shorter_low:.0f} to {100 * each.shorter_high:.0f} % shorter"
        meets = "meets the goal" if advice.missed is not None and each.meets else ""
        rows.append((each.option, plain(each.name), time_text(each.seconds), cost, saved, meets))
    return aligned(rows, left=6, indent=2)


def _pairs(pairs: Sequence[tuple[str, str]], width: int) -> list[str]:
    room = max(len(name) for name, _ in pairs) + 2
    lines = []
    for name, text in pairs:
        first, *more = textwrap.wrap(plain(text), max(20, width - room - 2)) or [""]
        lines += [f"  {name:<{room}}{first}", *(f"  {'':<{room}}{line}" for line in more)]
    return lines


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(plain(text), width - 2, initial_indent="  ", subsequent_indent="  ")
