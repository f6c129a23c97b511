"""Source for a stored boundary profile: a user's graph at one number of parts, without the graph."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gcnsim.core.errors import ScenarioError, plural
from gcnsim.results import Assumed
from gcnsim.scenario import Scenario
from gcnsim.simulation.model import Declared
from gcnsim.simulation.source import RangeEnd, Source, drawing, drawn_graphs, edge_counts, fewer_drawn
from gcnsim.trace.counts import AccessCounts
from gcnsim.trace.rescale import with_cross_edges
from gcnsim.trace.sample_counts import draw_access, node_counts
from gcnsim.trace.stored_profile import StoredProfile, read_profile
from gcnsim.workload import dataset, datasets
from gcnsim.workload.draws import NODES


class ProfileSource(Source):
    """A profile file (`gcnsim trace profile`): any rate of the samplers uniform and vr, with all norms 1.

    The widths come from the dataset that a surrogate replaces; a graph's profile has no widths.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.stored: StoredProfile = read_profile(path)
        origin = self.stored.origin
        self.most_gpus = self.stored.parts
        self._hash = origin.graph_hash if origin.source == "graph" else None
        self.declared = Declared()
        if origin.source != "graph" and origin.name in datasets():
            facts = dataset(origin.name)
            self.declared = Declared(facts.model, facts.layers, facts.hidden, facts.features, facts.classes)
        self.assumption_bounds: tuple[RangeEnd, ...] = (
            (RangeEnd.LIKELY,) if origin.cross_range == (1.0, 1.0) else tuple(RangeEnd)
        )
        self._counts: dict[object, AccessCounts] = {}

    @property
    def graph_hash(self) -> str | None:
        """The hash of the partitioned graph; None for a surrogate's profile."""
        return self._hash

    @property
    def name(self) -> str:
        """The name of the partitioned graph."""
        return self.stored.origin.name

    def describe(self, scenario: Scenario) -> Mapping[str, Any]:
        """Describe the partitioned graph and its partition."""
        stored, origin = self.stored, self.stored.origin
        of = origin.name if origin.source == "graph" else f"{origin.source} of {origin.name}"
        return {
            "kind": "profile",
            "text": f"{self.path}: profile of {of}: {int(stored.inner_nodes.sum()):,} nodes, "
            f"{int(stored.entries.sum()):,} stored entries; {origin.partition_method}, seed {origin.partition_seed}: "
            f"boundary/inner {stored.boundary_nodes.sum() / stored.inner_nodes.sum():.3g} "
            f"at {plural(stored.parts, 'part')}; norms 1",
            "hash": origin.graph_hash,
        }

    def warnings(self, scenarios: Sequence[Scenario]) -> Iterator[str]:
        """Warn if fewer graphs are sampled than there are iterations."""
        yield from fewer_drawn(scenarios)

    def assumptions(self, scenario: Scenario, scenarios: Sequence[Scenario]) -> Iterator[Assumed]:
        """The assumption about cross edges per boundary node, if the profile's origin leaves it open."""
        if len(self.assumption_bounds) > 1:
            ends = [self.profile(bound).cross_edges_mean for bound in (RangeEnd.LOW, RangeEnd.LIKELY, RangeEnd.HIGH)]
            low, likely, high = (f"{mean:.3g}" for mean in ends)
            basis = f"per boundary node in {self.path}; its own range"
            yield Assumed("cross_edges", likely, low, high, basis, True)

    def profile(self, bound: RangeEnd = RangeEnd.LIKELY) -> StoredProfile:
        """The profile at one end of the assumption about cross edges per boundary node."""
        low, high = self.stored.origin.cross_range
        return with_cross_edges(self.stored, (low, 1.0, high)[bound.value])

    def counts(self, scenario: Scenario, features: int, bound: RangeEnd) -> AccessCounts:
        """Counts sampled from the profile at `bound`, or means for node sampling.

        Raises ScenarioError if the number of GPUs differs from its parts, and for mini-batches.
        """
        if scenario.cluster.gpus != self.stored.parts:
            raise ScenarioError(
                f"cluster.gpus: {scenario.cluster.gpus} is not allowed; {self.path} is a profile of "
                f"{plural(self.stored.parts, 'part')} and answers for as many GPUs"
            )
        if scenario.method.mini_batches:
            raise ScenarioError(
                f"method.name: {scenario.method.name} trains mini-batches; {self.path} has only what crosses partitions"
            )
        if scenario.method.sampling().drops_edges:
            return edge_counts(self, scenario, features, bound)
        key = (drawing(scenario.method), features, scenario.run, bound)
        if key not in self._counts:
            self._counts[key] = drawn_counts(self.profile(cross_end(scenario, bound)), scenario, features)
        return self._counts[key]


def cross_end(scenario: Scenario, bound: RangeEnd) -> RangeEnd:
    """The end of the cross edges per boundary node that belongs to the `bound` of the iteration time."""
    # If only crossing entries are dropped, fewer of them make the iteration slower.
    turned = (
        {RangeEnd.LOW: RangeEnd.HIGH, RangeEnd.HIGH: RangeEnd.LOW} if scenario.method.sampling().rule == NODES else {}
    )
    return turned.get(bound, bound)


def drawn_counts(profile: StoredProfile, scenario: Scenario, features: int) -> AccessCounts:
    """Counts sampled from `profile` for the scenario's sampler, rate, cache and seed; means for node sampling."""
    method, run = scenario.method, scenario.run
    sampler, rate = method.sampling().drawn_by
    if sampler == NODES:
        return node_counts(profile, rate)
    return draw_access(
        profile,
        sampler=sampler,
        epsilon=rate,
        iterations=drawn_graphs(scenario),
        seed=run.seed,
        cache=method.cache,
        policy=method.cache_policy,
        feature_width=features,
    )
