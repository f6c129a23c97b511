"""Accesses of a dataset that has shipped profiles: drawn from its surrogate's partition, without any graph."""

from __future__ import annotations

from gcnsim.errors import ScenarioError
from gcnsim.scenario import MOST_GPUS, Scenario
from gcnsim.study.corners import Corner, drawing
from gcnsim.study.edges import edge_counts
from gcnsim.study.published import PublishedAccesses
from gcnsim.study.stored import cross_end, drawn_counts
from gcnsim.trace import (
    AccessCounts,
    StoredProfile,
    profile_at,
    profile_end,
    profiled_parts,
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
        self._counts: dict[object, AccessCounts] = {}

    def profiled(self, scenario: Scenario) -> bool:
        """Whether the scenario is answered from a profile."""
        workload = scenario.workload
        given = workload.cross_fraction is not None or workload.imbalance is not None
        return not given and scenario.cluster.gpus in profiled_parts(self.facts.name)

    def profile(self, gpus: int, corner: Corner = Corner.LIKELY, cross: Corner | None = None) -> StoredProfile:
        """The profile at one end of what is open: cross edges per boundary node, and what interpolation misses.

        cross: the end of the cross edges where that is another one than of the boundary nodes.
        """
        return profile_end(self.facts.name, gpus, corner.value, (corner if cross is None else cross).value)

    def note(self, gpus: int) -> str:
        """Where the profile at `gpus` comes from."""
        return profile_at(self.facts.name, gpus)[1]

    def counts(self, scenario: Scenario, features: int, corner: Corner) -> AccessCounts:
        """Counts drawn from the profile at `corner`, or their means where it draws nodes."""
        if scenario.method.mini_batches and self.profiled(scenario):
            profile = self.profile(scenario.cluster.gpus, corner)
            crossing = float(profile.boundary_entries.sum() / max(1, int(profile.entries.sum())))
            return self.published.batched(scenario, corner, crossing)
        if scenario.method.mini_batches:
            return self.published.counts(scenario, features, corner)
        if scenario.method.sampling().drops_edges:
            return edge_counts(self, scenario, features, corner)
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
        profile = self.profile(scenario.cluster.gpus, corner, cross_end(scenario, corner))
        return drawn_counts(profile, scenario, features)


def same_evidence(accesses: object, one: Scenario, other: Scenario) -> bool:
    """Whether the parts of both scenarios are known from the same source, so that their times can be compared: profiles
    of partitions that were made, or else what was published, scaled to other numbers of parts.
    """
    return not isinstance(accesses, SurrogateAccesses) or accesses.profiled(one) == accesses.profiled(other)
