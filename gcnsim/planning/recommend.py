"""Choose a setting: the least approximate one among those that are about as fast as the fastest allowed setting.

Every command uses one rule (`Rule`). It allows the methods named in the question, or those compared by default. It sets
a least sampling rate and a largest staleness.

Staleness and sampling trade accuracy for time. Among settings within NEAR of the fastest, the one with the largest rate
is taken, then the smallest tau, then the smallest cache. A setting named in the question wins if it is faster by more
than SAME.

The least rate is 0.1. PSC-GCN (Table II) reports accuracy at 0.1 equal to or above full-graph training on its three
datasets, and 3.2 points below it on ogbn-products at 0.01. BNS-GCN (Table 4) reports scores at 0.1 equal to or above
those at 1 on its three datasets, at every number of partitions.

The largest staleness is 2 iterations, the default of psc-gcn. No published accuracy at a larger staleness is known
here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, Final, TypeVar

import numpy as np

from gcnsim.core.errors import ScenarioError, plural
from gcnsim.core.ids import BoolArray, Seconds
from gcnsim.methods import COMPARED, Method
from gcnsim.methods.known_loss import loss_rank
from gcnsim.planning.candidate import Candidate
from gcnsim.planning.study import Studies
from gcnsim.results import RuleReport
from gcnsim.scenario import Scenario, setting_text

NEAR: Final = 0.03
"""Settings within 3 % of the fastest count as equally fast."""

T = TypeVar("T")

MIN_SAMPLING_RATE: Final = 0.1
"""The least sampling rate that is recommended by default."""

MAX_STALENESS: Final = 2
"""The largest staleness in iterations that is recommended by default."""

SAME: Final = 0.005
"""Settings within 0.5 % count as the same speed; sampled graphs alone differ by more."""


@dataclass(frozen=True, slots=True)
class Rule:
    """The rule for settings that may be recommended.

    methods: their names. named: whether the question named them. min_sampling_rate: the least sampling rate (epsilon of
    edges, rate of nodes). max_staleness: the largest age of values in iterations (tau).
    """

    methods: tuple[str, ...] = COMPARED
    named: bool = False
    min_sampling_rate: float = MIN_SAMPLING_RATE
    max_staleness: int = MAX_STALENESS

    @classmethod
    def of(cls, methods: Sequence[str], min_sampling_rate: Any = None, max_staleness: Any = None) -> Rule:
        """Return the rule that the options describe. No methods: those compared by default. None: the default.

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
        """Return why a setting may not be recommended, or None if it may."""
        method = scenario.method
        if method.name not in self.methods:
            why = "was not asked for" if self.named else "is shown for comparison only"
            return f"{method.name} {why} (--allow {method.name} allows it)"
        return self.too_approximate(scenario)

    def too_approximate(self, scenario: Scenario) -> str | None:
        """Return why a setting is too approximate, or None if it is not."""
        rate, tau = rate_of(scenario.method), scenario.method.tau
        if rate < self.min_sampling_rate:
            hint = f" (--min-sampling-rate {rate:g} allows it)" if rate else "; no --min-sampling-rate allows it"
            return f"sampling rate {rate:g} is below {self.min_sampling_rate:g}{hint}"
        if tau > self.max_staleness:
            return f"tau {tau} is above {self.max_staleness} (--max-staleness {tau} allows it)"
        return None

    def report(self, option: str = "--allow") -> RuleReport:
        """Return the rule as a result. option: the one that chooses the methods."""
        text = f"{', '.join(self.methods)}, with {self.limits} (change: {option}, --min-sampling-rate, --max-staleness)"
        return RuleReport(self.methods, self.min_sampling_rate, self.max_staleness, text)

    @property
    def limits(self) -> str:
        """Return the limits on sampling and staleness as a clause."""
        return f"a sampling rate of at least {self.min_sampling_rate:g} and tau at most {self.max_staleness}"


def rate_of(method: Method) -> float:
    """Return the share of boundary edges or nodes that a method samples, or 1 if it samples none."""
    return method.sampling().rate


def approximation_key(scenario: Scenario) -> tuple[float, int, float, float]:
    """Return the sort key of a setting's approximation: less sampling, then less staleness, then less cache memory
    first.
    """
    method = scenario.method
    return (-rate_of(method), method.tau, method.cache.fraction or 0.0, method.cache.nbytes or 0.0)


@dataclass(frozen=True, slots=True)
class Choice:
    """The chosen setting of one machine.

    pool: the candidates, limited to those that fit in memory if any does. wins: bool[draws], the joint draws in which
    the choice is the fastest or within NEAR of it. why: the reason in words.
    """

    estimate: Candidate
    pool: tuple[Candidate, ...]
    wins: BoolArray
    why: str

    @property
    def share(self) -> float:
        """The share of the draws in which the choice wins."""
        return float(self.wins.mean())


def tried(shown: Sequence[Scenario], shortlisted: Sequence[Scenario], rule: Rule) -> list[Scenario]:
    """Return the settings of one machine that are tried: the allowed ones of the question, and those shortlisted."""
    allowed = [setting for setting in shown if rule.excludes(setting) is None]
    # There is no search over mini-batch settings: their rows are the requested ones.
    named = {setting.method.name for setting in shown if setting.method.mini_batches}
    return list(dict.fromkeys([*allowed, *(one for one in shortlisted if one.method.name not in named)]))


def search(studies: Studies, pool: Sequence[Scenario], shown: Collection[Scenario]) -> Scenario:
    """Return the recommended setting of `pool`, the settings tried on one machine: of those that fit in memory, if any
    does, the least approximate one that is about as fast as the fastest.

    shown: the settings named in the question; none of them in the pool is faster than the choice by more than SAME.
    Times per epoch are compared: every training node is used once. A setting whose lower bound is NEAR above the
    fastest cannot win, so it is not simulated.
    """
    new = [setting for setting in pool if not studies.known(setting)]
    found = dict(zip(new, studies.analytic(new), strict=True))
    times: dict[Scenario, Seconds] = {}
    held: dict[Scenario, Seconds] = {}
    # What is simulated already comes first, then the most promising.
    for setting in sorted(pool, key=lambda one: found[one].estimate_s * found[one].per_epoch if one in found else 0.0):
        least_s = found[setting].least_s if setting in found else None
        if least_s is not None and least_s * found[setting].per_epoch > min(held.values(), default=inf) * (1 + NEAR):
            continue
        result = studies.result(setting)
        times[setting] = result.metrics.iteration_s * result.per_epoch
        if result.fits is not False:
            held[setting] = times[setting]
    possible = held or times
    # In the order of the pool, so that what was known before does not decide between equals.
    return mildest([one for one in pool if one in possible], shown, lambda one: one, possible.__getitem__)


def choose(studies: Studies, pool: Sequence[Scenario], shown: Sequence[Scenario], rule: Rule) -> Choice:
    """Return the recommended setting of `pool`, as `search` does, with how often it wins and why."""
    candidates = {setting: studies.candidate(setting) for setting in pool}
    held = [candidate for candidate in candidates.values() if candidate.result.fits is not False]
    possible = held or list(candidates.values())
    fastest = min(possible, key=lambda candidate: candidate.epoch_s)
    chosen = candidates[search(studies, pool, set(shown))]
    wins = np.all([chosen.epochs_over(candidate) <= 1 + NEAR for candidate in possible], axis=0)
    fit = "" if len(possible) == len(pool) else " that fit"
    why = _why(chosen, fastest, f"{plural(len(possible), 'setting')} tried{fit}", rule)
    if not held:
        why = f"none of {plural(len(pool), 'setting')} tried fits the GPUs' memory; {why}"
    return Choice(chosen, tuple(possible), wins, why)


def mildest(
    options: Sequence[T], shown: Collection[Scenario], scenario: Callable[[T], Scenario], seconds: Callable[[T], float]
) -> T:
    """Return the setting that loses least accuracy, as far as is known, within NEAR of the fastest and within SAME of
    every setting in `shown`; of those alike the least approximate one.
    """
    own = [seconds(option) for option in options if scenario(option) in shown]
    limit = min(min(map(seconds, options)) * (1 + NEAR), min(own, default=inf) * (1 + SAME))
    near = [option for option in options if seconds(option) <= limit]
    return min(
        near,
        key=lambda one: (loss_rank(scenario(one).method), approximation_key(scenario(one)), seconds(one)),
    )


def _why(chosen: Candidate, fastest: Candidate, many: str, rule: Rule) -> str:
    if chosen is fastest:
        which = "the only setting tried" if many == "1 setting tried" else f"the fastest of {many}"
        return f"{which} with {rule.limits}"
    other = setting_text(fastest.scenario.method)
    milder = less_approximate(chosen.scenario.method, fastest.scenario.method)
    lost = chosen.epoch_s / fastest.epoch_s - 1
    near = "the same speed as" if lost <= SAME else f"{100 * lost:.1f} % slower than"
    return f"{near} the fastest of {many} ({other}), but {milder}"


def less_approximate(method: Method, other: Method) -> str:
    """Return the advantage of a setting over another that is about as fast."""
    if loss_rank(method) < loss_rank(other):
        return "with a smaller loss of accuracy where both were measured"
    if rate_of(method) > rate_of(other):
        return "with less sampling"
    if method.tau < other.tau:
        return "with fresher boundary values"
    return "with a smaller cache"
