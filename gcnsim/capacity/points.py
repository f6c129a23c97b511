"""Options as results."""

from __future__ import annotations

from gcnsim.capacity.front import Place
from gcnsim.capacity.goal import Goal
from gcnsim.capacity.machines import instance_name
from gcnsim.capacity.search import Option, Search
from gcnsim.errors import plural
from gcnsim.hardware import PriceBook
from gcnsim.planning import StudyCache, row_of
from gcnsim.results import BudgetReport, GoalReport, PointReport, SearchReport
from gcnsim.scenario import ClusterSpec, Scenario, setting_text
from gcnsim.units import format_gbps


def machine_text(cluster: ClusterSpec) -> str:
    """A machine in a few words: `2 x g4dn.12xlarge (8 x t4)`, or `6 x t4 at 15Gbps`."""
    gpus = f"{cluster.gpus} x {cluster.device}"
    if instance_name(cluster) is None:
        return f"{gpus} at {format_gbps(cluster.bandwidth)}"
    return f"{cluster.servers} x {cluster.host} ({gpus})"


def name_of(scenario: Scenario) -> str:
    """Setting and machine in words."""
    return f"{setting_text(scenario.method)} on {machine_text(scenario.cluster)}"


def point_of(
    studies: StudyCache, option: Option, goal: Goal, book: PriceBook, place: Place | None = None
) -> PointReport:
    """An option with its intervals; place: where it is on the front."""
    scenario, work = option.scenario, option.work
    estimate = studies.estimate(scenario)
    ends = (estimate.low_s, estimate.high_s)
    times = [None if each is None else each * work.compared for each in ends]
    costs = [None if each is None or work.per_hour is None else each * work.per_hour / 3600.0 for each in times]
    price = None if work.per_hour is None else option.seconds * work.per_hour / 3600.0
    return PointReport(
        name=name_of(scenario),
        machine=machine_text(scenario.cluster),
        host=instance_name(scenario.cluster),
        servers=scenario.cluster.servers,
        iterations=work.compared,
        seconds=option.seconds,
        seconds_low=times[0],
        seconds_high=times[1],
        cost=price,
        cost_low=costs[0],
        cost_high=costs[1],
        meets=option.meets(goal),
        chance=option.known_chance(goal),
        row=row_of(estimate, None, studies.accesses.name, book),
        on_front=place is None or place.at_values,
        beaten_share=0.0 if place is None else place.share,
    )


def goal_report(goal: Goal) -> GoalReport:
    """The goal as a result."""
    limits = (goal.iteration_s, goal.epoch_s, goal.training_s, goal.per_hour, goal.most_cost)
    spent = goal.budget
    budget = None if spent is None else BudgetReport(spent.amount, spent.period, spent.hours_per_day)
    return GoalReport(goal.text, goal.minimise, goal.currency, *limits, goal.confidence, budget)


def search_report(found: Search, space: str, slower: int) -> SearchReport:
    """What became of all settings, in a sentence too. space: the machines in words; slower: settings that were left out
    since another one of their machine is faster by its estimate."""
    simulated = len(found.options)
    parts = [
        (slower, "slower than another on the same machine by their estimate"),
        (found.same, "duplicates"),
        (found.refused, "not possible"),
        (found.unpriced, "without a price or known iterations"),
        (found.too_large, "too large for the GPUs' memory"),
        (found.missed, "cannot meet the limit"),
        (found.beaten, "cannot be best"),
    ]
    told = [f"{count:,} {what}" for count, what in parts if count]
    of = "" if found.grid is None else f" of {found.grid:,}, picked by their bounds (Optuna)"
    settings = found.settings + slower
    twice = sum(count for count, _ in parts) + simulated - settings
    closest = f" ({twice:,} of them to find the closest)" if twice > 0 else ""
    text = f"{plural(settings, 'setting')}{of}: {', '.join([*told, f'{simulated:,} simulated{closest}'])}"
    counts = (found.same, found.refused, found.too_large, found.unpriced, found.missed, found.beaten)
    return SearchReport(space, settings, slower, *counts, simulated, text, found.grid)
