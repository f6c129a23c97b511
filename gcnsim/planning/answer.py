"""What a what-if found: its rows, and the recommendation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from gcnsim.alternatives import sampler_decides, staging_decides
from gcnsim.hardware import PriceBook
from gcnsim.planning.candidate import Candidate, Estimate
from gcnsim.planning.certainty import Difference
from gcnsim.planning.recommend import Choice, Rule
from gcnsim.planning.rows import device_of, row_of
from gcnsim.planning.verdict import confidence_text, network_text, verdict
from gcnsim.results import (
    Alternative,
    Confidence,
    Excluded,
    Recommendation,
    Row,
)
from gcnsim.scenario import Scenario, setting_text
from gcnsim.units import format_gbps

Told: TypeAlias = tuple[Estimate, float | None]
"""A row with the full-graph iteration time of the same machine, None where it cannot be known."""


@dataclass(frozen=True, slots=True)
class OtherMachine:
    """The choice on another machine that some would rather take. role: `fewest GPUs` or `cheapest`."""

    role: str
    row: Told
    why: str


@dataclass(frozen=True, slots=True)
class Findings:
    """What was simulated of a what-if, and what of it is recommended.

    rows: with the full-graph iteration time of the same machine beside each. choice: the recommended setting, of the
    machine on which it is the fastest; chosen: it as a row. rivals: the best settings of the other machines asked for.
    book: the prices. by_machine: of several machines the recommended setting and the best one on each other machine,
    where nobody asked for them.
    """

    dataset: str
    rule: Rule
    rows: tuple[Told, ...]
    choice: Choice
    chosen: Told
    rivals: tuple[Candidate, ...]
    alternatives: tuple[OtherMachine, ...]
    book: PriceBook
    by_machine: tuple[Told, ...] = ()

    def results(self) -> tuple[Row, ...]:
        """The rows, each beside the recommended one."""
        return tuple(map(self._row, self.rows))

    @property
    def place(self) -> int | None:
        """The recommended setting's place among the rows; None where nobody asked for it."""
        same = (each.scenario for each, _ in self.rows)
        return next((place for place, each in enumerate(same) if each == self.chosen[0].scenario), None)

    def _row(self, told: Told) -> Row:
        estimate, baseline = told
        excluded = self._reason(estimate)
        row = replace(
            row_of(estimate, baseline, self.dataset, self.book),
            may_be_recommended=excluded is None,
            excluded_because=excluded,
        )
        if self._several_servers:
            cluster = estimate.scenario.cluster
            row = replace(row, host=cluster.host, gpus_per_server=cluster.gpus_per_server)
        if estimate.scenario == self.chosen[0].scenario:
            return replace(row, recommended=True)
        beside = Difference.of(estimate, self.chosen[0])
        if beside is None:
            return row
        return replace(
            row,
            vs_recommended_low=beside.low,
            vs_recommended_high=beside.high,
            distinguishable=beside.distinguishable,
        )

    @property
    def _several_servers(self) -> bool:
        """Whether machines differ in host or GPUs per server, which their rows say then."""
        clusters = [each.scenario.cluster for each, _ in self.rows]
        return len({(each.host, each.gpus_per_server) for each in clusters}) > 1

    def _networks(self) -> str:
        """What a faster network brings to the recommended machine, where several were asked for."""
        best = self.chosen[0]
        cluster = best.scenario.cluster
        same = [
            each
            for each in self.rivals
            if replace(each.scenario.cluster, bandwidth=cluster.bandwidth, link=cluster.link) == cluster
        ]
        return network_text(sorted([best, *same], key=lambda each: each.scenario.cluster.bandwidth)) if same else ""

    def _reason(self, estimate: Estimate) -> str | None:
        """Why a row may not be recommended; None where it may."""
        excluded = self.rule.excludes(estimate.scenario)
        return "does not fit the GPUs' memory" if excluded is None and estimate.result.fits is False else excluded

    def recommendation(self) -> Recommendation:
        """The recommended setting, why, and what else may be taken or may not."""
        estimate = self.chosen[0]
        limit = estimate.result.limit
        share = self.choice.share if estimate.ranged else None
        return Recommendation(
            why=self.choice.why,
            verdict=verdict(self.chosen, several=bool(self.alternatives)),
            confidence=Confidence(share, confidence_text(self.choice, self.rivals)),
            note=sampler_decides(limit, estimate.scenario) or staging_decides(limit, estimate.scenario),
            rule=self.rule.report(),
            excluded=tuple(Excluded(what, why) for what, why in self._excluded().items()),
            row=self._row(self.chosen),
            in_results=self.place,
            alternatives=tuple(Alternative(each.role, each.why, self._row(each.row)) for each in self.alternatives),
            by_machine=tuple(map(self._row, self.by_machine)),
            networks=self._networks(),
        )

    def _excluded(self) -> dict[str, str]:
        """The rows that may not be recommended, each setting once, and why."""
        found = {}
        several = len({each.scenario.cluster for each, _ in self.rows}) > 1
        for estimate, _ in self.rows:
            reason, cluster = self._reason(estimate), estimate.scenario.cluster
            if reason is not None:
                # What is not allowed is so on every machine; what does not fit may on another.
                apart = several and estimate.result.fits is False
                where = f" on {cluster.gpus} x {device_of(cluster)}" if apart else ""
                found[setting_text(estimate.scenario.method) + where] = reason
        return found


def place_of(scenario: Scenario) -> dict[str, Any]:
    """The machine of a row: what a grid varies besides the method."""
    cluster = scenario.cluster
    return {"gpus": cluster.gpus, "bandwidth": format_gbps(cluster.bandwidth), "device": device_of(cluster)}
