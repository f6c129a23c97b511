"""Replay one worker's accesses against caches of several rules and sizes: hits, and rows fetched to fill them.

Every sampled graph requests each boundary row it needs once. Rows are numbered by boundary index and have one size.

The cache curve is the hit rate against the size of a cache, by rule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from gcnsim.core.errors import ScenarioError, nearest
from gcnsim.core.ids import BoolArray, FloatArray, IntArray, Rank
from gcnsim.core.streams import stream
from gcnsim.trace.access import AccessTrace, TraceOrigin, WorkerAccess
from gcnsim.workload.caching import (
    DEMAND,
    KINDS,
    RANKINGS,
    REFRESHED,
    ByDegreeRatio,
    ByInclusion,
    CacheSize,
    capacity,
    expanded,
    need_library,
    request_stream,
)
from gcnsim.workload.draws import NODES
from gcnsim.workload.samplers import Full

ORDERS = ("random", "index")
"""The order of a graph's rows in a stream of requests."""


@dataclass(frozen=True, slots=True)
class CacheTally:
    """The statistics of a cache of `cached_rows` rows over the counted graphs.

    fill_rows: rows fetched before the first graph to fill it. refresh_rows: rows that entered at later refreshes. A row
    in a demand cache was fetched as a miss, and is in neither.
    """

    boundary_nodes: int
    cached_rows: int
    requests: int
    hits: int
    fill_rows: int
    refresh_rows: int

    @property
    def hit_rate(self) -> float:
        """Share of the requests that hit the cache; 0 without any request."""
        return self.hits / self.requests if self.requests else 0.0


@dataclass(frozen=True, slots=True)
class Replay:
    """The settings of a replay.

    refresh: graphs between two refreshes of `inclusion-refresh`. warm_up: first graphs that are replayed but not
    counted. order: of the rows of a graph: `random`, drawn for each graph, or `index`, ascending. seed: of all draws.
    Raises ScenarioError for an invalid value.
    """

    refresh: int = 20
    warm_up: int = 0
    order: str = "random"
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse invalid values."""
        if self.refresh < 1:
            raise ScenarioError(f"refresh: {self.refresh} graphs; allowed: 1 or more")
        if self.warm_up < 0:
            raise ScenarioError(f"warm-up: {self.warm_up} graphs; allowed: 0 or more")
        if self.order not in ORDERS:
            raise ScenarioError(f"order: unknown {self.order!r}; {nearest(self.order, ORDERS)}")


def replay_worker(
    rank: Rank, worker: WorkerAccess, policies: Sequence[str], rows: Sequence[int], how: Replay
) -> dict[tuple[str, int], CacheTally]:
    """A tally for each of `policies` and each cache size in `rows`."""
    needed = worker.needed()
    cache_tallies: dict[tuple[str, int], CacheTally] = {}
    for policy in policies:
        if policy in RANKINGS:
            cache_tallies.update(_static(rank, worker, needed, policy, rows, how))
        elif policy == REFRESHED:
            cache_tallies.update(((policy, size), _refreshed(worker, needed, size, how)) for size in rows)
    demand = [policy for policy in policies if policy in DEMAND]
    if demand:
        cache_tallies.update(_demand(rank, needed, demand, rows, how))
    return cache_tallies


def _static(
    rank: Rank, worker: WorkerAccess, needed: BoolArray, policy: str, rows: Sequence[int], how: Replay
) -> Iterator[tuple[tuple[str, int], CacheTally]]:
    """Static caches: requests for the first rows of a ranking are hits."""
    generator = stream(how.seed, "cache", rank)
    ranking = RANKINGS[policy].ranking(worker.inclusion, worker.boundary_degree, generator)
    request_counts = np.count_nonzero(needed[how.warm_up :], axis=0)
    hits = np.concatenate([[0], np.cumsum(request_counts[ranking])])
    for size in rows:
        yield (policy, size), CacheTally(ranking.size, size, int(hits[-1]), int(hits[size]), size, 0)


def _refreshed(worker: WorkerAccess, needed: BoolArray, size: int, how: Replay) -> CacheTally:
    """A cache filled by the recorded inclusion, then refreshed every `refresh` graphs from the observed requests."""
    held = _best(worker, worker.inclusion.astype(np.float64), size)
    hits = entered = 0
    for t in range(needed.shape[0]):
        if t and t % how.refresh == 0:
            before, held = held, _best(worker, _estimate(worker, needed[t - how.refresh : t]), size)
            entered += int(np.count_nonzero(held & ~before)) if t >= how.warm_up else 0
        hits += int(np.count_nonzero(needed[t] & held)) if t >= how.warm_up else 0
    requests = int(np.count_nonzero(needed[how.warm_up :]))
    return CacheTally(worker.boundary_nodes, size, requests, hits, size, entered)


def _estimate(worker: WorkerAccess, window: BoolArray) -> FloatArray:
    """The inclusion probabilities after a window of graphs, float64[B].

    A trace stores one probability per node, not its change during training. The estimate is the mean of a Beta
    distribution whose prior is the recorded probability with the weight of the window. So it is halfway between that
    and the share of the window's graphs that needed the node.
    """
    estimate: FloatArray = (worker.inclusion.astype(np.float64) + window.mean(axis=0)) / 2.0
    return estimate


def _best(worker: WorkerAccess, chance: FloatArray, size: int) -> BoolArray:
    """The `size` likeliest nodes by the rule `inclusion`, bool[B]."""
    held = np.zeros(worker.boundary_nodes, np.bool_)
    # The rule is deterministic and does not use its generator.
    held[ByInclusion().ranking(chance, worker.boundary_degree, stream(0, "cache"))[:size]] = True
    return held


def _demand(
    rank: Rank, needed: BoolArray, policies: Sequence[str], rows: Sequence[int], how: Replay
) -> Iterator[tuple[tuple[str, int], CacheTally]]:
    requested = requests(rank, needed, how)
    first = int(np.count_nonzero(needed[: how.warm_up]))
    with request_stream(requested) as opened:
        for policy in policies:
            for size in rows:
                hits = opened.hits(policy, size, first)
                yield (policy, size), CacheTally(needed.shape[1], size, requested.size - first, hits, 0, 0)


def requests(rank: Rank, needed: BoolArray, how: Replay) -> IntArray:
    """The requested boundary indices, one graph after the other, int64[n]; stream ("order", rank, t)."""
    graphs = [np.flatnonzero(graph) for graph in needed]
    if how.order == "random":
        graphs = [stream(how.seed, "order", rank, t).permutation(ids) for t, ids in enumerate(graphs)]
    return np.concatenate(graphs) if graphs else np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class CachePoint:
    """One rule at one size, a share of every worker's boundary nodes; workers: in rank order."""

    policy: str
    size: float
    workers: tuple[CacheTally, ...]

    @property
    def total(self) -> CacheTally:
        """All workers together."""
        fields = ("boundary_nodes", "cached_rows", "requests", "hits", "fill_rows", "refresh_rows")
        return CacheTally(**{name: sum(getattr(worker, name) for worker in self.workers) for name in fields})


@dataclass(frozen=True, slots=True)
class CacheCurve:
    """Points by rule, then by size.

    graphs: in the trace, including the uncounted warm-up. notes: rules that were left out or had no effect, and why.
    """

    origin: TraceOrigin
    graphs: int
    how: Replay
    points: tuple[CachePoint, ...]
    notes: tuple[str, ...]

    @property
    def policies(self) -> tuple[str, ...]:
        """The rules, in the order of the points."""
        return tuple(dict.fromkeys(point.policy for point in self.points))

    @property
    def sizes(self) -> tuple[float, ...]:
        """The sizes, ascending."""
        return tuple(dict.fromkeys(point.size for point in self.points))


def cache_curve(
    trace: AccessTrace,
    policies: Iterable[str] = ("static",),
    sizes: Sequence[float] = (0.01, 0.05, 0.1, 0.3, 0.5),
    how: Replay | None = None,
    *,
    path: str = "trace",
    on_worker: Callable[[Rank], object] = lambda rank: None,
) -> CacheCurve:
    """The hit rates of `policies` (names of rules, or static, demand, all) at `sizes`, shares in [0, 1].

    how: None gives the defaults of `Replay`. path: the name of the trace in errors. on_worker: called before each
    worker, for progress. Raises ScenarioError for an unknown rule, a size out of range, a warm-up that leaves no graph,
    a trace without requests or without data for a rule, and a demand rule without libcachesim.
    """
    how = how or Replay()
    chosen, notes = _supported_policies(trace, tuple(policies), how, path)
    shares = _shares(sizes)
    _check(trace, how, path)
    tallies = []
    for rank, worker in enumerate(trace.workers):
        on_worker(rank)
        # The width of a row does not affect a share.
        rows = [capacity(share, worker.boundary_nodes, 1) for share in shares]
        cache_tallies = replay_worker(rank, worker, chosen, sorted(set(rows)), how)
        tallies.append([[cache_tallies[policy, size] for size in rows] for policy in chosen])
    points = tuple(
        CachePoint(policy, share.fraction or 0.0, tuple(worker[at][index] for worker in tallies))
        for at, policy in enumerate(chosen)
        for index, share in enumerate(shares)
    )
    return CacheCurve(trace.origin, trace.iterations, how, points, notes)


def _supported_policies(
    trace: AccessTrace, names: tuple[str, ...], how: Replay, path: str
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The rules to replay, and notes; a rule requested by name is never left out."""
    chosen, notes = expanded(names), []
    if not chosen:
        raise ScenarioError("cache policy: none is given; allowed: static, demand, all or names of policies")
    ratio = ByDegreeRatio.name
    if ratio in chosen and not _has_cross_edges(trace.origin):
        origin = trace.origin
        untold = f"{path}: graphs drawn by {origin.sampler} at {origin.epsilon:g} do not determine cross edges"
        if ratio in names:
            raise ScenarioError(
                f"{untold}, which {ratio} needs; allowed: {', '.join(name for name in KINDS if name != ratio)}"
            )
        chosen = tuple(name for name in chosen if name != ratio)
        notes.append(f"{ratio} left out: {untold}")
    if REFRESHED in chosen and how.refresh >= trace.iterations:
        notes.append(f"{REFRESHED} never refreshes: every {how.refresh} graphs, and the trace has {trace.iterations}")
    for name in chosen:
        if name in DEMAND:
            need_library(name)
    return chosen, tuple(notes)


def _has_cross_edges(origin: TraceOrigin) -> bool:
    """Whether inclusion depends on cross edges: not if nodes are sampled, and not if everything is kept."""
    return origin.sampler not in (NODES, Full.name) and origin.epsilon < 1.0


def _shares(sizes: Sequence[float]) -> list[CacheSize]:
    """The sizes, ascending and each once."""
    if not sizes:
        raise ScenarioError("size: none is given; allowed: one or more of 0%..100%")
    for size in sizes:
        if not 0.0 <= size <= 1.0:
            raise ScenarioError(f"size: {100 * size:g}% is outside 0%..100%")
    return [CacheSize(fraction=size) for size in sorted(set(sizes))]


def _check(trace: AccessTrace, how: Replay, path: str) -> None:
    if how.warm_up >= trace.iterations:
        raise ScenarioError(f"warm-up: {how.warm_up} graphs; {path} has {trace.iterations}, one must be left")
    if not any(worker.bits.any() for worker in trace.workers):
        raise ScenarioError(f"{path}: none of its graphs needs a row of another worker, so a cache has nothing to hold")
