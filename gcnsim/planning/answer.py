"""Build the answer to a what-if question: its rows, the recommendation, the reasons, and the confidence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import inf
from typing import Any, NamedTuple

import numpy as np

from gcnsim.core.errors import plural
from gcnsim.core.ids import BoolArray
from gcnsim.core.units import format_gbps, format_seconds, range_text
from gcnsim.hardware import PriceBook
from gcnsim.planning.alternatives import sampler_decides, staging_decides
from gcnsim.planning.candidate import Candidate, Estimate, baseline_of
from gcnsim.planning.certainty import Difference
from gcnsim.planning.recommend import NEAR, SAME, Choice, Rule
from gcnsim.planning.rows import cost_of, device_of, lacking, rent_of, row_of
from gcnsim.planning.space import Space
from gcnsim.planning.study import Studies
from gcnsim.results import Alternative, Confidence, Excluded, Recommendation, Row
from gcnsim.scenario import ClusterSpec, Scenario, setting_text


class RowEstimate(NamedTuple):
    """A row with the full-graph iteration time on the same machine, or None if that time is unknown."""

    estimate: Estimate
    baseline_s: float | None

    @classmethod
    def of(cls, studies: Studies, scenario: Scenario, space: Space) -> RowEstimate:
        """Return the row of a setting. The full-graph baseline uses the overlap of the question."""
        compared = comparable(studies, scenario, space)
        full = None if compared is None else studies.result(compared)
        # What does not fit is compared with nothing.
        baseline_s = None if full is None or full.fits is False else full.metrics.iteration_s
        return cls(studies.estimate(scenario), baseline_s)

    @property
    def scenario(self) -> Scenario:
        """The setting of the row."""
        return self.estimate.scenario


def comparable(studies: Studies, scenario: Scenario, space: Space) -> Scenario | None:
    """Return the full-graph training that a setting is compared with, with the overlap of the question; None for
    mini-batches whose graph has no known boundary on so many GPUs."""
    compared = baseline_of(scenario, space.overlap)
    unknown = compared is not None and scenario.method.mini_batches and not studies.supports(compared)
    return None if unknown else compared


@dataclass(frozen=True, slots=True)
class WhatIfResult:
    """The simulated settings of a what-if question and the recommendation.

    choices: the chosen setting of each machine. best: the choice on the fastest machine. chosen: the row of `best`.
    alternatives: role, reason and row of choices on other machines, e.g. the cheapest one. by_machine: the recommended
    setting and the best setting on each other machine, if several machines were asked for. book: the prices.
    """

    dataset: str
    rule: Rule
    book: PriceBook
    rows: tuple[RowEstimate, ...]
    choices: Mapping[ClusterSpec, Choice]
    best: Choice
    chosen: RowEstimate
    alternatives: tuple[tuple[str, str, RowEstimate], ...]
    by_machine: tuple[RowEstimate, ...]

    def results(self) -> tuple[Row, ...]:
        """Return the rows, each compared with the recommended one."""
        return tuple(map(self._row, self.rows))

    def _row(self, found: RowEstimate) -> Row:
        estimate = found.estimate
        excluded = self._reason(estimate)
        row = replace(
            row_of(estimate, found.baseline_s, self.dataset, self.book),
            may_be_recommended=excluded is None,
            excluded_because=excluded,
        )
        # Where machines differ in host or GPUs per server, their rows say so.
        clusters = [row.scenario.cluster for row in self.rows]
        if len({(cluster.host, cluster.gpus_per_server) for cluster in clusters}) > 1:
            cluster = estimate.scenario.cluster
            row = replace(row, host=cluster.host, gpus_per_server=cluster.gpus_per_server)
        if estimate.scenario == self.chosen.scenario:
            return replace(row, recommended=True)
        difference = Difference.of(estimate, self.chosen.estimate)
        return replace(
            row,
            vs_recommended_low=difference.low,
            vs_recommended_high=difference.high,
            distinguishable=difference.distinguishable,
        )

    def _networks(self) -> str:
        """Return what a faster network gains on the recommended machine, if the question names several networks."""
        cluster = self.chosen.scenario.cluster
        same = [
            rival
            for rival in rivals_of(self.best, self.choices.values())
            if replace(rival.scenario.cluster, bandwidth=cluster.bandwidth, link=cluster.link) == cluster
        ]
        by_bandwidth = sorted([self.chosen.estimate, *same], key=lambda one: one.scenario.cluster.bandwidth)
        return network_text(by_bandwidth) if same else ""

    def _reason(self, estimate: Estimate) -> str | None:
        """Return why a row may not be recommended, or None if it may."""
        excluded = self.rule.excludes(estimate.scenario)
        lacks = excluded is None and estimate.result.fits is False
        return f"does not fit {lacking(estimate.result)}" if lacks else excluded

    def recommendation(self) -> Recommendation:
        """Return the recommended setting, the reason, the alternatives and the excluded settings."""
        estimate = self.chosen.estimate
        scenario, limit = estimate.scenario, estimate.result.limit
        places = (index for index, row in enumerate(self.rows) if row.scenario == scenario)
        rivals = rivals_of(self.best, self.choices.values())
        return Recommendation(
            why=self.best.why,
            verdict=summary_sentence(self.chosen, several=bool(self.alternatives)),
            confidence=Confidence(self.best.share, confidence_text(self.best, rivals)),
            note=sampler_decides(limit, scenario) or staging_decides(limit, scenario),
            rule=self.rule.report(),
            excluded=tuple(Excluded(what, why) for what, why in self._excluded().items()),
            row=self._row(self.chosen),
            in_results=next(places, None),
            alternatives=tuple(Alternative(role, why, self._row(row)) for role, why, row in self.alternatives),
            by_machine=tuple(map(self._row, self.by_machine)),
            networks=self._networks(),
        )

    def _excluded(self) -> dict[str, str]:
        """Return the rows that may not be recommended, each setting once, with the reason."""
        found = {}
        several = len({row.scenario.cluster for row in self.rows}) > 1
        for estimate, _ in self.rows:
            reason, cluster = self._reason(estimate), estimate.scenario.cluster
            if reason is not None:
                # What is not allowed is so on every machine; what does not fit may on another.
                apart = several and estimate.result.fits is False
                where = f" on {cluster.gpus} x {device_of(cluster)}" if apart else ""
                found[setting_text(estimate.scenario.method) + where] = reason
        return found


def machine_key(scenario: Scenario) -> dict[str, Any]:
    """Return the machine of a row: all that a space varies except the method."""
    cluster = scenario.cluster
    return {"gpus": cluster.gpus, "bandwidth": format_gbps(cluster.bandwidth), "device": device_of(cluster)}


def rivals_of(best: Choice, choices: Iterable[Choice]) -> list[Candidate]:
    """Return the choices on other machines, limited to those that fit in memory if any does."""
    others = [choice.estimate for choice in choices if choice is not best]
    return [rival for rival in others if rival.result.fits is not False or best.estimate.result.fits is False]


def by_machine(
    studies: Studies, best: Choice, choices: Mapping[ClusterSpec, Choice], rows: Sequence[RowEstimate], space: Space
) -> list[RowEstimate]:
    """If there are several machines, return the recommended setting and the best setting on each other machine.
    Settings that already have a row are left out.
    """
    chosen = best.estimate.scenario
    shown = {chosen, *(row.scenario for row in rows)}
    others = [choice.estimate.scenario for cluster, choice in choices.items() if cluster != chosen.cluster]
    same = [replace(chosen, cluster=other.cluster) for other in others]
    more = dict.fromkeys([*filter(studies.supports, same), *others])
    return [RowEstimate.of(studies, scenario, space) for scenario in more if scenario not in shown]


def alternatives(
    studies: Studies, best: Choice, choices: Mapping[ClusterSpec, Choice], space: Space, book: PriceBook
) -> list[tuple[str, str, RowEstimate]]:
    """If several machines were asked for, return two alternatives: the cheapest choice, and the choice with the fewest
    GPUs inside the fastest one's interval.
    """
    if len(choices) < 2:
        return []
    fits = [choice for choice in choices.values() if choice.estimate.result.fits is not False] or [best]
    fastest = best.estimate
    high_s = studies.estimate(fastest.scenario).high_s
    within = "3 % of the fastest" if high_s is None else "the interval of the fastest"
    limit = fastest.epoch_s * (1 + NEAR) if high_s is None else high_s * fastest.result.per_epoch
    near = [choice for choice in fits if choice.estimate.epoch_s <= limit]
    gpus = min(choice.estimate.scenario.cluster.gpus for choice in near)
    few = [choice for choice in near if choice.estimate.scenario.cluster.gpus == gpus]
    quick = min(choice.estimate.epoch_s for choice in few) * (1 + SAME)
    fewest = min(
        (choice for choice in few if choice.estimate.epoch_s <= quick), key=lambda choice: _price(choice, book)
    )
    why = f"{plural(gpus, 'GPU')}, the fewest whose time is within {within}"
    found = [("fewest GPUs", why, RowEstimate.of(studies, fewest.estimate.scenario, space))]
    priced = [choice for choice in fits if _price(choice, book)[0] < inf]
    if priced:
        cheapest = min(priced, key=lambda choice: _price(choice, book))
        unit = "iterations" if cheapest.estimate.result.per_epoch == 1 else "epochs"
        cost = f"{_price(cheapest, book)[0]:.2g} USD per 1,000 {unit}"
        why = f"{cost}, the lowest of {plural(len(priced), 'machine')}"
        if len({replace(cluster, bandwidth=fastest.scenario.cluster.bandwidth) for cluster in choices}) < len(choices):
            why += "; bandwidth has no price"
        found.append(("cheapest", why, RowEstimate.of(studies, cheapest.estimate.scenario, space)))
    return found


def _price(choice: Choice, book: PriceBook) -> tuple[float, float]:
    """Return the cost of 1,000 epochs (infinite if no price is known) and the seconds of an epoch."""
    known = cost_of(rent_of(choice.estimate.scenario.cluster, book), 1000.0 * choice.estimate.epoch_s)
    return inf if known is None else known, choice.estimate.epoch_s


def network_text(found: Sequence[Candidate]) -> str:
    """Return the gain of each network over the next slower one.

    best_by_network: the best setting on each network, slowest network first. Times are per epoch if an iteration trains
    only some of the nodes.
    """
    parts = []
    for slow, fast in pairwise(found):
        low, high = format_gbps(slow.scenario.cluster.bandwidth), format_gbps(fast.scenario.cluster.bandwidth)
        gain = 1.0 - fast.epoch_s / slow.epoch_s
        times = f"{format_seconds(slow.iteration_s)} to {format_seconds(fast.iteration_s)} per iteration"
        apart = Difference.of(fast, slow)
        if apart.distinguishable and abs(gain) >= NEAR / 3:
            way = "less" if gain > 0 else "more"
            parts.append(f"{high} instead of {low} takes {100 * abs(gain):.0f} % {way} time ({times})")
        else:
            parts.append(f"{high} instead of {low} makes no clear difference ({times})")
    settings = {setting_text(one.scenario.method) for one in found}
    own = next(iter(settings)) if len(settings) == 1 else "the best setting of each"
    return f"{'; '.join(parts)}, for {own}." if parts else ""


def summary_sentence(chosen: RowEstimate, *, several: bool) -> str:
    """Return one sentence: the recommended setting, its time with the interval, and its speed-up over full-graph
    training.
    """
    estimate, baseline = chosen
    scenario = estimate.scenario
    cluster = scenario.cluster
    where = f" on {cluster.gpus} x {cluster.device} at {format_gbps(cluster.bandwidth)}" if several else ""
    time = f"{format_seconds(estimate.iteration_s)} per iteration{range_text(estimate.low_s, estimate.high_s)}"
    text = f"Use {setting_text(scenario.method)}{where}: {time}"
    if baseline is not None and not scenario.method.baseline:
        epochs = "" if estimate.result.per_epoch == 1 else " per epoch"
        there = " on the same machine" if several else ""
        text += f", {times_as_fast(baseline / estimate.epoch_s)} full-graph training{epochs}{there}"
    return f"{text}."


def times_as_fast(ratio: float) -> str:
    """Return `3.3 times as fast as`, `1.4 times as slow as`, or `as fast as` if the times differ by less than 3 %."""
    if abs(ratio - 1.0) < NEAR:
        return "as fast as"
    if ratio < 1.0:
        return f"{_times(1 / ratio)} times as slow as"
    return f"{_times(ratio)} times as fast as"


def _times(ratio: float) -> str:
    """Format a ratio above 1: `1.04`, `3.3`, `202`."""
    return f"{ratio:.2f}" if ratio < 2.0 else f"{ratio:.2g}" if ratio < 99.5 else f"{ratio:.0f}"


def confidence_text(choice: Choice, rivals: Sequence[Candidate] = ()) -> str:
    """Return how often the recommended setting wins in the random draws.

    It competes with the simulated settings of its machine that may be recommended, and with `rivals`, the best settings
    of other machines.
    """
    text = (
        f"{_in_draws(choice.wins)} of the assumptions, this setting is the fastest of {len(choice.pool)} tried or "
        "within 3 % of it"
        if len(choice.pool) > 1
        else "no other allowed setting was simulated"
    )
    if not rivals:
        return text
    faster = np.all([choice.estimate.epochs_over(rival) <= 1 + NEAR for rival in rivals], axis=0)
    others = "the other machine's best" if len(rivals) == 1 else "the best of every other machine"
    return f"{text}; {_in_draws(faster)}, it is as fast as {others} or within 3 % of it"


def _in_draws(wins: BoolArray) -> str:
    """Return the share of draws that win, with the counts.

    >>> _in_draws(np.array([True, True, True, False]))
    '75 %: in 3 of 4 random draws'
    """
    return f"{100 * float(wins.mean()):.0f} %: in {int(wins.sum())} of {wins.size} random draws"
