"""Access counts without a graph: sampled from a boundary profile, or around the means of a stored one.

A static cache holds the nodes of a stored profile's cells that `gcnsim.workload.caching` ranks first, cell by cell.
Ties matter: a cache that ends among nodes of equal degree takes those of lower ranks, whose boundary indices come
first. On small graphs that decides which pair of workers sends most.
"""

from __future__ import annotations

import math
from dataclasses import fields
from typing import Final, NamedTuple

import numpy as np

from gcnsim.core.errors import ScenarioError, nearest
from gcnsim.core.ids import BoolArray, FloatArray, IntArray, frozen
from gcnsim.core.streams import stream
from gcnsim.trace.bins import MANY_PARTS, Bins, ExpectedAccess, drawn, inclusion_at, kept_fractions, reweighted
from gcnsim.trace.counts import AccessCounts, BoundaryProfile, class_inclusion
from gcnsim.trace.stored_profile import StoredProfile
from gcnsim.workload.caching import CacheSize, cache_policy, capacity
from gcnsim.workload.draws import checked_share
from gcnsim.workload.samplers import checked_rate
from gcnsim.workload.samplers import sampler as sampling_rule


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

    Rows are exact for `full` and `uniform`. For `vr` with unit norms this is a first-order rule: every edge at rate
    epsilon. Compared with the exact rule on METIS parts of four real graphs (4 to 8 parts, epsilon 0.1 and 0.01), it
    gives 0.78 to 1.05 times the rows and 1.05 to 1.16 times the boundary edges. The reason is that true rates fall with
    a node's number of cross edges (roughly as its power -0.12 to -0.30), so nodes with few edges are needed more often
    than epsilon implies. Edges kept by needed nodes have the exact mean and are never fewer than the nodes. Rows and
    edges depend on the seed only, not on the cache. Above `MANY_PARTS` parts the classes of a pair are drawn as one
    number of the same mean and variance (`gcnsim.trace.bins`). Raises ScenarioError for an unknown sampler or
    policy, or epsilon outside (0, 1].
    """
    rate = 1.0 if sampling_rule(sampler).name == "full" else checked_rate(epsilon)
    rule = cache_policy(policy).name
    if profile.parts > MANY_PARTS:
        return drawn(_expected(profile, rate, cache, rule, feature_width), profile, iterations, seed)
    cached = cached_nodes(profile, cache, rule, feature_width, seed)
    cells = _cells(profile, cached)
    parts, classes = profile.parts, profile.cross_edges.size
    rows, hits = (np.zeros((iterations, parts * parts), np.int64) for _ in range(2))
    inner, boundary = (np.zeros((iterations, parts), np.int64) for _ in range(2))
    chance, extra = class_inclusion(profile, rate), _extra_rate(profile, rate)
    each, of_class = chance[cells.kind], cells.owner // parts * classes + cells.kind
    # Without cached nodes there are no hits, and no random numbers are drawn.
    near = np.flatnonzero((cells.cached > 0) | (cells.nodes >= 2 * _REJECTS)) if cached.any() else None
    for t in range(iterations):
        generator = stream(seed, "profile", t)
        needed = generator.binomial(cells.nodes, each)
        per_class = np.bincount(of_class, needed, parts * classes).reshape(parts, classes).astype(np.int64)
        more = generator.binomial(per_class * (profile.cross_edges - 1), extra)
        inner[t] = generator.binomial(profile.inner_entries, rate)
        boundary[t] = per_class.sum(axis=1) + more.sum(axis=1)
        rows[t] = np.bincount(cells.owner, needed, parts * parts)
        if near is not None:
            found = _hits(cells.nodes[near], cells.cached[near], needed[near], stream(seed, "hits", t))
            hits[t] = np.bincount(cells.owner[near], found, parts * parts)
    return AccessCounts(
        rows=frozen(rows.reshape(iterations, parts, parts)),
        hits=frozen(hits.reshape(iterations, parts, parts)),
        inner_edges=frozen(inner),
        boundary_edges=frozen(boundary),
        inner_nodes=profile.inner_nodes,
        boundary_nodes=frozen(profile.boundary_nodes),
        entries=frozen(profile.entries),
        cached_rows=frozen(cached.sum(axis=(1, 2))),
    )


_REJECTS = 10
"""The least sample that NumPy draws by rejection."""


class _Cells(NamedTuple):
    """The non-empty classes of a profile, int64[C] each, by worker, owner and class; most classes of a pair are empty.

    owner: n P + m of worker n and owner m. kind: the class. nodes, cached: nodes, and how many of them are in n's
    cache.
    """

    owner: IntArray
    kind: IntArray
    nodes: IntArray
    cached: IntArray


def _cells(profile: BoundaryProfile, cached: IntArray) -> _Cells:
    nodes = profile.nodes.ravel()
    at = np.flatnonzero(nodes)
    owner, kind = np.divmod(at, profile.cross_edges.size)
    return _Cells(owner, kind, nodes[at], cached.ravel()[at])


def _hits(nodes: IntArray, cached: IntArray, needed: IntArray, generator: np.random.Generator) -> IntArray:
    """How many of the `needed` nodes are cached, int64[C]."""
    others = nodes - cached
    hits = np.where(others == 0, needed, 0)
    chosen = np.flatnonzero(_drawn_from(cached, others, needed))
    hits[chosen] = generator.hypergeometric(cached[chosen], others[chosen], needed[chosen])
    return hits


def _drawn_from(good: IntArray, bad: IntArray, sample: IntArray) -> BoolArray:
    """Whether NumPy's hypergeometric distribution uses its random generator.

    It does not for empty samples. For nodes of one kind only, it does so if it draws by rejection: for samples of at
    least ten that leave at least ten.
    """
    many = (sample >= _REJECTS) & (sample <= good + bad - _REJECTS)
    return np.asarray((sample > 0) & (many | ((good > 0) & (bad > 0))))


def node_counts(profile: BoundaryProfile | StoredProfile, rate: float) -> AccessCounts:
    """Counts of one graph of all inner entries and a share `rate` of every pair's boundary nodes (BNS-GCN).

    Means, rounded: rate times the boundary nodes and rate times the crossing entries. Samples differ by less than a
    node for each pair, and in entries by the variation between nodes. Nothing is cached. Raises ScenarioError for a
    rate outside [0, 1].
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

    `inclusion` takes the classes with most cross edges first, and splits the last one among owners in proportion.
    `degree` is assumed to rank the same, because a profile has no degrees. `random` draws from the stream ("cache",
    rank).
    """
    rule = cache_policy(policy).name
    cached = np.zeros((profile.parts, profile.parts, profile.cross_edges.size), np.int64)
    for rank, boundary in enumerate(profile.boundary_nodes.tolist()):
        size = capacity(cache, boundary, feature_width)
        if size == 0:
            continue
        nodes = profile.of_worker(rank)
        if rule == "random":
            chosen = stream(seed, "cache", rank).multivariate_hypergeometric(nodes.ravel(), size, method="marginals")
            cached[rank] = chosen.reshape(nodes.shape)
        else:
            cached[rank] = _largest_classes(nodes, size)
    return cached


def _expected(profile: BoundaryProfile, rate: float, cache: CacheSize, rule: str, feature_width: int) -> ExpectedAccess:
    """The mean requests of a graph; a random cache holds its share of every class."""
    chance, parts = class_inclusion(profile, rate), profile.parts
    size = np.array([capacity(cache, int(nodes), feature_width) for nodes in profile.boundary_nodes], np.int64)
    rows, rows_squares, hits, hits_squares, held = np.zeros((5, parts, parts))
    for rank, cached_rows in enumerate(size.tolist()):
        nodes = profile.of_worker(rank)
        rows[rank], rows_squares[rank] = nodes @ chance, nodes @ chance**2
        if cached_rows:
            cached = nodes * (cached_rows / nodes.sum()) if rule == "random" else _largest_classes(nodes, cached_rows)
            hits[rank], hits_squares[rank], held[rank] = cached @ chance, cached @ chance**2, cached.sum(axis=1)
    return ExpectedAccess(
        rows=rows,
        rows_squares=rows_squares,
        hits=hits,
        hits_squares=hits_squares,
        held=held,
        cached_rows=size,
        inner_edges=np.asarray(rate * profile.inner_entries, np.float64),
        boundary_edges=np.asarray(rate * profile.boundary_entries, np.float64),
    )


def _largest_classes(nodes: IntArray, size: int) -> IntArray:
    """`size` of the nodes, int64[P, K], from the last class downwards."""
    total = nodes.sum(axis=0)
    above = np.cumsum(total[::-1])[::-1] - total
    taken = np.clip(size - above, 0, total)
    # Cumulative rounding over the owners splits a class in proportion and keeps its sum.
    cumulative = np.cumsum(nodes, axis=0) * taken // np.maximum(total, 1)
    shared: IntArray = np.diff(cumulative, axis=0, prepend=0)
    return shared


def _extra_rate(profile: BoundaryProfile, rate: float) -> FloatArray:
    """The rate at which a needed node keeps each of its m - 1 other edges: its mean total is m p / (1 - (1 - p)^m)."""
    m = profile.cross_edges
    mean = m * rate / class_inclusion(profile, rate)
    extra: FloatArray = np.clip((mean - 1.0) / np.maximum(m - 1, 1), 0.0, 1.0)
    return extra


_BLOCK: Final = 1 << 21
"""Cells of workers and owners that are processed at a time: about 100 MB."""


def expected_access(
    profile: StoredProfile, *, sampler: str, epsilon: float, cache: CacheSize, policy: str, feature_width: int
) -> ExpectedAccess:
    """The expected requests of one graph sampled by `sampler` at `epsilon` (`full`: every edge), with static caches.

    Raises ScenarioError for a sampler that the profile lacks, an unknown policy, or epsilon outside (0, 1].
    """
    rate = 1.0 if sampler == "full" else checked_rate(epsilon)
    name = "vr" if sampler == "full" else sampler
    if name not in profile.cells:
        raise ScenarioError(f"sampler: the profile holds no {sampler!r}; {nearest(sampler, profile.cells)}")
    cells = profile.cells[name]
    size = np.array([capacity(cache, int(nodes), feature_width) for nodes in profile.boundary_nodes], np.int64)
    step = max(1, _BLOCK // max(1, profile.parts * cells.degree.shape[1]))
    blocks = [
        _requested(_of_workers(cells, slice(first, first + step)), rate, policy, size[first : first + step])
        for first in range(0, profile.parts, step)
    ]
    rows, rows_squares, hits, hits_squares, held = (np.concatenate(item) for item in zip(*blocks, strict=True))
    inner, boundary = kept_fractions(cells, rate)
    return ExpectedAccess(
        rows=rows,
        rows_squares=rows_squares,
        hits=hits,
        hits_squares=hits_squares,
        held=held,
        cached_rows=size,
        inner_edges=profile.inner_entries * inner,
        boundary_edges=profile.boundary_entries * boundary,
    )


def draw_access(
    profile: StoredProfile,
    *,
    sampler: str,
    epsilon: float,
    iterations: int,
    seed: int,
    cache: CacheSize,
    policy: str,
    feature_width: int,
) -> AccessCounts:
    """Counts of `iterations` graphs. Rows and edges depend on the seed only, not on the cache.

    Cells of the `random` policy hold their share of the cache, the mean of a random choice. Raises as `expected_access`
    does.
    """
    mean = expected_access(
        profile, sampler=sampler, epsilon=epsilon, cache=cache, policy=policy, feature_width=feature_width
    )
    return drawn(mean, profile, iterations, seed)


def _of_workers(cells: Bins, workers: slice) -> Bins:
    """The cells of some of the workers."""
    return Bins(*(getattr(cells, field.name)[workers] for field in fields(Bins)))


def _requested(cells: Bins, rate: float, policy: str, size: IntArray) -> tuple[FloatArray, ...]:
    """For some workers, mean rows and hits, each with its squares, and the contents of caches of `size` rows."""
    ranked = inclusion_at(cells, rate)
    chance = reweighted(cells, ranked, rate)
    cached = cached_in_cells(cells, ranked, policy, size)
    rows, squares = (cells.nodes * chance).sum(axis=2), (cells.nodes * chance**2).sum(axis=2)
    if not size.any():
        return rows, squares, *np.zeros((3, *rows.shape))
    return rows, squares, (cached * chance).sum(axis=2), (cached * chance**2).sum(axis=2), cached.sum(axis=2)


def cached_in_cells(cells: Bins, chance: FloatArray, policy: str, size: IntArray) -> FloatArray:
    """Cached nodes by worker, owner and cell, float64[P, P, K], for caches of `size` rows, int64[P].

    chance: inclusion of every cell, float64[P, K]. Raises ScenarioError for an unknown policy.
    """
    rule = cache_policy(policy).name
    cached = np.zeros(cells.nodes.shape)
    for rank, rows in enumerate(size.tolist()):
        nodes = cells.nodes[rank]
        if rows and rule == "random":
            cached[rank] = nodes * (rows / nodes.sum())
        elif rows:
            # Traces store inclusion as float32, so almost certain nodes tie there and are ranked by degree.
            rank_by = np.zeros(chance[rank].shape) if rule == "degree" else chance[rank].astype(np.float32)
            cached[rank] = _first(nodes, rank_by, cells.degree[rank], cells.degree_spread[rank], rows)
    return cached


def _first(nodes: IntArray, rank_by: FloatArray, degree: FloatArray, spread: FloatArray, size: int) -> FloatArray:
    """The first `size` nodes by `rank_by`, ties by degree, float64[P, K]."""
    total = nodes.sum(axis=0)
    order = np.argsort(-rank_by, kind="stable")
    last = rank_by[order[np.searchsorted(np.cumsum(total[order]), size)]]
    left = size - int(total[rank_by > last].sum())
    return np.asarray(nodes * (rank_by > last) + _largest(nodes * (rank_by == last), degree, spread, left))


def _largest(nodes: IntArray, degree: FloatArray, spread: FloatArray, size: int) -> FloatArray:
    """The `size` nodes of highest degree, ties by owner, float64[P, K]; log(degree + 1) is flat within a cell."""
    total = nodes.sum(axis=0)
    reach = np.maximum(spread * math.sqrt(3.0), 1e-9)
    top = degree + reach

    def above(least: int) -> FloatArray:
        return np.asarray(np.clip((top - math.log(least + 1.5)) / (2.0 * reach), 0.0, 1.0))

    low, high = -1, math.ceil(math.expm1(float(top.max())))
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if float(above(middle) @ total) > size else (low, middle)
    more = above(high)
    tied = nodes * (above(high - 1) - more)
    own = tied.sum(axis=1)
    before = float(more @ total) + np.cumsum(own) - own
    share = np.clip((size - before) / np.maximum(own, 1e-12), 0.0, 1.0)
    return np.asarray(nodes * more + tied * share[:, None])
