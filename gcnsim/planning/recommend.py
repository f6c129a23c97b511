"""Which setting to choose: of those that may be recommended, the least approximate one that is about as fast as the
fastest.

One rule says what may be recommended (`Rule`), by every command: the methods asked for by name, else those that a
question compares, no sampling below a least rate, whatever is sampled, and no values older than a limit. Staleness and
sampling trade accuracy for time, so among settings within NEAR of the fastest the one with the largest rate, then the
smallest tau, then the smallest cache is taken, unless a setting that was asked for itself is faster (by more than
SAME). Candidates are ranked by their analytic estimate; the most promising are simulated.

A least rate of 0.1: PSC-GCN (Table II) reports accuracy at 0.1 equal to or above that of full-graph training on its
three datasets, and 3.2 points below it on ogbn-products at 0.01; BNS-GCN (Table 4) reports scores at 0.1 equal to or
above those at 1 on its three, at every number of partitions.

At most 2 iterations of staleness: the default of psc-gcn. No published accuracy of more is known here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Any, Final, TypeVar

import numpy as np

from gcnsim.errors import ScenarioError, plural
from gcnsim.ids import BoolArray, Seconds
from gcnsim.methods import COMPARED, Method, create_method, method_type
from gcnsim.planning.candidate import Candidate
from gcnsim.planning.study_cache import StudyCache, canonical
from gcnsim.results import RuleReport
from gcnsim.scenario import Scenario, setting_text

NEAR: Final = 0.03
"""Settings within 3 % of the fastest count as equally fast."""

T = TypeVar("T")

MIN_SAMPLING_RATE: Final = 0.1
"""The least sampling rate that is recommended unless the question says another."""

MAX_STALENESS: Final = 2
"""The most iterations of staleness that are recommended unless the question says otherwise."""

RATES: Final = (1.0, 0.5, 0.2, 0.1)
SIMULATED: Final = 3
"""Candidates of a method with staleness that are simulated; of every other one that may be recommended, the best."""

SAME: Final = 0.005
"""Settings within half a per cent are as fast as each other: drawn graphs alone make more of a difference."""

HOPELESS: Final = 2.0
"""A method's best candidate is left unsimulated where its estimate is so many times the best."""


@dataclass(frozen=True, slots=True)
class Rule:
    """What may be recommended.

    methods: their names; named: whether the question named them. min_sampling_rate: the least rate of sampling
    (epsilon of edges, rate of nodes). max_staleness: the most iterations (tau) that values may be old.
    """

    methods: tuple[str, ...] = COMPARED
    named: bool = False
    min_sampling_rate: float = MIN_SAMPLING_RATE
    max_staleness: int = MAX_STALENESS

    @classmethod
    def of(cls, methods: Sequence[str], min_sampling_rate: Any = None, max_staleness: Any = None) -> Rule:
        """The rule of what options say; no methods: those compared by default; None: the default.

        Raises ScenarioError for a value out of range.
        """
        rate = MIN_SAMPLING_RATE if min_sampling_rate is None else min_sampling_rate
        tau = MAX_STALENESS if max_staleness is None else max_staleness
        if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 < rate <= 1:
            raise ScenarioError(f"--min-sampling-rate: {rate!r} is not allowed; a number above 0 and at most 1")
        if isinstance(tau, bool) or not isinstance(tau, int) or tau < 0:
            raise ScenarioError(f"--max-staleness: {tau!r} is not allowed; a whole number of at least 0")
        return cls(tuple(dict.fromkeys(methods)) or COMPARED, bool(methods), float(rate), tau)

    def excludes(self, scenario: Scenario) -> str | None:
        """Why a setting may not be recommended; None where it may."""
        method = scenario.method
        if method.name not in self.methods:
            asked = "was not asked for" if self.named else "is shown for comparison only"
            return f"{method.name} {asked} (--allow {method.name} allows it)"
        return self.too_approximate(scenario)

    def too_approximate(self, scenario: Scenario) -> str | None:
        """Why a setting is more approximate than is allowed; None where it is not."""
        rate, tau = rate_of(scenario.method), scenario.method.tau
        if rate < self.min_sampling_rate:
            hint = f" (--min-sampling-rate {rate:g} allows it)" if rate else "; no --min-sampling-rate allows it"
            return f"sampling rate {rate:g} is below {self.min_sampling_rate:g}{hint}"
        if tau > self.max_staleness:
            return f"tau {tau} is above {self.max_staleness} (--max-staleness {tau} allows it)"
        return None

    def report(self) -> RuleReport:
        """As a result."""
        return RuleReport(self.methods, self.min_sampling_rate, self.max_staleness, self.text)

    @property
    def limits(self) -> str:
        """How approximate a setting may be, as a clause."""
        return f"a sampling rate of at least {self.min_sampling_rate:g} and tau at most {self.max_staleness}"

    @property
    def text(self) -> str:
        """The rule as a sentence."""
        methods = ", ".join(self.methods)
        return f"{methods}, with {self.limits} (change: --allow, --min-sampling-rate, --max-staleness)"


def rate_of(method: Method) -> float:
    """The share of boundary edges or nodes that a method draws; 1 where it draws none of them."""
    return method.sampling().rate


def approximation_key(scenario: Scenario) -> tuple[float, int, float, float]:
    """What a setting gives up, for sorting: less sampling, less staleness, less cache memory first."""
    method = scenario.method
    return (-rate_of(method), method.tau, method.cache.fraction or 0.0, method.cache.nbytes or 0.0)


def usual_rows(scenario: Scenario, names: Sequence[str]) -> list[Scenario]:
    """The settings on the scenario's machine that a question compares where it names no knob: each method as it is
    without being asked otherwise."""
    base = scenario.method
    methods = [base if base.name == name else create_method(name) for name in names]
    return [replace(scenario, method=each.overlapping(base.overlap)) for each in methods]


def candidates(scenario: Scenario, rule: Rule) -> list[Scenario]:
    """The settings considered on the scenario's machine, the mildest first."""
    found = dict.fromkeys(each for name in rule.methods for each in _of_method(scenario, name, rule))
    return sorted(found, key=approximation_key)


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


def shortlist(studies: StudyCache, scenario: Scenario, rule: Rule) -> list[Scenario]:
    """The candidates that are worth simulating: every one whose estimate is within NEAR of the best; and, whatever the
    estimate says of methods, of psc-gcn the best of three taus, of other methods the best one.

    The estimate does not see what a second iteration of slack brings, so tau above 1 takes the estimate of tau 1.
    """
    known = _estimated(studies, candidates(scenario, rule))
    settings = [each for each, seconds in known.items() if seconds < inf]
    if not settings:
        return []
    held = {each: studies.holds(each) for each in settings}
    order = [each for holds in (True, False) for each in _by_promise([s for s in settings if held[s] is holds], known)]
    kinds = [method_type(name) for name in rule.methods]
    chosen = [each for kind in kinds if kind.has("tau") for each in _best_by_tau(order, kind)]
    least = min(known[each] for each in settings)
    for kind in kinds:
        own = next((each for each in order if each.method.name == kind.name), None)
        if own is not None and not kind.has("tau") and known[own] <= HOPELESS * least:
            chosen.append(own)
    near = [each for each in order if held[each] and known[each] <= least * (1 + NEAR)]
    return list(dict.fromkeys([*chosen, *near]))


def _best_by_tau(order: Sequence[Scenario], kind: type[Method]) -> list[Scenario]:
    """The most promising cases of a method with staleness, one of each tau."""
    firsts: dict[int, Scenario] = {}
    for each in order:
        if kind.general(each.method) is not None:
            firsts.setdefault(each.method.tau, each)
    return list(firsts.values())[:SIMULATED]


def _estimated(studies: StudyCache, settings: Sequence[Scenario]) -> dict[Scenario, Seconds]:
    """The estimates of those settings that may be among the best, in their order.

    A cache makes nothing slower: smaller caches are estimated only where the largest that fits is near the best.
    """
    twins = {each: canonical(_at_tau(each, min(each.method.tau, 1))) for each in settings}
    alike: dict[tuple[str, int, float], list[Scenario]] = {}
    for each in sorted(settings, key=lambda each: -(each.method.cache.fraction or 0.0)):
        alike.setdefault((each.method.name, min(each.method.tau, 1), rate_of(each.method)), []).append(each)
    largest = [next((each for each in group if studies.holds(each)), group[0]) for group in alike.values()]
    known = _guesses(studies, [twins[each] for each in largest])
    limit = min(known.values(), default=0.0) * (1 + NEAR)
    near = [group for group, first in zip(alike.values(), largest, strict=True) if known[twins[first]] <= limit]
    more = dict.fromkeys(twins[each] for group in near for each in group)
    known |= _guesses(studies, [each for each in more if each not in known])
    return {each: known[twins[each]] for each in settings if twins[each] in known}


def _guesses(studies: StudyCache, settings: Sequence[Scenario]) -> dict[Scenario, Seconds]:
    distinct = list(dict.fromkeys(settings))
    return dict(zip(distinct, studies.guesses(distinct), strict=True))


def _at_tau(scenario: Scenario, tau: int) -> Scenario:
    return replace(scenario, method=scenario.method.at_tau(tau))


def _by_promise(settings: Sequence[Scenario], known: Mapping[Scenario, Seconds]) -> list[Scenario]:
    """Those near the best estimate by approximation_key, then the rest by time."""
    limit = min((known[each] for each in settings), default=0.0) * (1 + NEAR)
    near = [each for each in settings if known[each] <= limit]
    far = [each for each in settings if known[each] > limit]
    return sorted(near, key=approximation_key) + sorted(far, key=lambda each: known[each])


@dataclass(frozen=True, slots=True)
class Choice:
    """The setting chosen on one machine.

    pool: what it was chosen from, the settings that fit where any does. wins: bool[draws], the joint draws of the
    assumptions in which it is the fastest of them, or within NEAR of the fastest. why: in words.
    """

    estimate: Candidate
    pool: tuple[Candidate, ...]
    wins: BoolArray
    why: str

    @property
    def share(self) -> float:
        """The share of the draws that it wins."""
        return float(self.wins.mean())


def choose(pool: Sequence[Candidate], asked: Sequence[Scenario], rule: Rule) -> Choice:
    """The mildest of `pool` (settings of one machine that may be recommended) that is about as fast as the fastest.

    asked: the question's own settings: none of them that is in the pool is faster than what is chosen, by more than
    SAME. Epochs are compared, in which every training node is trained once.
    """
    held = [each for each in pool if each.result.fits is not False]
    possible = held or list(pool)
    fastest = min(possible, key=lambda each: each.epoch_s)
    chosen = mildest(possible, set(asked), lambda each: each.scenario, lambda each: each.epoch_s)
    wins = np.all([chosen.epochs_over(each) <= 1 + NEAR for each in possible], axis=0)
    fit = "" if len(possible) == len(pool) else " that fit"
    why = _why(chosen, fastest, f"{plural(len(possible), 'setting')} tried{fit}", rule)
    if not held:
        why = f"none of {plural(len(pool), 'setting')} tried fits the GPUs' memory; {why}"
    return Choice(chosen, tuple(possible), wins, why)


def mildest(
    options: Sequence[T], asked: Collection[Scenario], scenario: Callable[[T], Scenario], seconds: Callable[[T], float]
) -> T:
    """The least approximate of the options of one machine that is within NEAR of the fastest, and within SAME of every
    one that was asked for itself."""
    own = [seconds(each) for each in options if scenario(each) in asked]
    limit = min(min(map(seconds, options)) * (1 + NEAR), min(own, default=inf) * (1 + SAME))
    near = [each for each in options if seconds(each) <= limit]
    return min(near, key=lambda each: (approximation_key(scenario(each)), seconds(each)))


def _why(chosen: Candidate, fastest: Candidate, many: str, rule: Rule) -> str:
    if chosen is fastest:
        which = "the only setting tried" if many == "1 setting tried" else f"the fastest of {many}"
        return f"{which} with {rule.limits}"
    other = setting_text(fastest.scenario.method)
    milder = _milder(chosen.scenario.method, fastest.scenario.method)
    lost = chosen.epoch_s / fastest.epoch_s - 1
    near = "the same speed as" if lost <= SAME else f"{100 * lost:.1f} % slower than"
    return f"{near} the fastest of {many} ({other}), but {milder}"


def _milder(method: Method, other: Method) -> str:
    """What a setting has over another that is about as fast."""
    if rate_of(method) > rate_of(other):
        return "with less sampling"
    if method.tau < other.tau:
        return "with less stale values"
    return "with a smaller cache"
