"""Where a question has several machines: the settings beside the recommended one that some would rather take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import inf

from gcnsim.errors import ScenarioError, plural
from gcnsim.hardware import PriceBook
from gcnsim.planning.answer import OtherMachine, Told
from gcnsim.planning.candidate import Candidate
from gcnsim.planning.grid import Grid, overlap_of
from gcnsim.planning.recommend import NEAR, SAME, Choice
from gcnsim.planning.rows import cost_of, rent_of
from gcnsim.planning.study_cache import StudyCache, baseline_of
from gcnsim.scenario import ClusterSpec, Scenario


def told_of(studies: StudyCache, scenario: Scenario, grid: Grid) -> Told:
    """A row of the answer, with full-graph training on its machine."""
    compared = baseline_of(scenario, overlap_of(grid))
    return studies.estimate(scenario), None if compared is None else studies.result(compared).metrics.iteration_s


def by_machine(
    studies: StudyCache, best: Choice, choices: Mapping[ClusterSpec, Choice], rows: Sequence[Told], grid: Grid
) -> list[Told]:
    """Of several machines the recommended setting on each other one, and what is best there, that are no rows."""
    chosen = best.estimate.scenario
    asked = {chosen, *(each.scenario for each, _ in rows)}
    others = [each for cluster, each in choices.items() if cluster != chosen.cluster]
    wanted = [replace(chosen, cluster=each.estimate.scenario.cluster) for each in others]
    more = dict.fromkeys(
        [*filter(lambda each: _answerable(studies, each), wanted), *(each.estimate.scenario for each in others)]
    )
    return [told_of(studies, each, grid) for each in more if each not in asked]


def _answerable(studies: StudyCache, scenario: Scenario) -> bool:
    try:
        studies.check(scenario)
    except ScenarioError:
        return False
    return True


def alternatives(
    studies: StudyCache, best: Choice, choices: Mapping[ClusterSpec, Choice], grid: Grid, book: PriceBook
) -> list[OtherMachine]:
    """Where several machines were asked for: the fewest GPUs within the interval of the fastest, and the cheapest."""
    if len(choices) < 2:
        return []
    fits = [each for each in choices.values() if each.estimate.result.fits is not False] or [best]
    fastest = best.estimate
    high_s = studies.estimate(fastest.scenario).high_s
    within = "3 % of the fastest" if high_s is None else "the interval of the fastest"
    limit = fastest.epoch_s * (1 + NEAR) if high_s is None else high_s * fastest.result.per_epoch
    near = [each for each in fits if each.estimate.epoch_s <= limit]
    gpus = min(each.estimate.scenario.cluster.gpus for each in near)
    few = [each for each in near if each.estimate.scenario.cluster.gpus == gpus]
    quick = min(each.estimate.epoch_s for each in few) * (1 + SAME)
    fewest = min((each for each in few if each.estimate.epoch_s <= quick), key=lambda each: _price(each, book))
    why = f"{plural(gpus, 'GPU')}, the fewest whose time is within {within}"
    found = [OtherMachine("fewest GPUs", told_of(studies, fewest.estimate.scenario, grid), why)]
    priced = [each for each in fits if _price(each, book)[0] < inf]
    if priced:
        cheapest = min(priced, key=lambda each: _price(each, book))
        cost = f"{_price(cheapest, book)[0]:.2g} {book.exchange.currency} per 1,000 {_unit(cheapest.estimate)}"
        why = f"{cost}, the lowest of {plural(len(priced), 'machine')}"
        if len(grid.bandwidths) > 1:
            why += "; bandwidth has no price"
        found.append(OtherMachine("cheapest", told_of(studies, cheapest.estimate.scenario, grid), why))
    return found


def _price(choice: Choice, book: PriceBook) -> tuple[float, float]:
    """The cost of a thousand epochs, infinite where no price is known, and seconds of an epoch."""
    known = cost_of(rent_of(choice.estimate.scenario.cluster, book), 1000.0 * choice.estimate.epoch_s)
    return inf if known is None else known, choice.estimate.epoch_s


def _unit(estimate: Candidate) -> str:
    return "iterations" if estimate.result.per_epoch == 1 else "epochs"
