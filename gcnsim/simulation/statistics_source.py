"""Source for a dataset known from publications: boundary nodes as printed, the rest as stated assumptions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from gcnsim.core.errors import ScenarioError, plural
from gcnsim.core.ids import FloatArray, IntArray
from gcnsim.methods import SubgraphBatches
from gcnsim.results import Assumed
from gcnsim.scenario import AS_NUMBERED, Scenario
from gcnsim.simulation.batches import only_batches, plan_of
from gcnsim.simulation.expected_batches import WITHIN, degree_spreads, expected_batches, sampled_entries
from gcnsim.simulation.model import Declared, resolve_model
from gcnsim.simulation.part_orders import placement_of_parts
from gcnsim.simulation.source import RangeEnd, Source, drawing, drawn_graphs, edge_counts, fewer_drawn
from gcnsim.trace.bins import fade_to_one
from gcnsim.trace.counts import AccessCounts, BoundaryProfile
from gcnsim.trace.sample_counts import draw_counts, node_counts
from gcnsim.trace.sizes_only import likely_cross_fraction, published_profile
from gcnsim.workload import BoundaryRow, DatasetFacts, boundary_at, largest_of, left_open
from gcnsim.workload.draws import NODES

MOST_OF_ALL = 0.9
"""The largest part contains at most this share of everything."""


class Range(NamedTuple):
    """An assumption: the value that makes an iteration fast, the likely one, the one that makes it slow.

    Observed on four real graphs at 4 to 8 METIS parts (docs/checks.md).
    """

    low: float
    likely: float
    high: float


LOAD, BOUNDARY = "entries", "boundary"
"""The imbalance of the largest part over the mean, by the laws of `gcnsim.workload.cuts`."""

REMOTE = Range(0.73, 0.85, 1.0)
"""Boundary rows owned on other servers, relative to equal ownership: METIS gives neighbouring numbers to similar parts.
"""

DISPERSION = Range(1.5, 1.4, 1.0)
"""Standard deviation of the log of the cross edges per boundary node; a wider spread needs fewer rows."""

VR_ROWS = Range(0.95, 1.05, 1.28)
"""Rows that the variance-reducing sampler needs, relative to the first-order rule that replaces it without a graph."""


CACHE_HITS = Range(0.96, 0.9, 0.78)
"""The hit rate of a cache by inclusion or degree, relative to one that knows every node's cross edges."""


FOUR = "four real graphs at 4 to 8 METIS parts"
"""The graphs on which the ranges were observed (docs/checks.md)."""

HOW_IT_GROWS = "growing with the parts as other graphs' boundaries do (studies/cuts.py)"
"""The assumption beyond the numbers of parts with a known boundary."""

PARTS_OF_OTHERS = "METIS parts of other graphs (studies/cuts.py)"
"""Where shares and imbalance were observed."""


def extrapolation_warning(gpus: int, note: str) -> Iterator[str]:
    """A warning if boundary nodes are interpolated, extrapolated or assumed."""
    if "polated" in note or "assumption" in note:
        yield f"{plural(gpus, 'GPU')}: boundary nodes {note}"


class StatisticsSource(Source):
    """A dataset known from publications: boundary nodes as printed, cross edges and imbalance as stated assumptions."""

    def __init__(self, facts: DatasetFacts) -> None:
        self.facts = facts
        self.most_gpus = facts.nodes if facts.boundary else 1
        self.declared = Declared(facts.model, facts.layers, facts.hidden, facts.features, facts.classes)
        self.assumption_bounds = tuple(RangeEnd)
        self.any_parts = True
        self._profiles: dict[object, BoundaryProfile] = {}
        self._counts: dict[object, AccessCounts] = {}

    @property
    def name(self) -> str:
        """The dataset's name."""
        return self.facts.name

    def describe(self, scenario: Scenario) -> Mapping[str, Any]:
        """The dataset's size and the mean part, with citations."""
        facts, parts = self.facts, ""
        if not scenario.method.mini_batches:
            inner, outer, note = self.cut(scenario)
            parts = f"; {inner:,.0f} inner and {outer:,.0f} boundary nodes per worker, {note}"
        return {
            "kind": "published-statistics",
            "text": f"{facts.name}: {facts.nodes:,} nodes, {facts.entries:,} stored entries{parts}",
            "citations": dict(facts.citations),
        }

    def warnings(self, scenarios: Sequence[Scenario]) -> Iterator[str]:
        """Warn if boundary nodes are interpolated, extrapolated or assumed."""
        exchanging = {one.cluster.gpus: one for one in scenarios if not one.method.mini_batches}
        for one in exchanging.values():
            yield from extrapolation_warning(one.cluster.gpus, self.cut(one)[2])
        yield from fewer_drawn(scenarios)

    def assumptions(self, scenario: Scenario, scenarios: Sequence[Scenario]) -> Iterator[Assumed]:
        """The assumptions that replace unpublished properties of the partition."""
        if scenario.cluster.gpus == 1:
            return
        crossing, parts = self.basis(scenario)
        low, likely, high = (f"{100 * share:.3g} %" for share in self.cross_fractions(scenario))
        yield Assumed("cross_fraction", likely, low, high, crossing, True)
        yield from self._of_growth(scenario)
        known = {
            "load_imbalance": (self.imbalances(scenario, LOAD), f"stored entries {parts}"),
            "boundary_imbalance": (self.imbalances(scenario, BOUNDARY), f"boundary nodes {parts}"),
            "remote_ownership": (REMOTE, f"boundary rows owned on other servers, over equal ownership, {FOUR}"),
        }
        # Nodes sampled independently of their edges do not depend on the spread of edges.
        methods = [item.method for item in scenarios if item.method.sampling().by_edge]
        if methods:
            known["dispersion"] = (DISPERSION, f"standard deviation of log cross edges per boundary node, {FOUR}")
        if any(method.sampling().rule == "vr" for method in methods):
            known["vr_rows"] = (VR_ROWS, f"rows the vr sampler needs, over the first-order rule used here, {FOUR}")
        if any(not method.cache.empty for method in methods):
            known["cache_hits"] = (CACHE_HITS, f"cache hits, over a cache that knows all cross edges, {FOUR}")
        for name, (value, why) in known.items():
            least, most = sorted((value.low, value.high))
            yield Assumed(name, f"{value.likely:.3g}", f"{least:.3g}", f"{most:.3g}", why, True)

    def _of_growth(self, scenario: Scenario) -> Iterator[Assumed]:
        """The assumption about the boundary at more parts than any published run."""
        ends = [self.boundary_by(scenario, bound) for bound in RangeEnd]
        if min(ends) < max(ends):
            inner, boundary, _ = self.cut(scenario)
            most = min(self.facts.nodes - inner, self.facts.entries / scenario.cluster.gpus)
            low, likely, high = (f"{min(boundary * end, most):,.0f}" for end in ends)
            basis = f"of the mean worker, {HOW_IT_GROWS}"
            yield Assumed("boundary_nodes", likely, low, high, basis, True)

    def basis(self, scenario: Scenario) -> tuple[str, str]:
        """The basis of the share of crossing entries and of the imbalance."""
        workload = scenario.workload
        return (
            f"by boundary/inner, {PARTS_OF_OTHERS}" if workload.cross_fraction is None else "given",
            f"of the largest part over the mean part, {PARTS_OF_OTHERS}" if workload.imbalance is None else "given",
        )

    def batch_assumptions(self, scenarios: Sequence[Scenario]) -> Iterator[Assumed]:
        """The assumptions about the spread of degrees and the share of entries inside a cluster."""
        low, likely, high = (f"{spread:.3g}" for spread in sorted(degree_spreads(self.facts)))
        basis = "standard deviation of log degrees, of mini-batches"
        yield Assumed("degree_spread", likely, low, high, basis, True)
        methods = [scenario.method for scenario in scenarios]
        if any(isinstance(method, SubgraphBatches) and method.nodes_of == "clusters" for method in methods):
            low, likely, high = (f"{100 * share:.3g} %" for share in WITHIN)
            basis = "entries that stay in a cluster of ClusterGCN"
            yield Assumed("within_cluster", likely, low, high, basis, True)

    def cross_fractions(self, scenario: Scenario) -> tuple[float, float, float]:
        """Share of entries that cross partitions: low, likely, high (all equal if the scenario gives it)."""
        stated = scenario.workload.cross_fraction
        if stated is not None:
            return stated, stated, stated
        inner, boundary, _ = self.cut(scenario)
        if self.dealt(scenario):
            crossing = boundary / self.facts.nodes
            return crossing, crossing, crossing
        return likely_cross_fraction(inner, boundary, self.facts.entries / self.facts.nodes)

    def dealt(self, scenario: Scenario) -> bool:
        """Whether parts are assumed to be random: no better partition is known, and the method sends whole blocks."""
        return not self.facts.boundary and scenario.method.sends_blocks and scenario.cluster.gpus > 1

    def cut(self, scenario: Scenario) -> tuple[float, float, str]:
        """Mean inner and boundary nodes of a part, and their source."""
        gpus = scenario.cluster.gpus
        if self.dealt(scenario):
            return self.facts.nodes / gpus, self.facts.nodes * (1.0 - 1.0 / gpus), "of parts at random"
        if scenario.method.mini_batches and not self.facts.boundary and gpus > 1:
            away = self.facts.nodes * (1.0 - 1.0 / gpus)
            return self.facts.nodes / gpus, away, "of parts at random: none is published"
        return boundary_at(self.facts, gpus)

    def imbalances(self, scenario: Scenario, figure: str) -> Range:
        """Largest part over mean part, of `LOAD` or `BOUNDARY`: by law, or given by the scenario; limited by the number
        of parts.
        """
        stated, gpus = scenario.workload.imbalance, scenario.cluster.gpus
        if stated is None and self.dealt(scenario):
            return Range(1.0, 1.0, 1.0)
        most = max(1.0, MOST_OF_ALL * gpus)
        if stated is not None and stated > most:
            raise ScenarioError(
                f"workload.imbalance: {stated:g} is not allowed; with {gpus} workers it is at most {most:g}"
            )
        ends = largest_of(figure, gpus) if stated is None else (stated, stated, stated)
        return Range(*(min(value, most) for value in ends))

    def profile(self, scenario: Scenario, bound: RangeEnd) -> BoundaryProfile:
        """The boundary profile at one end of the assumptions."""
        cluster, workload = scenario.cluster, scenario.workload
        order = placement_of_parts(scenario)
        key = (cluster.gpus, cluster.gpus_per_server, self._cross(scenario, bound), workload.imbalance, bound, order)
        if key not in self._profiles:
            self._profiles[key] = self._profile(scenario, bound)
        return self._profiles[key]

    def _profile(self, scenario: Scenario, bound: RangeEnd) -> BoundaryProfile:
        gpus, end = scenario.cluster.gpus, bound.value
        inner, boundary, _ = self.cut(scenario)
        # The ends of an answer as numbered have the heavy parts apart or together; otherwise the order is drawn.
        place = server_of(gpus, bound if placement_of_parts(scenario) == AS_NUMBERED else RangeEnd.LIKELY)
        boundary *= self.boundary_by(scenario, bound)
        load = load_shares(self.imbalances(scenario, LOAD)[end], gpus)[place]
        border = load_shares(self.imbalances(scenario, BOUNDARY)[end], gpus)[place]
        entries = np.rint(self.facts.entries / gpus * load).astype(np.int64)
        nodes = np.rint(np.minimum(boundary * border, self.facts.nodes - inner)).astype(np.int64)
        cross = self._cross(scenario, bound)
        return published_profile(
            np.full(gpus, round(inner), dtype=np.int64),
            # A boundary node has a cross edge, so there are no more of them than cross edges.
            np.minimum(nodes, (cross * entries).astype(np.int64)),
            entries,
            cross,
            DISPERSION[end],
            owner_shares(gpus, scenario.cluster.gpus_per_server, self.remote(scenario, bound)),
        )

    def boundary_by(self, scenario: Scenario, bound: RangeEnd) -> float:
        """Mean boundary nodes at this end of the assumptions over the likely ones: 1 if they are published."""
        return 1.0 if self.dealt(scenario) else extrapolated_boundary(self.facts.boundary, scenario.cluster.gpus, bound)

    def remote(self, scenario: Scenario, bound: RangeEnd) -> float:
        """Boundary rows owned on other servers, relative to equal ownership."""
        return REMOTE[bound.value]

    def _cross(self, scenario: Scenario, bound: RangeEnd) -> float:
        """The cross fraction at one end.

        If only crossing entries are dropped, fewer of them make the iteration slower.
        """
        low, likely, high = self.cross_fractions(scenario)
        ends = (high, likely, low) if scenario.method.sampling().rule == NODES else (low, likely, high)
        return ends[bound.value]

    def counts(self, scenario: Scenario, features: int, bound: RangeEnd) -> AccessCounts:
        """Counts sampled from the profile at `bound`, or means for node sampling."""
        if scenario.method.mini_batches:
            return self.batched(scenario, bound, self._crossing(scenario, bound))
        if scenario.method.sampling().drops_edges:
            return edge_counts(self, scenario, features, bound)
        workload = scenario.workload
        draw_key = (*drawing(scenario.method), self.dealt(scenario))
        cluster = scenario.cluster
        order = placement_of_parts(scenario)
        key = (cluster.gpus, cluster.gpus_per_server, workload, draw_key, features, scenario.run, bound, order)
        if key not in self._counts:
            self._counts[key] = self._draw(scenario, features, bound)
        return self._counts[key]

    def batched(self, scenario: Scenario, bound: RangeEnd, crossing: float) -> AccessCounts:
        """Expected counts of mini-batches; crossing: share of the entries that lead to other parts."""
        plan = plan_of(scenario, resolve_model(scenario.workload, self.declared).shapes)
        batches = expected_batches(self.facts, scenario, plan, bound, crossing)
        return only_batches(batches, self.facts.nodes, sampled_entries(self.facts, scenario))

    def _crossing(self, scenario: Scenario, bound: RangeEnd) -> float:
        """The share for METIS parts if their boundary is known, otherwise for random parts."""
        gpus = scenario.cluster.gpus
        if gpus == 1 or not self.facts.boundary:
            return 1.0 - 1.0 / gpus
        return self.cross_fractions(scenario)[bound.value]

    def _draw(self, scenario: Scenario, features: int, bound: RangeEnd) -> AccessCounts:
        method, run = scenario.method, scenario.run
        profile = self.profile(scenario, bound)
        sampling = method.sampling()
        sampler, rate = sampling.drawn_by
        if sampler == NODES:
            return node_counts(profile, rate)
        counts = draw_counts(
            profile,
            sampler=sampler,
            epsilon=rate,
            iterations=drawn_graphs(scenario),
            seed=run.seed,
            cache=method.cache,
            policy=method.cache_policy,
            feature_width=features,
        )
        # At rate 1 every row is needed and every cached one hits: the assumptions of smaller rates fade towards it.
        fading = 0.0 if sampling.whole else fade_to_one(rate)
        rows = 1.0 + fading * (VR_ROWS[bound.value] - 1.0) if sampler == "vr" else 1.0
        hits = 1.0 + fading * (CACHE_HITS[bound.value] - 1.0) if method.cache_policy != "random" else 1.0
        return scaled(counts, rows, hits)


def scaled(counts: AccessCounts, rows_by: float, hits_by: float) -> AccessCounts:
    """The counts with `rows_by` times the rows (at most a pair's share of the boundary) and `hits_by` times the hit
    rate.
    """
    if rows_by == hits_by == 1.0:
        return counts
    share = counts.rows / np.maximum(counts.rows.sum(axis=2, keepdims=True), 1)
    most = np.maximum(counts.rows, np.ceil(share * counts.boundary_nodes[None, :, None]).astype(np.int64))
    rows = np.minimum(np.rint(counts.rows * rows_by).astype(np.int64), most)
    rate = counts.hits / np.maximum(counts.rows, 1) * hits_by
    edges = np.maximum(counts.boundary_edges, rows.sum(axis=2))
    return replace(counts, rows=rows, hits=np.rint(rows * rate).astype(np.int64), boundary_edges=edges)


def extrapolated_boundary(rows: Sequence[BoundaryRow], parts: int, bound: RangeEnd) -> float:
    """Boundary nodes of `parts` parts at `bound` over the likely ones, by published `rows` and the law."""
    if not rows or parts == 1:
        return 1.0
    least, most = left_open(rows, parts)
    return (least, 1.0, most)[bound.value]


def server_of(workers: int, bound: RangeEnd) -> IntArray:
    """Which of the loads (lightest first) each worker has; servers have neighbouring workers.

    Low: the heaviest next to the lightest. Likely: every other load first, then the rest. High: the heaviest together.
    """
    order = np.arange(workers)
    if bound is RangeEnd.HIGH:
        return order
    if bound is RangeEnd.LIKELY:
        return np.concatenate([order[::2], order[1::2]])
    return np.array([order[step // 2] if step % 2 == 0 else order[-1 - step // 2] for step in range(workers)], np.int64)


def owner_shares(workers: int, per_server: int, remote: float) -> FloatArray:
    """Weights with which each worker's boundary nodes belong to the others, float64[P, P].

    Workers of other servers own `remote` times their share under equal ownership.
    """
    server = np.arange(workers) // per_server
    away = server[:, None] != server[None, :]
    beside = ~away & ~np.eye(workers, dtype=np.bool_)
    far, near = away.sum(axis=1), beside.sum(axis=1)
    equal = far / np.maximum(far + near, 1)
    share = np.where(near > 0, np.where(far > 0, equal * remote, 0.0), 1.0)
    per_far = (share / np.maximum(far, 1))[:, None]
    per_near = ((1.0 - share) / np.maximum(near, 1))[:, None]
    return np.asarray(away * per_far + beside * per_near, dtype=np.float64)


def load_shares(imbalance: float, workers: int) -> FloatArray:
    """The load of each worker over the mean, float64[P]: a geometric sequence up to `imbalance`.

    Its factor is computed by bisection; every worker has some load, as METIS parts do.
    """
    steps = np.arange(workers) - (workers - 1)

    def largest(factor: float) -> float:
        return workers / float(np.sum(factor**steps))

    low, high = 1.0, 1e6
    for _ in range(100):
        factor = (low * high) ** 0.5
        low, high = (factor, high) if largest(factor) < imbalance else (low, factor)
    return np.asarray(largest(high) * high**steps, dtype=np.float64)
