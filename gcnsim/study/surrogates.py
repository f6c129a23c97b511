"""Accesses of a dataset that has shipped profiles: drawn from its surrogate's partition, without any graph."""

from __future__ import annotations

from gcnsim.errors import ScenarioError
from gcnsim.sampling import NODES
from gcnsim.scenario import MOST_GPUS, Scenario
from gcnsim.study.corners import Corner, drawing, keeps_all, sampler_of
from gcnsim.study.published import PublishedAccesses
from gcnsim.trace import (
    AccessCounts,
    StoredProfile,
    draw_access,
    node_counts,
    profile_at,
    profiled_parts,
    with_cross_edges,
)
from gcnsim.workload import DatasetFacts


class SurrogateAccesses:
    """A dataset by the profiles of its surrogate or outline; by its published statistics where those do not answer.

    They do not at numbers of GPUs beyond the profiled ones, and where the scenario itself gives what a profile counts.
    """

    def __init__(self, facts: DatasetFacts) -> None:
        self.facts = facts
        self.published = PublishedAccesses(facts)
        self.most_gpus = self.published.most_gpus if facts.boundary else profiled_parts(facts.name)[-1]
        self.graph_hash: str | None = None
        self.declared = self.published.declared
        self.corners: tuple[Corner, ...] = tuple(Corner)
        self._profiles: dict[tuple[int, Corner], StoredProfile] = {}
        self._counts: dict[object, AccessCounts] = {}

    def profiled(self, scenario: Scenario) -> bool:
        """Whether the scenario is answered from a profile."""
        workload = scenario.workload
        given = workload.cross_fraction is not None or workload.imbalance is not None
        return not given and scenario.cluster.gpus in profiled_parts(self.facts.name)

    def profile(self, gpus: int, corner: Corner = Corner.LIKELY) -> StoredProfile:
        """The profile at one end of what publications leave open: the cross edges per boundary node."""
        key = (gpus, corner)
        if key not in self._profiles:
            found, _ = profile_at(self.facts.name, gpus)
            low, high = found.origin.cross_range
            self._profiles[key] = with_cross_edges(found, (low, 1.0, high)[corner.value])
        return self._profiles[key]

    def note(self, gpus: int) -> str:
        """Where the profile at `gpus` comes from."""
        return profile_at(self.facts.name, gpus)[1]

    def counts(self, scenario: Scenario, features: int, corner: Corner) -> AccessCounts:
        """Counts drawn from the profile at `corner`, or their means where it draws nodes."""
        if not self.profiled(scenario):
            self._refuse_unpublished(scenario)
            return self.published.counts(scenario, features, corner)
        key = (scenario.cluster.gpus, drawing(scenario.method), features, scenario.run, corner)
        if key not in self._counts:
            self._counts[key] = self._draw(scenario, features, corner)
        return self._counts[key]

    def _refuse_unpublished(self, scenario: Scenario) -> None:
        """Raises ScenarioError where only published boundary counts could answer, and there are none."""
        if self.facts.boundary:
            return
        gpus, workload, answered = scenario.cluster.gpus, scenario.workload, profiled_parts(self.facts.name)
        why = f"no boundary of {self.facts.name} is published"
        if gpus not in answered:
            most = min(self.most_gpus, MOST_GPUS)
            raise ScenarioError(f"cluster.gpus: {gpus} is not allowed; {answered[0]} to {most} are, {why}")
        name, given = "imbalance", workload.imbalance
        if workload.cross_fraction is not None:
            name, given = "cross_fraction", workload.cross_fraction
        raise ScenarioError(f"workload.{name}: {given:g} is not allowed; null is, {why}")

    def _draw(self, scenario: Scenario, features: int, corner: Corner) -> AccessCounts:
        method, run = scenario.method, scenario.run
        sampler, rate = sampler_of(method)
        if sampler == NODES:
            # Where only entries that cross are dropped, the fewer cross the slower.
            ends = {Corner.LOW: Corner.HIGH, Corner.HIGH: Corner.LOW}
            return node_counts(self.profile(scenario.cluster.gpus, ends.get(corner, corner)), rate)
        return draw_access(
            self.profile(scenario.cluster.gpus, corner),
            sampler=sampler,
            epsilon=rate,
            iterations=1 if keeps_all(method) else run.iterations,
            seed=run.seed,
            cache=method.cache,
            policy=method.cache_policy,
            feature_width=features,
        )
