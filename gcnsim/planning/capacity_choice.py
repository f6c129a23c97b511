"""Choose the recommended setting, the best simulated one that meets the target with the asked chance, and report it.

On each machine the setting is chosen as in what-if; machines are compared by the minimised amount. The Pareto front of
time against cost contains the settings that meet the target and that no other one beats at the stated values. The
reference engine repeats the best settings and must return the same picoseconds.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial
from math import inf
from typing import Final, NamedTuple

import numpy as np

from gcnsim.core.errors import plural
from gcnsim.core.processes import parallel_map
from gcnsim.core.units import format_number, format_seconds, range_text
from gcnsim.engine import use_reference
from gcnsim.hardware import PriceBook
from gcnsim.planning.candidate import canonical
from gcnsim.planning.capacity_goal import COST, GPUS, HOUR, Goal, money, percent
from gcnsim.planning.capacity_search import Option, Search, cost_ratio, dominated, excess_of
from gcnsim.planning.failures import NEVER_S
from gcnsim.planning.machines import instance_name, machine_text, name_of
from gcnsim.planning.recommend import mildest
from gcnsim.planning.rows import row_of
from gcnsim.planning.study import Studies
from gcnsim.results import BudgetReport, Confirmed, GoalReport, PointReport, RunnerUp, SearchReport
from gcnsim.scenario import ClusterSpec, Scenario
from gcnsim.simulation import Result, simulate_scenario


class Decision(NamedTuple):
    """A ranking. ranked: options, the recommended one first. met: whether they meet the goal; otherwise the closest one
    is first.
    """

    ranked: list[Option]
    met: bool


def decide(options: Sequence[Option], goal: Goal, shown: Collection[Scenario] = ()) -> Decision:
    """Rank the options that meet the goal; if none does, rank all of them by their chance."""
    meeting = best_of([option for option in options if option.meets(goal)], goal, shown)
    return Decision(meeting, True) if meeting else Decision(_closest_first(options, goal), False)


def _closest_first(options: Collection[Option], goal: Goal) -> list[Option]:
    """Return the options that fit in GPU memory by falling chance; ties go to the one closest to the limits."""
    return sorted(options, key=lambda option: (not option.fits, -option.chance(goal), excess_of(option, goal)))


def best_of(options: Sequence[Option], goal: Goal, shown: Collection[Scenario] = ()) -> list[Option]:
    """Return options, best first: the choice of every machine by the minimised amount, then the others.

    shown: no choice is slower than these.
    """
    of_machine: dict[ClusterSpec, list[Option]] = {}
    for option in options:
        of_machine.setdefault(option.scenario.cluster, []).append(option)
    choices = [
        mildest(found, shown, lambda one: one.scenario, lambda one: one.seconds) for found in of_machine.values()
    ]
    chosen = {choice.scenario for choice in choices}
    others = [option for option in options if option.scenario not in chosen]
    by_objective = partial(objective, goal=goal)
    return [*sorted(choices, key=by_objective), *sorted(others, key=by_objective)]


def objective(option: Option, goal: Goal) -> tuple[float, ...]:
    """Return the minimised amount, followed by the tie-breakers."""
    if goal.minimise == COST:
        return option.price, option.seconds
    if goal.minimise == GPUS:
        return option.gpus, option.price, option.seconds
    return option.seconds, option.price


def front(options: Sequence[Option]) -> list[Option]:
    """Return the options that no other one beats at the stated values, fastest first."""
    order = sorted(options, key=lambda one: (one.seconds, one.price))
    return [option for option in order if not any(_better(one, option) for one in order)]


def _better(one: Option, other: Option) -> bool:
    """Whether `one` is no slower and no dearer than `other` at the stated values, and not the same in both."""
    ratio = np.array([one.seconds / other.seconds])
    return bool(dominated(ratio, cost_ratio(one.setting.rate, other.setting.rate))[0])


def dominance(one: Option, other: Option) -> float:
    """The share of the joint draws, in pairs, in which `one` is no slower and no dearer, and not the same in both."""
    return float(dominated(one.over(other), cost_ratio(one.setting.rate, other.setting.rate)).mean())


CONFIRMED: Final = 3
"""The number of options to confirm, best first."""

AFFORDED: Final = 120_000
"""The most ops times iterations of a confirmed run: about three seconds of the reference engine."""


def confirm(studies: Studies, options: Sequence[Option]) -> tuple[Confirmed, ...]:
    """Run the first few options with the reference engine if they are small enough.

    Returns whether every start and end has the same picosecond, or None and the reason if it was not run.
    """
    first = options[:CONFIRMED]
    why = [_too_much(option) for option in first]
    wanted = [option for option, reason in zip(first, why, strict=True) if not reason]

    def again(option: Option) -> bool:
        with use_reference():
            return _same(simulate_scenario(canonical(option.scenario), studies.accesses), option.candidate.result)

    same = iter(parallel_map(again, wanted, studies.processes))
    return tuple(
        Confirmed(name_of(option.scenario), None if reason else next(same), reason)
        for option, reason in zip(first, why, strict=True)
    )


def _same(one: Result, other: Result) -> bool:
    runs = (one.run, other.run)
    starts, ends = ([getattr(run, name) for run in runs] for name in ("first_starts", "first_ends"))
    return np.array_equal(*starts) and np.array_equal(*ends) and runs[0].iterations == runs[1].iterations


def _too_much(option: Option) -> str:
    """Return why an option is not run again, or an empty text if it is."""
    run = option.candidate.result.run
    if run.schedule.grain_s > 0.0:
        return "its links are shared once per grain, which the reference engine does not do"
    effort = run.schedule.columns.size * run.simulated
    return f"{effort:,} ops are more than {AFFORDED:,}" if effort > AFFORDED else ""


def point_of(
    studies: Studies, option: Option, goal: Goal, book: PriceBook, first: Sequence[Option] = ()
) -> PointReport:
    """Return the result of an option with its intervals. first: the front."""
    scenario, work = option.scenario, option.work
    estimate = studies.estimate(scenario)
    ends = (estimate.low_s, estimate.high_s)
    times = [None if end is None else min(float(work.seconds(end)), NEVER_S) for end in ends]
    costs = [None if time is None else work.cost(time) for time in times]
    return PointReport(
        name=name_of(scenario),
        machine=machine_text(scenario.cluster),
        host=instance_name(scenario.cluster),
        servers=scenario.cluster.servers,
        iterations=work.compared,
        seconds=option.seconds,
        seconds_low=times[0],
        seconds_high=times[1],
        cost=option.cost,
        cost_low=costs[0],
        cost_high=costs[1],
        meets=option.meets(goal),
        chance=option.chance(goal),
        row=row_of(estimate, None, studies.accesses.name, book),
        on_front=not first or option in first,
        beaten_share=max((dominance(other, option) for other in first if other is not option), default=0.0),
    )


def goal_report(goal: Goal) -> GoalReport:
    """Return the goal as a result."""
    limits = (goal.iteration_s, goal.epoch_s, goal.training_s, goal.per_hour, goal.most_cost)
    spent = goal.budget
    budget = None if spent is None else BudgetReport(spent.amount, spent.period, spent.hours_per_day)
    return GoalReport(goal.text, goal.minimise, goal.currency, *limits, goal.confidence, budget)


def search_report(searched: Search, space: str, slower: int) -> SearchReport:
    """Return how many settings were simulated or excluded, also as a sentence.

    space: the machines in words. slower: the settings excluded because another one on the same machine has a faster
    estimate.
    """
    simulated = len(searched.options)
    parts = [
        (slower, "slower than another on the same machine by their estimate"),
        (searched.same, "duplicates"),
        (searched.refused, "not possible"),
        (searched.unpriced, "without a price or known iterations"),
        (searched.too_large, "too large for the GPUs' memory"),
        (searched.missed, "cannot meet the limit"),
        (searched.beaten, "cannot be best"),
    ]
    removed = [f"{count:,} {what}" for count, what in parts if count]
    of = "" if searched.grid is None else f" of {searched.grid:,}, picked by their bounds (Optuna)"
    settings = searched.settings + slower
    twice = sum(count for count, _ in parts) + simulated - settings
    closest = f" ({twice:,} of them to find the closest)" if twice > 0 else ""
    text = f"{plural(settings, 'setting')}{of}: {', '.join([*removed, f'{simulated:,} simulated{closest}'])}"
    counts = (searched.same, searched.refused, searched.too_large, searched.unpriced, searched.missed, searched.beaten)
    return SearchReport(space, settings, slower, *counts, simulated, text, searched.grid)


def compared_text(option: Option) -> str:
    """Return what times and costs refer to."""
    if option.work.training is not None:
        return "a training"
    return "an iteration" if option.work.per_epoch == 1 else "an epoch"


def cost_text(point: PointReport) -> str:
    """Return the cost of 1,000 iterations, of 1,000 epochs, or of the training."""
    row = point.row
    if point.cost is None or row.currency is None:
        return "no price known"
    if point.iterations > row.iterations_per_epoch:
        return f"{money(point.cost)} {row.currency} for the training"
    unit = "iterations" if row.iterations_per_epoch == 1 else "epochs"
    return f"{money(1000.0 * point.cost)} {row.currency} per 1,000 {unit}"


def summary_sentence(point: PointReport, goal: Goal, searched: SearchReport, *, met: bool) -> str:
    """Return one sentence: the choice and its chance of meeting the target, or that no setting meets it."""
    row = point.row
    interval = range_text(row.iteration_s_low, row.iteration_s_high)
    iteration = f"{format_seconds(row.iteration_s)} per iteration{interval}"
    whole = f", {format_seconds(point.seconds)} in all" if point.iterations > row.iterations_per_epoch else ""
    about = f"{iteration}{whole}, {cost_text(point)}{_rent(row.cost_per_hour, row.currency, goal)}"
    chance = _chance(point, goal)
    if met:
        return f"Use {point.name}: {about}{f'; {chance}' if goal.uncertain else ''}."
    none = f"None of {searched.settings:,} settings on {searched.space}"
    if row.fits is False:
        return f"{none} fits the memory of GPUs and servers; the closest is {point.name}: {about}."
    if not goal.uncertain:
        held = "fits the memory and " if searched.too_large else ""
        return f"{none} {held}costs {' and '.join(goal.words)} or less; the closest is {point.name}: {about}."
    paid = f" for {goal.words[-1]} or less" if goal.per_hour is not None and goal.most_cost is None else ""
    sure = f"meets {goal.targets}{paid} with a chance of {percent(goal.confidence)}"
    if point.chance == 0.0:
        return f"{none} {sure}. The closest is {point.name}, with no chance: {about}."
    return f"{none} {sure}. {point.name} is closest: {chance}{paid}; {about}."


def _chance(point: PointReport, goal: Goal) -> str:
    """Return the chance of meeting the target, as a clause."""
    return f"{percent(point.chance)} chance of meeting {goal.targets}"


def _rent(per_hour: float | None, currency: str | None, goal: Goal) -> str:
    """Return the machine's price per hour, and over the period of the budget."""
    if per_hour is None:
        return ""
    budget = goal.budget
    hour = f", {money(per_hour)} {currency} an hour"
    return hour if budget is None or budget.period == HOUR else f"{hour}, {budget.text_of(per_hour)}"


def runner_up(
    studies: Studies, ranked: Sequence[Option], goal: Goal, book: PriceBook, first: Sequence[Option]
) -> RunnerUp | None:
    """The best option on another machine (or the best other setting) and why it lost, or None if there is none."""
    chosen = ranked[0]
    elsewhere = [one for one in ranked[1:] if one.scenario.cluster != chosen.scenario.cluster]
    other = next(iter(elsewhere or ranked[1:]), None)
    if other is None:
        return None
    times = other.over(chosen)
    faster = float((times < 1.0).mean())
    cheaper = float((times * _rates(other, chosen) < 1.0).mean())
    why = _why(chosen, other, goal, faster, cheaper)
    return RunnerUp(point_of(studies, other, goal, book, first), why, faster, cheaper)


def _rates(one: Option, other: Option) -> float:
    """Return the ratio of two prices per hour, or of the numbers of GPUs if one of them has no price."""
    prices = one.work.per_hour, other.work.per_hour
    return one.gpus / other.gpus if prices[0] is None or prices[1] is None else cost_ratio(prices[0], prices[1])


def _why(chosen: Option, other: Option, goal: Goal, faster: float | None, cheaper: float | None) -> str:
    """Return why the other option lost, and with what confidence; of machines without a price, their GPU-hours."""
    priced = chosen.cost is not None and other.cost is not None
    time = other.seconds / chosen.seconds
    slower = _apart(time, "slower", "faster")
    if not priced:
        dearer, less = _apart(time * _rates(other, chosen), "more GPU-hours", "fewer GPU-hours"), "in fewer GPU-hours"
    else:
        dearer, less = _apart(time * _rates(other, chosen), "dearer", "cheaper"), "cheaper"
    if slower == "not slower" and dearer.startswith("not "):
        return "as fast, at the same cost" if priced else "as fast, in as many GPU-hours"
    if goal.minimise == COST and chosen.price == 0.0:
        both = "both cost nothing; " if other.price == 0.0 else f"{dearer}; "
        first, sure = f"{both}{slower}", _often("faster", faster)
    elif goal.minimise == COST:
        first, sure = f"{dearer} and {slower}", _often(less, cheaper)
    elif goal.minimise == GPUS and other.gpus > chosen.gpus:
        return f"{plural(other.gpus - chosen.gpus, 'GPU')} more; {dearer} and {slower}"
    elif goal.minimise == GPUS:
        first, sure = f"as many GPUs, {dearer} and {slower}", _often(less, cheaper)
    else:
        first, sure = f"{slower} and {dearer}", _often("faster", faster)
    return f"{first}{sure}"


def _often(what: str, share: float | None) -> str:
    """Return the number of draws in which something holds, or an empty text if the draws do not say."""
    return "" if share is None else f"; {what} in {100 * share:.0f} % of the draws"


AS_MUCH: Final = {"slower": "as slow", "dearer": "as dear", "more GPU-hours": "the GPU-hours"}


def _apart(ratio: float, more: str, less: str) -> str:
    if abs(ratio - 1.0) < 0.0005:
        return f"not {more}"
    if ratio == inf:
        return f"{more}, since the choice costs nothing"
    if ratio >= 2.0:
        return f"{format_number(ratio, 2)} times {AS_MUCH[more]}"
    return f"{format_number(100 * abs(ratio - 1.0), 2)} % {more if ratio > 1.0 else less}"


def confirmation_text(confirmed: Sequence[Confirmed]) -> str:
    """Return the result of the reference engine as a sentence."""
    same, other = (sum(one.same is value for one in confirmed) for value in (True, False))
    left = [one for one in confirmed if one.same is None]
    parts = []
    if same:
        several = f"{same} of the best {len(confirmed)}"
        if same == len(confirmed):
            several = "the best one" if same == 1 else f"the best {same}"
        parts.append(f"the reference engine gives the same picoseconds for {several}")
    if other:
        parts.append(
            f"the reference engine gives other times for {other} of the best {len(confirmed)}: please report this"
        )
    if left:
        parts.append(f"{len(left)} not run again: {left[0].why}")
    return "; ".join(parts)
