"""Sources for boundary profiles, without any graph: a stored one, and those bundled for a dataset.

A stored profile is of a user's graph at one number of parts. For a dataset with bundled profiles, counts are sampled
from its surrogate's partition.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from gcnsim.core.errors import ScenarioError, plural
from gcnsim.graph.describe import SeedVariation, partition_scatter
from gcnsim.results import Assumed
from gcnsim.scenario import MOST_GPUS, Scenario
from gcnsim.simulation.model import Declared
from gcnsim.simulation.source import RangeEnd, Source, drawing, drawn_graphs, edge_counts, fewer_drawn
from gcnsim.simulation.statistics_source import FOUR, HOW_IT_GROWS, VR_ROWS, StatisticsSource, extrapolation_warning
from gcnsim.trace.counts import AccessCounts
from gcnsim.trace.packaged_profiles import (
    bundled_parts,
    interpolation,
    outline_of,
    profile_at,
    profile_end,
    profiled_parts,
    uncounted,
)
from gcnsim.trace.rescale import with_cross_edges
from gcnsim.trace.sample_counts import draw_access, node_counts
from gcnsim.trace.sizes_only import mean_ratio, size_only_profile
from gcnsim.trace.stored_profile import StoredProfile, read_profile
from gcnsim.workload import FAR, DatasetFacts, dataset, datasets
from gcnsim.workload.draws import NODES

if TYPE_CHECKING:
    from gcnsim.graph.generate import SizeOnlyDataset


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


BY_ASSUMPTION: Final = "by assumption"
"""The source of the boundary nodes of an outline."""


class SurrogateSource(Source):
    """A dataset by the profiles of its surrogate or outline, otherwise by its published statistics.

    Profiles do not apply beyond the profiled numbers of GPUs, and if the scenario gives the counts itself.
    """

    def __init__(self, facts: DatasetFacts) -> None:
        self.facts = facts
        self.published = StatisticsSource(facts)
        self.outline = None if bundled_parts(facts.name) else outline_of(facts)
        self.answered = profiled_parts(facts.name) if self.outline is None else within(self.outline)
        self.most_gpus = self.published.most_gpus if facts.boundary else self.answered[-1]
        self.declared = self.published.declared
        self.assumption_bounds = tuple(RangeEnd)
        self.any_parts = True
        self._counts: dict[object, AccessCounts] = {}
        self._outlined: dict[tuple[int, RangeEnd], StoredProfile] = {}

    @property
    def name(self) -> str:
        """The dataset's name."""
        return self.facts.name

    def describe(self, scenario: Scenario) -> Mapping[str, Any]:
        """Describe the surrogate or outline behind the profile, or the published statistics."""
        if not self.profiled(scenario):
            return self.published.describe(scenario)
        gpus, facts = scenario.cluster.gpus, self.facts
        profile, note = self.profile(gpus), self.partition_note(scenario)
        origin = profile.origin
        held = (
            f"{profile.inner_nodes.mean():,.0f} inner and {profile.boundary_nodes.mean():,.0f} boundary nodes per "
            f"worker, {self.note(gpus)}"
        )
        if self.outline is not None:
            return _described("outline", facts, "sizes", f"{held}: {self.outline.assumed}")
        errors = sorted((origin.residuals or {}).items(), key=lambda item: int(item[0]))
        missed = ", ".join(f"{100 * error:+.0f} % at {parts}" for parts, error in errors)
        text = f"{held}; its boundary compared with the published one: {missed or 'nothing published'}"
        text += f"; measured with {100 * origin.scale:g} % of the nodes" if origin.scale != 1.0 else ""
        text += "" if note is None else f"; {note}"
        return _described("surrogate-profile", facts, "a surrogate", text)

    def warnings(self, scenarios: Sequence[Scenario]) -> Iterator[str]:
        """Warn if boundary nodes are interpolated, extrapolated or assumed."""
        for one in {scenario.cluster.gpus: scenario for scenario in scenarios}.values():
            gpus = one.cluster.gpus
            yield from extrapolation_warning(
                gpus, self.note(gpus) if self.profiled(one) else self.published.cut(one)[2]
            )
        yield from fewer_drawn(scenarios)

    def assumptions(self, scenario: Scenario, scenarios: Sequence[Scenario]) -> Iterator[Assumed]:
        """The assumptions behind the profile, or behind the published statistics."""
        profiled = dict.fromkeys(item.cluster.gpus for item in scenarios if self.profiled(item))
        for gpus in list(profiled)[:1]:
            yield self._cross_edges(gpus)
            yield from self._of_interpolation(gpus)
            if self.outline is not None:
                yield from _of_outline(self.outline, self.profile(gpus))
        if not (profiled and self.profiled(scenario)):
            yield from self.published.assumptions(scenario, scenarios)

    def batch_assumptions(self, scenarios: Sequence[Scenario]) -> Iterator[Assumed]:
        """The same as for the published statistics."""
        return self.published.batch_assumptions(scenarios)

    def evidence(self, scenario: Scenario) -> str:
        """Profiles of computed partitions, or published counts scaled to other numbers of parts."""
        return "profiles" if self.profiled(scenario) else "statistics"

    def scatter(self, scenario: Scenario) -> SeedVariation | None:
        """The variation of the surrogate's partitions over seeds."""
        if scenario.cluster.gpus == 1 or scenario.method.mini_batches:
            return None
        if not self.profiled(scenario) or not bundled_parts(self.facts.name):
            return None
        return partition_scatter(self.facts.name, scenario.cluster.gpus)

    def partition_note(self, scenario: Scenario) -> str | None:
        """The partition behind the scenario's profile, and how much another one differs."""
        scatter = self.scatter(scenario)
        if scatter is None:
            return None
        origin = self.profile(scenario.cluster.gpus).origin
        named = {"metis-vol": "volume", "metis-cut": "edges cut"}
        objective = named.get(origin.partition_method, origin.partition_method)
        scale = "" if origin.scale == 1.0 else f", of {100 * origin.scale:g} % of the nodes"
        low, high = (100 * (factor - 1.0) for factor in scatter.factors("boundary_largest"))
        return (
            f"of one partition: METIS k-way, objective {objective}, seed {origin.partition_seed}{scale}; with other "
            f"seeds the largest worker has {low:+.0f} to {high:+.0f} % boundary nodes ({scatter.source})"
        )

    def _cross_edges(self, gpus: int) -> Assumed:
        """The assumption about a surrogate's cross edges, which decides the rows needed at a rate below 1."""
        low, likely, high = (
            f"{self.profile(gpus, bound).cross_edges_mean:.3g}"
            for bound in (RangeEnd.LOW, RangeEnd.LIKELY, RangeEnd.HIGH)
        )
        source = self.profile(gpus).origin.source
        where = "surrogate" if source == "interpolated" else source
        basis = f"per boundary node in the {where}; its range: docs/surrogates.md"
        return Assumed("cross_edges", likely, low, high, basis, True)

    def _of_interpolation(self, gpus: int) -> Iterator[Assumed]:
        """The range of the boundary at a number of parts that nobody counted."""
        between, name = interpolation(self.facts.name, gpus), self.facts.name
        if between is not None and between.missed is not None:
            basis = f"interpolated between profiles at {between.low} and {between.high} parts, leave-one-out error"
        elif self.outline is None and gpus > bundled_parts(name)[-1]:
            basis = f"{HOW_IT_GROWS}, with the shape of the profile at {bundled_parts(name)[-1]} parts"
        elif self.outline is None and uncounted(name, gpus) != (1.0, 1.0):
            basis = f"by the counts at other numbers of parts: {dict(self.facts.citations)['boundary']}"
        else:
            return
        ends = [self.profile(gpus, bound).boundary_nodes for bound in (RangeEnd.LOW, RangeEnd.LIKELY, RangeEnd.HIGH)]
        low, likely, high = (f"{nodes.mean():,.0f}" for nodes in ends)
        yield Assumed("boundary_nodes", likely, low, high, f"of the mean worker; {basis}", True)
        low, likely, high = (f"{nodes.max():,}" for nodes in ends)
        yield Assumed("boundary_nodes_most", likely, low, high, f"of the largest worker; {basis}", True)

    def profiled(self, scenario: Scenario) -> bool:
        """Whether the scenario uses a profile."""
        workload = scenario.workload
        stated = workload.cross_fraction is not None or workload.imbalance is not None
        # Whole blocks are sent for any partition; without a known partition, random parts are assumed.
        blocks = self.outline is not None and scenario.method.sends_blocks and self.published.dealt(scenario)
        return not stated and not blocks and scenario.cluster.gpus in self.answered

    def profile(self, gpus: int, bound: RangeEnd = RangeEnd.LIKELY, cross: RangeEnd | None = None) -> StoredProfile:
        """The profile at one end of the assumptions: cross edges per boundary node, and interpolation error.

        cross: the end of the cross edges if it differs from the end of the boundary nodes.
        """
        crossing = bound if cross is None else cross
        if self.outline is None:
            return profile_end(self.facts.name, gpus, bound.value, crossing.value)
        key = gpus, bound
        if key not in self._outlined:
            self._outlined[key] = size_only_profile(self.outline, gpus, bound.value)
        low, high = self._outlined[key].origin.cross_range
        return with_cross_edges(self._outlined[key], (low, 1.0, high)[crossing.value])

    def note(self, gpus: int) -> str:
        """The source of the profile at `gpus`."""
        return profile_at(self.facts.name, gpus)[1] if self.outline is None else BY_ASSUMPTION

    def counts(self, scenario: Scenario, features: int, bound: RangeEnd) -> AccessCounts:
        """Counts sampled from the profile at `bound`, or means for node sampling."""
        if scenario.method.mini_batches and self.profiled(scenario):
            profile = self.profile(scenario.cluster.gpus, bound)
            crossing = float(profile.boundary_entries.sum() / max(1, int(profile.entries.sum())))
            return self.published.batched(scenario, bound, crossing)
        if scenario.method.mini_batches:
            return self.published.counts(scenario, features, bound)
        if scenario.method.sampling().drops_edges:
            return edge_counts(self, scenario, features, bound)
        if not self.profiled(scenario):
            self._refuse_unpublished(scenario)
            return self.published.counts(scenario, features, bound)
        key = (scenario.cluster.gpus, drawing(scenario.method), features, scenario.run, bound)
        if key not in self._counts:
            self._counts[key] = self._draw(scenario, features, bound)
        return self._counts[key]

    def _refuse_unpublished(self, scenario: Scenario) -> None:
        """Raise ScenarioError if published boundary counts are required and there are none."""
        gpus, workload, answered = scenario.cluster.gpus, scenario.workload, self.answered
        # One worker has no boundary. Sizes are enough for it, except for a graph that exceeds every GPU's memory.
        if self.facts.boundary or self.published.dealt(scenario) or (gpus, answered[0]) == (1, 2):
            return
        why = f"no boundary of {self.facts.name} is published"
        if gpus not in answered:
            most = min(self.most_gpus, MOST_GPUS)
            raise ScenarioError(f"cluster.gpus: {gpus} is not allowed; {answered[0]} to {most} are, {why}")
        name, stated = "imbalance", workload.imbalance
        if workload.cross_fraction is not None:
            name, stated = "cross_fraction", workload.cross_fraction
        raise ScenarioError(f"workload.{name}: {stated:g} is not allowed; null is, {why}")

    def _draw(self, scenario: Scenario, features: int, bound: RangeEnd) -> AccessCounts:
        profile = self.profile(scenario.cluster.gpus, bound, cross_end(scenario, bound))
        return drawn_counts(profile, scenario, features)


def _described(kind: str, facts: DatasetFacts, what: str, text: str) -> Mapping[str, Any]:
    size = f"{facts.name}: {what} of {facts.nodes:,} nodes, {facts.entries:,} stored entries"
    size += f", boundary by {facts.boundary[0].source}" if facts.boundary else ""
    return {"kind": kind, "text": f"{size}; {text}", "citations": dict(facts.citations)}


def within(facts: SizeOnlyDataset) -> range:
    """The numbers of parts that an outline supports."""
    return range(facts.parts[0], facts.parts[-1] + 1)


def _of_outline(facts: SizeOnlyDataset, profile: StoredProfile) -> Iterator[Assumed]:
    """The further assumption without a partition: the boundary is unpublished."""
    yield boundary_ratio(facts, profile.parts)
    ratio = profile.boundary_nodes / profile.inner_nodes
    least, most = f"{ratio.min():.3g}", f"{ratio.max():.3g}"
    basis = "the same, least and most of the workers: as uneven as the parts of another graph"
    yield Assumed("boundary_ratios", f"{ratio.mean():.3g}", least, most, basis, False)
    basis = f"rows the vr sampler needs, over the first-order rule used here, {FOUR}"
    yield Assumed("vr_rows", "1", f"{VR_ROWS.low:.3g}", f"{VR_ROWS.high:.3g}", basis, False)


def boundary_ratio(facts: SizeOnlyDataset, parts: int) -> Assumed:
    """The assumed ratio of boundary to inner nodes of an outlined graph."""
    low, likely, high = (f"{mean_ratio(facts, parts, end):.3g}" for end in range(3))
    basis = f"boundary over inner nodes of the mean worker: {facts.boundary.source}"
    if parts != facts.boundary.parts and (facts.boundary.growth is None or parts > FAR):
        basis += f"; {HOW_IT_GROWS}"
    return Assumed("boundary_ratio", likely, low, high, basis, True)
