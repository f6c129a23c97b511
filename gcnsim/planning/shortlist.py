"""The candidates that the rule allows on a machine, and the shortlist of those worth simulating.

Candidates are ranked by their analytic estimate. What-if and recommend share this module.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import inf
from typing import Final

from gcnsim.core.ids import Seconds
from gcnsim.methods import Method, create_method, method_type
from gcnsim.planning.candidate import canonical
from gcnsim.planning.recommend import NEAR, Rule, approximation_key, rate_of
from gcnsim.planning.study import Studies
from gcnsim.scenario import Scenario

RATES: Final = (1.0, 0.5, 0.2, 0.1)
"""Sampling rates of candidates."""

SIMULATED: Final = 3
"""The number of candidates simulated for a method with staleness; other methods get one."""

MAX_RATIO: Final = 2.0
"""A method's best candidate is not simulated if its estimate exceeds the best by this factor."""


def usual_rows(scenario: Scenario, names: Sequence[str]) -> list[Scenario]:
    """Return the settings on the scenario's machine that are compared without named knobs: each method with its
    defaults.
    """
    base = scenario.method
    methods = [base if base.name == name else create_method(name) for name in names]
    return [replace(scenario, method=method.overlapping(base.overlap)) for method in methods]


def candidates(scenario: Scenario, rule: Rule) -> list[Scenario]:
    """Return the settings considered on the scenario's machine, least approximate first."""
    every = dict.fromkeys(one for name in rule.methods for one in _of_method(scenario, name, rule))
    return sorted(every, key=approximation_key)


def _of_method(scenario: Scenario, name: str, rule: Rule) -> Iterator[Scenario]:
    least = rule.min_sampling_rate
    rates = [rate for rate in dict.fromkeys((*RATES, least)) if rate >= least]
    kind, base = method_type(name), scenario.method
    start = base if isinstance(base, kind) else kind()
    for method in start.at_tau(0).overlapping(base.overlap).candidates(rates):
        if method.tau > rule.max_staleness:
            continue
        simplest = method.canonical()
        yield replace(scenario, method=simplest if simplest.name in rule.methods else method)


def extremes(every: Sequence[Scenario]) -> list[Scenario]:
    """Return the candidates of a machine that include the one with the lowest bound, without computing any.

    Of each method the stalest, with the largest cache, at the lowest and the highest sampling rate: waiting and rows
    lengthen an iteration, and sampling itself takes time. Methods from elsewhere may use knobs otherwise, so all of
    theirs are returned.
    """
    found: dict[tuple[str, float], Scenario] = {}
    others = [one for one in every if not type(one.method).__module__.startswith("gcnsim.")]
    own = [one for one in every if one not in others]
    for setting in sorted(own, key=lambda one: (one.method.tau, one.method.cache.fraction or 0.0)):
        found[setting.method.name, rate_of(setting.method)] = setting
    rates = {name: [rate for other, rate in found if other == name] for name, _ in found}
    ends = [one for (name, rate), one in found.items() if rate in (min(rates[name]), max(rates[name]))]
    return [*ends, *others]


def shortlist(studies: Studies, scenario: Scenario, rule: Rule) -> list[Scenario]:
    """Return the candidates that are worth simulating: every one whose estimate is within NEAR of the best.

    It adds the best of three taus of psc-gcn and the best candidate of every other method. The estimate ignores the
    gain from a second iteration of slack, so tau above 1 uses the estimate of tau 1.
    """
    known = _estimated(studies, candidates(scenario, rule))
    settings = [setting for setting, seconds in known.items() if seconds < inf]
    if not settings:
        return []
    held = {setting: studies.fits(setting) for setting in settings}
    order = [
        one for holds in (True, False) for one in sort_by_estimate([s for s in settings if held[s] is holds], known)
    ]
    kinds = [method_type(name) for name in rule.methods]
    chosen = [one for kind in kinds if kind.has("tau") for one in _best_by_tau(order, kind)]
    least = min(known[setting] for setting in settings)
    for kind in kinds:
        own = next((setting for setting in order if setting.method.name == kind.name), None)
        if own is not None and not kind.has("tau") and known[own] <= MAX_RATIO * least:
            chosen.append(own)
    near = [setting for setting in order if held[setting] and known[setting] <= least * (1 + NEAR)]
    return list(dict.fromkeys([*chosen, *near]))


def _best_by_tau(order: Sequence[Scenario], kind: type[Method]) -> list[Scenario]:
    """Return the most promising setting of a method with staleness for each tau."""
    firsts: dict[int, Scenario] = {}
    for setting in order:
        if kind.as_this_method(setting.method) is not None:
            firsts.setdefault(setting.method.tau, setting)
    return list(firsts.values())[:SIMULATED]


def _estimated(studies: Studies, settings: Sequence[Scenario]) -> dict[Scenario, Seconds]:
    """Return the estimates of the settings that may be among the best, in order.

    A cache slows nothing down, so smaller caches are estimated only if the largest that fits is near the best.
    """

    def twin(setting: Scenario) -> Scenario:
        return canonical(replace(setting, method=setting.method.at_tau(min(setting.method.tau, 1))))

    twins = {setting: twin(setting) for setting in settings}
    alike: dict[tuple[str, int, float], list[Scenario]] = {}
    for setting in sorted(settings, key=lambda setting: -(setting.method.cache.fraction or 0.0)):
        alike.setdefault((setting.method.name, min(setting.method.tau, 1), rate_of(setting.method)), []).append(setting)
    largest = [next((setting for setting in group if studies.fits(setting)), group[0]) for group in alike.values()]
    known = _estimates_of(studies, [twins[setting] for setting in largest])
    limit = min(known.values(), default=0.0) * (1 + NEAR)
    near = [group for group, first in zip(alike.values(), largest, strict=True) if known[twins[first]] <= limit]
    more = dict.fromkeys(twins[setting] for group in near for setting in group)
    known |= _estimates_of(studies, [setting for setting in more if setting not in known])
    return {setting: known[twins[setting]] for setting in settings if twins[setting] in known}


def _estimates_of(studies: Studies, settings: Sequence[Scenario]) -> dict[Scenario, Seconds]:
    distinct = list(dict.fromkeys(settings))
    return dict(zip(distinct, studies.estimates(distinct), strict=True))


def sort_by_estimate(settings: Sequence[Scenario], known: Mapping[Scenario, Seconds]) -> list[Scenario]:
    """Sort settings: those near the best estimate by approximation_key, then the rest by time."""
    limit = min((known[setting] for setting in settings), default=0.0) * (1 + NEAR)
    near = [setting for setting in settings if known[setting] <= limit]
    far = [setting for setting in settings if known[setting] > limit]
    return sorted(near, key=approximation_key) + sorted(far, key=lambda one: known[one])
