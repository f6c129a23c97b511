"""Access counts drawn from a boundary profile, when there is no graph to sample."""

from __future__ import annotations

import numpy as np

from gcnsim.boundary.counts import AccessCounts
from gcnsim.boundary.profile import BoundaryProfile, class_inclusion
from gcnsim.boundary.stored import StoredProfile
from gcnsim.caching import CacheSize, cache_policy, capacity
from gcnsim.ids import FloatArray, IntArray, frozen
from gcnsim.sampling import checked_rate, checked_share
from gcnsim.sampling import sampler as sampling_rule
from gcnsim.streams import stream


def draw_counts(
    profile: BoundaryProfile,
    *,
    sampler: str,
    epsilon: float,
    iterations: int,
    seed: int,
    cache: CacheSize,
    policy: str,
    feature_width: int,
) -> AccessCounts:
    """Counts of `iterations` graphs: needed nodes per class are Binomial(nodes, 1 - (1 - epsilon)^m).

    Rows are exact for `full` and `uniform`. For `vr` with unit norms this is a first-order rule, every edge at rate
    epsilon. Measured against the true rule on METIS parts of four real graphs (4 to 8 parts, epsilon 0.1 and 0.01) it
    gives 0.78 to 1.05 times the rows and 1.05 to 1.16 times the boundary edges: true rates fall with a node's number
    of cross edges (roughly as its power -0.12 to -0.30), so few-edged nodes are needed more often than epsilon says.
    Edges kept by needed nodes have the exact mean and are never fewer than the nodes. Rows and edges depend on the
    seed only, not on the cache. Raises ScenarioError for an unknown sampler or policy, or epsilon outside (0, 1].
    """
    rate = 1.0 if sampling_rule(sampler).name == "full" else checked_rate(epsilon)
    cached = cached_nodes(profile, cache, policy, feature_width, seed)
    shape = (iterations, profile.parts, profile.parts)
    rows, hits = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    inner, boundary = np.zeros(shape[:2], np.int64), np.zeros(shape[:2], np.int64)
    chance, extra = class_inclusion(profile, rate), _extra_rate(profile, rate)
    for t in range(iterations):
        generator = stream(seed, "profile", t)
        needed = generator.binomial(profile.nodes, chance)
        per_class = needed.sum(axis=1)
        more = generator.binomial(per_class * (profile.cross_edges - 1), extra)
        inner[t] = generator.binomial(profile.inner_entries, rate)
        boundary[t] = per_class.sum(axis=1) + more.sum(axis=1)
        rows[t] = needed.sum(axis=2)
        hits[t] = stream(seed, "hits", t).hypergeometric(cached, profile.nodes - cached, needed).sum(axis=2)
    return AccessCounts(
        rows=frozen(rows),
        hits=frozen(hits),
        inner_edges=frozen(inner),
        boundary_edges=frozen(boundary),
        inner_nodes=profile.inner_nodes,
        boundary_nodes=frozen(profile.boundary_nodes),
        entries=frozen(profile.entries),
        cached_rows=frozen(cached.sum(axis=(1, 2))),
    )


def node_counts(profile: BoundaryProfile | StoredProfile, rate: float) -> AccessCounts:
    """Counts of one graph of all inner entries and a share `rate` of every pair's boundary nodes (BNS-GCN).

    Means, rounded: rate times the boundary nodes and rate times the entries that cross. Draws differ by less than a
    node for each pair, and in entries by what nodes differ in. Nothing is cached. Raises ScenarioError for a rate
    outside [0, 1].
    """
    share = checked_share(rate)
    rows = np.rint(share * profile.pairs).astype(np.int64)[None]
    return AccessCounts(
        rows=frozen(rows),
        hits=frozen(np.zeros_like(rows)),
        inner_edges=frozen(profile.inner_entries[None]),
        boundary_edges=frozen(np.rint(share * profile.boundary_entries).astype(np.int64)[None]),
        inner_nodes=profile.inner_nodes,
        boundary_nodes=frozen(profile.boundary_nodes),
        entries=frozen(profile.entries),
        cached_rows=frozen(np.zeros(profile.parts, np.int64)),
    )


def cached_nodes(profile: BoundaryProfile, cache: CacheSize, policy: str, feature_width: int, seed: int) -> IntArray:
    """Cached boundary nodes per worker, owner and class, int64[P, P, K].

    `inclusion` takes the classes with most cross edges first, the last one shared among owners by their numbers;
    `degree` is taken to rank alike, since a profile holds no degrees; `random` draws from the stream ("cache", rank).
    """
    rule = cache_policy(policy).name
    cached = np.zeros_like(profile.nodes)
    for rank, boundary in enumerate(profile.boundary_nodes.tolist()):
        size = capacity(cache, boundary, feature_width)
        nodes = profile.nodes[rank]
        if size == 0:
            continue
        if rule == "random":
            drawn = stream(seed, "cache", rank).multivariate_hypergeometric(nodes.ravel(), size, method="marginals")
            cached[rank] = drawn.reshape(nodes.shape)
        else:
            cached[rank] = _largest_classes(nodes, size)
    return cached


def _largest_classes(nodes: IntArray, size: int) -> IntArray:
    """`size` of the nodes, int64[P, K], from the last class downwards."""
    total = nodes.sum(axis=0)
    above = np.cumsum(total[::-1])[::-1] - total
    taken = np.clip(size - above, 0, total)
    # Cumulative rounding over the owners shares a class in proportion and keeps its sum.
    cumulative = np.cumsum(nodes, axis=0) * taken // np.maximum(total, 1)
    shared: IntArray = np.diff(cumulative, axis=0, prepend=0)
    return shared


def _extra_rate(profile: BoundaryProfile, rate: float) -> FloatArray:
    """The rate at which a needed node keeps each of its m - 1 other edges: its mean m p / (1 - (1 - p)^m) in all."""
    m = profile.cross_edges
    mean = m * rate / class_inclusion(profile, rate)
    extra: FloatArray = np.clip((mean - 1.0) / np.maximum(m - 1, 1), 0.0, 1.0)
    return extra
