"""Build the recommendation: search, choice, Pareto front, confirmation, deciding figures, and the effect of other
rules.

Accuracy is never traded silently: the answer shows what a stricter and a looser rule would choose on the same machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, NamedTuple

from gcnsim.core.clock import TimeLeft
from gcnsim.core.errors import ScenarioError
from gcnsim.graph import Graph, graph_notes
from gcnsim.hardware import SPOT, PriceBook, Rent
from gcnsim.planning.candidate import canonical, central
from gcnsim.planning.capacity_choice import (
    Decision,
    compared_text,
    confirm,
    confirmation_text,
    decide,
    front,
    goal_report,
    point_of,
    runner_up,
    search_report,
    summary_sentence,
)
from gcnsim.planning.capacity_effects import assumption_effects, decides_text, knob_effects, unmet_goal
from gcnsim.planning.capacity_goal import Goal, Iterations
from gcnsim.planning.capacity_search import (
    ENDLESS,
    Option,
    Search,
    Setting,
    needs_price,
    search,
    simulate,
    with_bounds,
)
from gcnsim.planning.capacity_settings import (
    FIRST,
    LIMIT,
    MANY,
    Considered,
    considered,
    measured_only,
    nsga2_sample,
    worth_listing,
)
from gcnsim.planning.certainty import label_of
from gcnsim.planning.energy import Site, energy_report, refuse_power, without_lower
from gcnsim.planning.machines import Machines, space_text
from gcnsim.planning.provenance import provenance
from gcnsim.planning.recommend import Rule, mildest, rate_of
from gcnsim.planning.rows import prices_report, rent_of
from gcnsim.planning.shortlist import shortlist
from gcnsim.planning.study import Studies
from gcnsim.planning.time_to_accuracy import Subject, Target, to_target
from gcnsim.results import Advice, EnergyReport, OtherRule, SearchReport, TargetRow
from gcnsim.scenario import ClusterSpec, Scenario, setting_text, to_mapping
from gcnsim.scenario.machine import resolve_machine
from gcnsim.simulation import Result
from gcnsim.simulation.assumed import refuse_unused_figures

Say = Callable[[str], object]


@dataclass(frozen=True, slots=True)
class Question:
    """A capacity question.

    knobs: the values of knobs to choose from, by the path of the field. rule: what may be recommended. target: an
    accuracy, with the source of the iterations it takes. limit: the number of settings whose bounds are computed;
    larger spaces are sampled. strict: whether the rule also applies to settings whose iterations to the accuracy are
    known. site: where the machine stands, None where no energy is asked for.
    """

    goal: Goal
    machines: Machines = field(default_factory=Machines)
    knobs: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    rule: Rule = field(default_factory=Rule)
    prices: PriceBook = field(default_factory=PriceBook)
    target: Target | None = None
    limit: int = LIMIT
    strict: bool = False
    site: Site | None = None


class Recommended(NamedTuple):
    """The result of a search. chosen: the study of the choice; studies: what it was computed with."""

    advice: Advice
    chosen: Result
    studies: Studies


def recommend(
    base: Scenario,
    question: Question,
    processes: int = 1,
    graph: Graph | None = None,
    progress: Say = lambda _: None,
    notice: Say = lambda _: None,
) -> Recommended:
    """Answer the question over its machines and settings. notice: a callback for warnings about the graph.

    Raises ScenarioError if there is nothing to choose from.
    """
    progress("reading the workload")
    studies = Studies(base, processes, graph)
    if studies.accesses.graph is not None:
        for line in graph_notes(studies.accesses.graph):
            notice(line)
    goal, book, rule = question.goal, question.prices, question.rule
    target = question.target
    training = None if target is None else partial(_needed, target, Subject.of(studies.accesses, base, target))
    clusters = question.machines.clusters(base.cluster, book, studies.accesses.most_gpus)
    asked, line = [resolve_machine(cluster) for cluster in clusters], ""
    refuse_unused_figures(asked, energy=question.site is not None)
    if question.site is not None:
        site, line = without_lower(question.site, asked)
        refuse_power(asked, site)
        question = replace(question, site=site)
    if target is not None and target.failures is not None:
        failing, every = target.failures, clusters
        clusters = [cluster for cluster in every if failing.ends(cluster.servers)]
        if every and not clusters:
            raise ScenarioError(ENDLESS)
    progress(f"settings on {len(clusters):,} machines")
    rents = {cluster: rent_of(cluster, book) for cluster in clusters}
    some = measured_only(_considered(studies, base, question, rents, training))
    if not some.settings:
        raise ScenarioError(
            f"--min-sampling-rate: no setting asked for has {rule.limits}; allow more (--min-sampling-rate, "
            "--max-staleness), or give recorded runs (--runs)"
        )
    progress(f"bounds of {len(some.settings):,} settings")
    left = TimeLeft(None)

    def simulated(done: int, most: int) -> None:
        total = done + most
        progress(f"simulating settings: {done:,} of at most {total:,}{left.text(done, total)}")

    sample = partial(nsga2_sample, limit=question.limit, seed=base.run.seed)
    failures = None if target is None else target.failures
    searched = search(studies, some.settings, goal, book, training, simulated, sample, question.limit, failures)
    _refuse_nothing(searched, target, book, clusters)
    progress("the chance of meeting the target")
    decision = decide(searched.options, goal, some.shown)
    searched = _with_unlisted(studies, searched, some, decision.ranked[0].scenario, rents)
    report = search_report(searched, space_text(clusters), some.slower)
    advice = _advice(studies, base, question, searched, report, decision, progress)
    said = [line] if line else []
    advice = replace(advice, provenance=replace(advice.provenance, warnings=(*said, *advice.provenance.warnings)))
    return Recommended(advice, decision.ranked[0].candidate.result, studies)


def _considered(
    studies: Studies,
    base: Scenario,
    question: Question,
    rents: Mapping[ClusterSpec, Rent | None],
    training: Iterations | None,
) -> Considered:
    """Return the settings that may be the best, of all machines, or of those that can still win."""
    target, clusters = question.target, list(rents)
    compared = needs_price(question.goal) or None not in rents.values()
    lazily = compared and not question.knobs and target is None and FIRST < len(clusters) <= question.limit // MANY
    if lazily:
        return worth_listing(studies, base, clusters, question.rule, question.goal, rents)
    on_record = target is not None and target.by_method and not question.strict
    return considered(studies, base, clusters, question.knobs, question.rule, training, on_record=on_record)


def _with_unlisted(
    studies: Studies,
    searched: Search,
    some: Considered,
    chosen: Scenario,
    rents: Mapping[ClusterSpec, Rent | None],
) -> Search:
    """Return the search with the settings of machines that were not listed, and with the choice on these machines, as
    far as it fits: what the machine changes is told of all of them.
    """
    there = [replace(chosen, cluster=cluster) for cluster in some.unlisted]
    moved = [one for one in with_bounds(studies, there, rents) if studies.fits(one.scenario)]
    return replace(
        searched,
        considered=(*searched.considered, *moved),
        settings=searched.settings + some.beaten + some.missed,
        beaten=searched.beaten + some.beaten,
        missed=searched.missed + some.missed,
    )


def _advice(
    studies: Studies,
    base: Scenario,
    question: Question,
    searched: Search,
    report: SearchReport,
    decision: Decision,
    progress: Say,
) -> Advice:
    progress("the best three by the reference engine")
    confirmed = confirm(studies, decision.ranked)
    goal, book, (ranked, met) = question.goal, question.prices, decision
    chosen = ranked[0]
    first = front(ranked) if met else [chosen]
    progress("what each knob and each assumption does")
    knobs = knob_effects(studies, chosen, searched)
    assumptions = assumption_effects(studies, chosen)
    point = point_of(studies, chosen, goal, book, first)
    others = other_rules(studies, chosen, question.rule, goal)
    label = label_of(chosen.scenario)
    training = _to_done(studies, base, chosen, question)
    return Advice(
        scenario=to_mapping(replace(base, cluster=chosen.scenario.cluster, method=chosen.scenario.method)),
        provenance=provenance(studies, chosen.scenario, [studies.estimate(chosen.scenario)], {"goal": goal.text}),
        goal=goal_report(goal),
        compared=compared_text(chosen),
        verdict=summary_sentence(point, goal, report, met=met),
        choice=point,
        runner_up=runner_up(studies, ranked, goal, book, first) if met else None,
        front=tuple(point_of(studies, option, goal, book, first) for option in first),
        limited_by=point.row.limited_by,
        search=report,
        confirmed=confirmed,
        confirmation=confirmation_text(confirmed),
        knobs=knobs,
        assumptions=assumptions,
        decides=decides_text(chosen, knobs, assumptions),
        rule=question.rule.report("--method"),
        other_rules=others,
        calibrated=label == "CALIBRATED",
        label=label,
        missed=None if met else unmet_goal(studies, chosen, goal, book, question.rule, others, assumptions),
        prices=prices_report(book),
        training=training,
        energy=_energy(studies, chosen, question, training),
    )


def _needed(target: Target, subject: Subject, scenario: Scenario) -> int | None:
    """Return the iterations of a setting's training, None if unknown."""
    return target.reached(scenario, subject)[0]


def _to_done(studies: Studies, base: Scenario, chosen: Option, question: Question) -> TargetRow | None:
    """Return time and cost of the choice's training, also with failures and at the other price; None if not asked."""
    target = question.target
    if target is None:
        return None
    subject = Subject.of(studies.accesses, base, target)
    return to_target(target, studies.estimate(chosen.scenario), subject, question.prices)


def _energy(studies: Studies, chosen: Option, question: Question, training: TargetRow | None) -> EnergyReport | None:
    """Return the energy of the choice; None if not asked."""
    if question.site is None:
        return None
    row, rows = studies.estimate(chosen.scenario), [] if training is None else [training]
    return energy_report([row], question.site, studies.seed, question.target, rows)


def _refuse_nothing(searched: Search, target: Target | None, book: PriceBook, clusters: Sequence[ClusterSpec]) -> None:
    """Raise ScenarioError if no setting could be simulated."""
    if searched.options:
        return
    if target is not None and not target.given and not target.curves:
        raise ScenarioError(
            "--target-accuracy: how many iterations it takes is not known; give your figure (--iterations-needed), or "
            "recorded runs (--runs)"
        )
    if searched.unpriced and book.pricing == SPOT and all(rent_of(cluster, book) is None for cluster in clusters):
        raise ScenarioError(
            "--pricing: no spot price of these machines is known; give --price, or leave out --pricing spot"
        )
    if searched.unpriced and not searched.too_large:
        raise ScenarioError(
            "--minimise: no setting has both a known price and known iterations; give --price, or --runs or "
            "--iterations-needed for these methods"
        )
    if searched.too_large:
        raise ScenarioError(
            f"--gpus: none of {searched.too_large} settings fits the memory of GPUs and servers; give more"
        )
    raise ScenarioError(f"--method: none of {searched.settings} settings is allowed on these machines")


RATES: Final = (1.0, 0.5, 0.1)
TAUS: Final = (0, 1, 2)


def other_rules(studies: Studies, chosen: Option, rule: Rule, goal: Goal) -> tuple[OtherRule, ...]:
    """Return the choice under each stricter rule (that the current choice breaks) and each looser one, on the same
    machine.
    """
    if chosen.work.training is not None:
        # The iterations that another method needs are not known here.
        rule = replace(rule, methods=(chosen.scenario.method.name,))
    reports = [_other_rule(studies, chosen, option, other, goal) for option, other in _rules(chosen.scenario, rule)]
    return tuple(report for report in reports if report is not None)


def _rules(scenario: Scenario, rule: Rule) -> Iterator[tuple[str, Rule]]:
    """Return the rules, each with the option that states it."""
    rate, tau = rate_of(scenario.method), scenario.method.tau
    for least in RATES:
        if rate < least or least < rule.min_sampling_rate:
            yield f"--min-sampling-rate {least:g}", replace(rule, min_sampling_rate=least)
    for most in TAUS:
        if most < tau or most > rule.max_staleness:
            yield f"--max-staleness {most}", replace(rule, max_staleness=most)


def _other_rule(studies: Studies, chosen: Option, option: str, rule: Rule, goal: Goal) -> OtherRule | None:
    """Return the choice under another rule on the same machine, compared with the current one; None if it is the same
    or empty.
    """
    try:
        settings = [setting for setting in shortlist(studies, chosen.scenario, rule) if studies.fits(setting)]
    except ScenarioError:
        settings = []
    if not settings:
        return None
    rate = chosen.setting.rate
    # Of another method an epoch may take other iterations.
    works = [replace(chosen.work, per_epoch=found.per_epoch) for found in studies.analytic(settings)]
    options = simulate(
        studies, [Setting(setting, work, 0.0, rate) for setting, work in zip(settings, works, strict=True)]
    )
    best = mildest(options, (), lambda one: one.scenario, lambda one: one.seconds)
    if canonical(best.scenario) == canonical(chosen.scenario):
        return None
    now = 1.0 - best.seconds / chosen.seconds
    name, chance = setting_text(best.scenario.method), best.chance(goal)
    low, high = central(1.0 - best.over(chosen))
    ends = (min(low, now), max(high, now))
    return OtherRule(option, name, best.seconds, best.cost, now, *ends, best.meets(goal), chance)
