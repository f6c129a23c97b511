"""The whole recommendation: search, choice, front, confirmation, what decides, and what other rules would bring."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from gcnsim.capacity.approximation import held
from gcnsim.capacity.confirm import confirm
from gcnsim.capacity.effects import decides_text, knob_effects
from gcnsim.capacity.front import Place, front
from gcnsim.capacity.goal import Goal
from gcnsim.capacity.machines import Machines, Permitted, rule_of
from gcnsim.capacity.missed import missed
from gcnsim.capacity.points import goal_report, point_of, search_report
from gcnsim.capacity.sampled import LIMIT, picked
from gcnsim.capacity.search import Option, Search, best_of, excess_of, search
from gcnsim.capacity.sentences import compared_text, confirmation_text, confirmed_of, runner_up, verdict
from gcnsim.errors import ScenarioError
from gcnsim.graph import Graph, graph_notes
from gcnsim.hardware import PriceBook
from gcnsim.planning import StudyCache, Subject, Target, provenance
from gcnsim.planning.certainty import label_of, tornado
from gcnsim.planning.rows import prices_report
from gcnsim.results import Advice
from gcnsim.scenario import Scenario, to_mapping
from gcnsim.simulation import Result
from gcnsim.sources import resolve_model

Say = Callable[[str], object]


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked. target: an accuracy to be reached, with what says how many iterations that takes. limit: settings
    of which bounds are computed; of more, so many are picked."""

    goal: Goal
    machines: Machines = field(default_factory=Machines)
    permitted: Permitted = field(default_factory=Permitted)
    prices: PriceBook = field(default_factory=PriceBook)
    target: Target | None = None
    limit: int = LIMIT


class Recommended(NamedTuple):
    """What was found. chosen: the run of the choice."""

    advice: Advice
    chosen: Result
    studies: StudyCache


def recommend(
    base: Scenario,
    question: Question,
    processes: int = 1,
    graph: Graph | None = None,
    progress: Say = lambda _: None,
    notice: Say = lambda _: None,
) -> Recommended:
    """Answer the question over its machines and settings; notice: of what is odd about a graph.

    Raises ScenarioError where there is nothing to choose.
    """
    progress("reading the workload")
    studies = StudyCache(base, processes, graph)
    if studies.accesses.graph is not None:
        for line in graph_notes(studies.accesses.graph):
            notice(line)
    goal, book = question.goal, question.prices
    training = _training(studies, base, question.target)
    every = _settings(studies, base, question, training)
    progress(f"bounds of {len(every):,} settings")
    found = search(
        studies, every, goal, book, training,
        lambda done, left: progress(f"simulating settings: {done} done, at most {left} to do"),
        lambda asked, bounded: picked(asked, question.limit, base.run.seed, bounded),
        question.limit,
    )  # fmt: skip
    _refuse_nothing(found)
    meeting = best_of([each for each in found.options if each.meets(goal)], goal)
    ranked = meeting or sorted(found.options, key=lambda each: excess_of(each, goal))
    progress("the best three by the reference engine")
    confirmed = confirm(studies, ranked)
    advice = _advice(studies, base, question, found, ranked, bool(meeting), progress)
    advice = replace(advice, confirmed=confirmed_of(confirmed), confirmation=confirmation_text(confirmed))
    return Recommended(advice, ranked[0].candidate.result, studies)


def _advice(
    studies: StudyCache,
    base: Scenario,
    question: Question,
    found: Search,
    ranked: list[Option],
    met: bool,
    progress: Say,
) -> Advice:
    goal, chosen = question.goal, ranked[0]
    places = front(ranked) if met else [Place(chosen, True, 0.0)]
    progress("what each knob and each assumption does")
    knobs = knob_effects(studies, chosen, found)
    assumptions = tuple(tornado(studies, chosen.candidate))
    point = point_of(studies, chosen, goal, question.prices)
    rule = rule_of(question.machines.methods, question.permitted)
    kept = held(studies, chosen, question.machines, question.permitted, goal, on_record=question.target is not None)
    asked = to_mapping(replace(base, cluster=chosen.scenario.cluster, method=chosen.scenario.method))
    return Advice(
        scenario=asked,
        provenance=provenance(studies, chosen.scenario, [studies.estimate(chosen.scenario)], {"goal": goal.text}),
        goal=goal_report(goal),
        compared=compared_text(chosen),
        verdict=verdict(point, goal, met),
        choice=point,
        runner_up=runner_up(studies, ranked, goal, question.prices) if met else None,
        front=tuple(point_of(studies, each.option, goal, question.prices, each) for each in places),
        limited_by=point.row.limited_by,
        search=search_report(found),
        confirmed=(),
        confirmation="",
        knobs=knobs,
        assumptions=assumptions,
        decides=decides_text(chosen, knobs, assumptions),
        held=kept,
        calibrated=label_of(chosen.scenario) == "CALIBRATED",
        label=label_of(chosen.scenario),
        missed=None if met else missed(studies, chosen, goal, question.prices, rule, kept.relaxed),
        prices=prices_report(question.prices),
    )


def _settings(
    studies: StudyCache, base: Scenario, question: Question, training: Callable[[Scenario], int | None] | None
) -> list[Scenario]:
    """The settings that may be recommended: those that are not too approximate, or whose accuracy is on record."""
    machines, permitted = question.machines, question.permitted
    clusters = machines.clusters(base.cluster, question.prices, studies.accesses.most_gpus)
    every = [each for cluster in clusters for each in machines.settings(base, cluster)]
    if training is not None and not permitted.explicit:
        return [each for each in every if permitted.allows(each) or training(each) is not None]
    kept = [each for each in every if permitted.allows(each)]
    if not kept:
        raise ScenarioError(
            f"--least-epsilon: no setting asked for has {permitted.text}; allow more, or give recorded runs (--runs)"
        )
    return kept


def _training(studies: StudyCache, base: Scenario, target: Target | None) -> Callable[[Scenario], int | None] | None:
    """Iterations until the accuracy asked for, by setting; None where none was asked for."""
    if target is None:
        return None
    accesses = studies.accesses
    model = resolve_model(base.workload, accesses.declared)
    subject = Subject(accesses.graph_hash if target.curves else None, accesses.name, model)
    return lambda scenario: target.reached(scenario, subject)[0]


def _refuse_nothing(found: Search) -> None:
    """Raises ScenarioError where nothing could be simulated."""
    if found.options:
        return
    if found.unpriced and not found.too_large:
        raise ScenarioError(
            "--minimise: of no setting both price and iterations are known; give --price, or --runs or "
            "--target-iterations of these methods"
        )
    if found.too_large:
        raise ScenarioError(f"--gpus: none of {found.too_large} settings fits the GPUs' memory; give more GPUs")
    raise ScenarioError(f"--method: none of {found.settings} settings is allowed on these machines")
