"""Which knobs to choose: the least approximate setting that is about as fast as the fastest.

Staleness and sampling trade accuracy for time, so of settings within NEAR of the fastest the one with the largest
epsilon, then the smallest tau, then the smallest cache is recommended. Candidates are ranked by their analytic
estimate; the best three are simulated. Rates below 0.1 are not recommended unasked: PSC-GCN (Table II) reports
accuracy at 0.1 equal to or above that of full-graph training on its three datasets, and 3.2 points below it on
ogbn-products at 0.01.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

from gcnsim.ids import Seconds
from gcnsim.knobs import COMPARED
from gcnsim.planning.workshop import Workshop, canonical, with_knobs
from gcnsim.scenario import CacheSize, Scenario
from gcnsim.study import Result

NEAR = 0.03
"""Settings within 3 % of the fastest count as equally fast."""

TAUS = (0, 1, 2, 3)
EPSILONS = (1.0, 0.5, 0.2, 0.1)
CACHES = (0.0, 0.1, 0.3)
SIMULATED = 3


def mildness(scenario: Scenario) -> tuple[float, int, float, float]:
    """What a setting gives up, for sorting: less sampling, less staleness, less cache memory first."""
    method = scenario.method
    return (-method.epsilon, method.tau, method.cache.fraction or 0.0, method.cache.nbytes or 0.0)


def candidates(scenario: Scenario) -> list[Scenario]:
    """The settings considered, the mildest first."""
    grid = [
        with_knobs(scenario, tau, epsilon, CacheSize(fraction=cache))
        for epsilon, tau, cache in product(EPSILONS, TAUS, CACHES)
    ]
    return sorted(dict.fromkeys(grid), key=mildness)


def ranked(workshop: Workshop, scenario: Scenario) -> list[Scenario]:
    """The candidates, most promising first: those near the best analytic estimate by mildness, then the rest by time;
    at the end, in the same order, those that the GPUs do not hold.

    The estimate does not see what a second iteration of slack brings, so tau above 1 takes the estimate of tau 1.
    """
    settings = candidates(scenario)
    twins = {
        each: with_knobs(each, min(each.method.tau, 1), each.method.epsilon, each.method.cache) for each in settings
    }
    distinct = list(dict.fromkeys(twins.values()))
    guesses = dict(zip(distinct, workshop.guesses(distinct), strict=True))
    known = {each: guesses[twins[each]] for each in settings}
    held = [each for each in settings if workshop.holds(each)]
    return _by_promise(held, known) + _by_promise([each for each in settings if each not in held], known)


def _by_promise(settings: Sequence[Scenario], known: Mapping[Scenario, Seconds]) -> list[Scenario]:
    """Those near the best estimate by mildness, then the rest by time."""
    limit = min((known[each] for each in settings), default=0.0) * (1 + NEAR)
    near = [each for each in settings if known[each] <= limit]
    far = [each for each in settings if known[each] > limit]
    return sorted(near, key=mildness) + sorted(far, key=lambda each: known[each])


def finalists(workshop: Workshop, scenario: Scenario) -> list[Scenario]:
    """The best candidate of each tau by analytic estimate, the first three: the estimate cannot tell taus apart."""
    order = ranked(workshop, scenario)
    best = {tau: next(each for each in order if each.method.tau == tau) for tau in TAUS}
    return sorted(best.values(), key=order.index)[:SIMULATED]


def recommend(workshop: Workshop, settings: Sequence[Scenario]) -> tuple[Result, str]:
    """The mildest of the simulated `settings` that is about as fast as the fastest, and why."""
    workshop.prepare(settings)
    results = [workshop.result(each) for each in dict.fromkeys(canonical(each) for each in settings)]
    # What does not fit cannot be run; where nothing does, the fastest is told, and that it does not fit.
    held = [each for each in results if each.fits is not False]
    results = held or results
    fastest = min(results, key=lambda each: each.metrics.iteration_s)
    near = [each for each in results if each.metrics.iteration_s <= fastest.metrics.iteration_s * (1 + NEAR)]
    chosen = min(near, key=lambda each: mildness(each.scenario))
    why = _why(chosen, fastest, len(results))
    return chosen, why if held else f"none of {len(results)} simulated settings fits the GPUs' memory; {why}"


def recommendable(scenario: Scenario) -> bool:
    """Whether a setting that was asked for may be recommended: its rate is one that keeps published accuracy.

    What is recommended is tau, epsilon and a cache; settings that draw boundary nodes,
    and systems of another kind, are only shown beside it.
    """
    method = scenario.method
    return method.name in COMPARED and method.epsilon >= EPSILONS[-1] and method.rate == 1.0


def _why(chosen: Result, fastest: Result, count: int) -> str:
    limit = f"its bottleneck is {chosen.metrics.bottleneck}"
    if chosen is fastest:
        return f"fastest of {count} simulated settings with epsilon of at least {EPSILONS[-1]:g}; {limit}"
    lost = 100 * (chosen.metrics.iteration_s / fastest.metrics.iteration_s - 1)
    other = fastest.scenario.method
    setting = f"tau {other.tau}, epsilon {other.epsilon:g}, cache {other.cache.describe()}"
    return f"within {lost:.1f} % of the fastest of {count} ({setting}) with less staleness, sampling or cache; {limit}"
