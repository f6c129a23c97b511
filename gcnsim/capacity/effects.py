"""What decides: each knob over the values asked for, from the choice, beside each assumption over its range."""

from __future__ import annotations

from collections.abc import Sequence
from math import log
from typing import Final

from gcnsim.capacity.goal import time_text
from gcnsim.capacity.machines import instance_name
from gcnsim.capacity.search import Option, Search, Setting, simulate
from gcnsim.planning import StudyCache
from gcnsim.planning.measure_first import how_to_measure, span_of
from gcnsim.planning.recommend import rate_of
from gcnsim.results import MEASURE_CORES, NO_RANGE, AssumptionEffect, KnobEffect
from gcnsim.scenario import Scenario, setting_text
from gcnsim.units import format_gbps

METHOD: Final = "method"


def coordinates(scenario: Scenario) -> dict[str, str]:
    """Where a setting stands in each knob, as words."""
    cluster, method = scenario.cluster, scenario.method
    instance = instance_name(cluster)
    found = {"machine": instance or cluster.device, "GPUs": str(cluster.gpus)}
    if instance is None:
        found["bandwidth"] = format_gbps(cluster.bandwidth)
    cache = method.cache.describe()
    return found | {METHOD: method.name, "tau": str(method.tau), "rate": f"{rate_of(method):g}", "cache": cache}


def knob_effects(studies: StudyCache, chosen: Option, found: Search) -> tuple[KnobEffect, ...]:
    """Each knob alone, the one that moves the time most first; those with one value are left out."""
    known = {each.setting: each for each in found.options}
    here = coordinates(chosen.scenario)
    moved = {knob: _variants(chosen, found.considered, knob) for knob in here}
    wanted = [each for settings in moved.values() for each in settings if each not in known]
    known |= {each.setting: each for each in simulate(studies, list(dict.fromkeys(wanted)))}
    effects = [
        _effect(knob, here[knob], [chosen, *(known[each] for each in settings)])
        for knob, settings in moved.items()
        if settings
    ]
    return tuple(sorted(effects, key=lambda each: -log(each.seconds_high / each.seconds_low)))


def _variants(chosen: Option, considered: Sequence[Setting], knob: str) -> list[Setting]:
    """The settings that differ from the choice in this knob alone; of each other method, which has other knobs, the one
    of the least time at its bound on the same machine."""
    if knob != METHOD:
        here = coordinates(chosen.scenario)
        return [each for each in considered if _apart(coordinates(each.scenario), here) == {knob}]
    best: dict[str, Setting] = {}
    for each in considered:
        method = each.scenario.method
        other = method.name != chosen.scenario.method.name and rate_of(method) >= rate_of(chosen.scenario.method)
        if other and each.scenario.cluster == chosen.scenario.cluster:
            first = best.setdefault(method.name, each)
            best[method.name] = min(first, each, key=lambda one: one.least)
    return list(best.values())


def _apart(one: dict[str, str], other: dict[str, str]) -> set[str]:
    return {knob for knob in {*one, *other} if one.get(knob) != other.get(knob)}


def _effect(knob: str, value: str, options: Sequence[Option]) -> KnobEffect:
    least, most = (pick(options, key=lambda each: each.seconds) for pick in (min, max))
    low, high = (_word(each, knob) for each in (least, most))
    costs = [None if each.work.per_hour is None else each.seconds * each.work.per_hour / 3600.0 for each in options]
    known = [each for each in costs if each is not None]
    ends = (min(known), max(known)) if len(known) == len(costs) else (None, None)
    return KnobEffect(knob, value, low, high, least.seconds, most.seconds, *ends)


def _word(option: Option, knob: str) -> str:
    return setting_text(option.scenario.method) if knob == METHOD else coordinates(option.scenario)[knob]


def decides_text(chosen: Option, knobs: Sequence[KnobEffect], assumptions: Sequence[AssumptionEffect]) -> str:
    """Whether what can be chosen or what is not known moves the time more, and by what most."""
    if not chosen.candidate.ranged:
        return f"the answer depends mostly on how far off {NO_RANGE} are: {MEASURE_CORES}"
    spans: list[tuple[float, str]] = []
    if assumptions:
        one = max(assumptions, key=span_of)
        low, high = sorted((one.iteration_s_low, one.iteration_s_high))
        work = chosen.work.compared
        ends = f"{one.name}: {time_text(low * work)} to {time_text(high * work)}"
        how = how_to_measure(chosen.scenario, one.name)
        spans.append((span_of(one), f"an assumption without a measurement ({ends}): {how}"))
    if knobs and time_text(knobs[0].seconds_low) != time_text(knobs[0].seconds_high):
        first = knobs[0]
        ends = f"{time_text(first.seconds_low)} to {time_text(first.seconds_high)}"
        spans.append((log(first.seconds_high / first.seconds_low), f"your choice of {first.knob} ({ends})"))
    if not spans:
        return ""
    spans.sort(key=lambda each: -each[0])
    more, *less = [text for _, text in spans]
    return f"the answer depends mostly on {more}{''.join(f'; less on {each}' for each in less)}"
