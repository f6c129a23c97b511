"""A recommendation as text: the choice in one sentence, the reasons, the front, and the deciding figures."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Sequence

from gcnsim.core.errors import plural
from gcnsim.core.terminal import aligned
from gcnsim.core.units import format_seconds, range_text
from gcnsim.planning.capacity_goal import money, percent
from gcnsim.report.answer.rows import plain, until_done
from gcnsim.report.answer.sentences import saved_range
from gcnsim.report.answer.table import assumed_power, energy_text
from gcnsim.report.page.templates import rendered
from gcnsim.results import Advice, AssumptionEffect, Missed, OtherRule, PointReport

WIDTH = 100
MOST_POINTS = 12
"""Points of the front that are printed, fastest first; JSON has all."""
MOST_ASSUMPTIONS = 5
TIES = "ties within 3 % go to the least approximate setting"


def render_recommended(advice: Advice) -> str:
    """The recommendation as text as wide as the terminal, 100 columns in a pipe."""
    width = shutil.get_terminal_size((WIDTH, 24)).columns
    lines = [plain(f"{advice.choice.row.dataset}: {advice.goal.text}"), ""]
    lines += _wrapped(advice.verdict, width)
    lines += ["", *_pairs(reasons(advice), width)]
    if advice.missed is not None and advice.missed.changes:
        lines += ["", *_changes(advice.missed, uncertain(advice))]
    lines += ["", *_front(advice)]
    lines += ["", *moved] if (moved := _tornado(advice)) else []
    if advice.other_rules:
        lines += ["", "With other limits (same machine)", *_other_rules(advice)]
    if advice.provenance.warnings:
        lines += [
            "",
            "Warnings",
            *(line for warning in advice.provenance.warnings for line in _wrapped(warning, width)),
        ]
    return "\n".join(lines) + "\n"


def render_short_advice(advice: Advice) -> str:
    """The choice in one sentence, and the table."""
    return "\n".join([plain(advice.verdict), "", *_front(advice)])


def render_advice_notebook(advice: Advice) -> str:
    """The same as an HTML fragment; all text is escaped."""
    points, more = shown_points(advice)
    times, _ = _thousand(advice)
    left = (True, True, False, True, False, True, False, True)
    return rendered(
        "notebook.html.j2",
        title=plain(f"{advice.choice.row.dataset}: {advice.goal.text}"),
        label=advice.label,
        verdict=plain(advice.verdict),
        heads=[([head], "left" if side else "right") for head, side in zip(_heads(advice)[1:], left, strict=True)],
        rows=[
            (_point(point, times, False, uncertain(advice))[1:], point.name == advice.choice.name) for point in points
        ],
        more=plural(more, "more row") if more else "",
    )


def reasons(advice: Advice) -> list[tuple[str, str]]:
    """The reasons for the choice and its confidence, as (label, text) pairs."""
    second, missed = advice.runner_up, advice.missed
    lines = [("between GPUs", advice.provenance.between_gpus or ""), ("limited by", advice.limited_by)]
    if missed is not None:
        lines += [("missed", missed.text), ("raises it", missed.raised)]
    if second is not None:
        lines.append(("runner-up", f"{second.point.name}: {second.why}"))
    # If no setting meets the goal, the summary names the machines.
    machines = "" if missed is not None else f"; on {advice.search.space}"
    lines += [("considered", f"{advice.rule.text}; {TIES}"), ("searched", f"{advice.search.text}{machines}")]
    if not all(confirmed.same for confirmed in advice.confirmed):
        lines.append(("checked", advice.confirmation))
    if advice.choice.row.price is not None:
        of = advice.choice.row.price_of
        by_gpu = f"; per GPU of {of}, the nearest instance: no price of this very machine is known" if of else ""
        lines.append(("price", f"{advice.choice.row.price}{by_gpu}"))
    if advice.training is not None:
        lines.append(("until done", until_done(advice.training)))
    if advice.energy is not None:
        (row,) = advice.energy.rows
        lines += [("energy", energy_text(row, advice.energy)), *assumed_power(advice.energy)]
    lines += [("decides", advice.decides), ("certainty", f"{advice.label}; intervals: 90 % of the random draws")]
    if advice.provenance.like_questions is not None:
        lines.append(("similar questions", advice.provenance.like_questions.text))
    return [(name, text) for name, text in lines if text]


def shown_points(advice: Advice) -> tuple[list[PointReport], int]:
    """The rows to show, the fastest first, and the number of others."""
    chosen = [row for row in advice.rows if row.name == advice.choice.name]
    others = [row for row in advice.rows if row.name != advice.choice.name]
    shown = [*chosen, *others[: MOST_POINTS - len(chosen)]]
    return sorted(shown, key=lambda item: (item.seconds, item.name)), len(advice.rows) - len(shown)


def _front(advice: Advice) -> list[str]:
    shown, more = shown_points(advice)
    times, _ = _thousand(advice)
    rows = [
        _point(point_report, times, point_report.name == advice.choice.name, uncertain(advice))
        for point_report in shown
    ]
    rest = [f"  ({more} more: --csv, --json)"] if more > 0 else []
    title = f"Time against cost of {advice.compared} (=: no clear difference from a better one)"
    sides = [True, True, True, False, True, False, True, False, True]
    return [title, *aligned(rows, _heads(advice), left=sides, gap=1), *rest]


def _heads(advice: Advice) -> tuple[str, ...]:
    _, of = _thousand(advice)
    chance = "chance" if uncertain(advice) else ""
    ends = "" if all(row.seconds_low is None for row in advice.rows) else "(range)"
    return ("", "machine", "setting", "time", ends, f"{advice.goal.currency}{of}", ends, chance, "")


def uncertain(advice: Advice) -> bool:
    """Whether random draws decide about a limit; otherwise no chance is shown."""
    goal = advice.goal
    limits = (goal.iteration_s, goal.epoch_s, goal.training_s, goal.most_cost)
    return any(limit is not None for limit in limits)


def _thousand(advice: Advice) -> tuple[float, str]:
    """The factor on costs for display, and its unit: one training, or a thousand iterations."""
    whole = advice.choice.iterations > advice.choice.row.iterations_per_epoch
    return (1.0, "") if whole else (1000.0, " per 1,000")


def _point(point: PointReport, times: float, chosen: bool, uncertain: bool) -> tuple[str, ...]:
    cost = "-" if point.cost is None else money(times * point.cost)
    return (
        "*" if chosen else "",
        plain(point.machine),
        plain(" ".join((point.row.method, *point.row.knobs))),
        format_seconds(point.seconds),
        range_text(point.seconds_low, point.seconds_high).strip(),
        cost,
        range_text(point.cost_low, point.cost_high, lambda item: money(times * item)).strip(),
        percent(point.chance) if uncertain else "",
        "" if point.on_front else "=",
    )


def _changes(missed: Missed, uncertain: bool) -> list[str]:
    """Single changes of the closest setting, the most useful first; uncertain: whether chances are shown."""
    rows = [
        (
            plain(change.knob),
            plain(f"{change.start} -> {change.end}"),
            f"{format_seconds(change.iteration_s)} per iteration",
            f"{percent(change.chance)} chance" if uncertain else "",
            "meets the goal" if change.meets else "",
        )
        for change in missed.changes
    ]
    return ["Single changes to the closest setting", *aligned(rows, left=5, indent=2)]


def _tornado(advice: Advice) -> list[str]:
    """Knobs and assumptions, largest effect first, with the ends in order of time; tiny effects are left out."""
    effects = [
        (knob.seconds_low, knob.seconds_high, "knob", knob.knob, f"{knob.low} .. {knob.high}") for knob in advice.knobs
    ]
    most = sorted(advice.assumptions, key=_span, reverse=True)[:MOST_ASSUMPTIONS]
    for one in most:
        ends = zip(one.ends, (one.low, one.high), strict=True)
        (low, short), (high, long) = sorted(ends, key=lambda end: end[0])
        effects.append((low, high, "assumed", one.name, f"{short} .. {long}"))
    effects = [item for item in effects if format_seconds(item[0]) != format_seconds(item[1])]
    effects.sort(key=lambda item: item[0] / item[1])
    rows = [
        (kind, plain(name), f"{format_seconds(low)} to {format_seconds(high)}", plain(ends))
        for low, high, kind, name, ends in effects
    ]
    return ["What moves the time, each alone", *aligned(rows, left=4, indent=2)] if rows else []


def _span(effect: AssumptionEffect) -> float:
    low, high = sorted(effect.ends)
    return high / low


def _other_rules(advice: Advice) -> list[str]:
    currency, rows = advice.goal.currency, []
    times, of = _thousand(advice)
    for rule in advice.other_rules:
        cost = "" if rule.cost is None else f"{money(times * rule.cost)} {currency}{of}"
        missed = advice.missed is not None
        meets = "" if rule.meets != missed else "meets the goal" if missed else "misses the goal"
        rows.append((rule.option, plain(rule.name), format_seconds(rule.seconds), cost, _saved(rule), meets))
    return aligned(rows, left=6, indent=2)


def _saved(rule: OtherRule) -> str:
    """The difference from the choice's time: the 90 % interval."""
    return saved_range(rule.shorter_low, rule.shorter_high)


def _pairs(pairs: Sequence[tuple[str, str]], width: int) -> list[str]:
    room = max(len(name) for name, _ in pairs) + 2
    lines = []
    for name, text in pairs:
        first, *more = textwrap.wrap(plain(text), max(20, width - room - 2), break_on_hyphens=False) or [""]
        lines += [f"  {name:<{room}}{first}", *(f"  {'':<{room}}{line}" for line in more)]
    return lines


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(plain(text), width - 2, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False)
