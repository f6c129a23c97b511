"""One worker's accesses replayed against caches of several rules and sizes: hits, and rows fetched to fill them.

Every drawn graph asks for each boundary row it needs once; rows are numbered by boundary index and are of one size.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from gcnsim.caching import DEMAND, RANKINGS, REFRESHED, ByInclusion, request_stream
from gcnsim.errors import ScenarioError, nearest
from gcnsim.ids import BoolArray, FloatArray, IntArray, Rank
from gcnsim.streams import stream
from gcnsim.trace.access import WorkerAccess

ORDERS = ("random", "index")
"""How a graph's rows follow one another in a stream of requests."""


@dataclass(frozen=True, slots=True)
class CacheTally:
    """What a cache of `cached_rows` rows did in the graphs that count.

    fill_rows: rows fetched before the first graph to fill it. refresh_rows: rows that entered later, when it was filled
    anew. A row that a demand cache keeps was fetched as a miss, and is in neither.
    """

    boundary_nodes: int
    cached_rows: int
    requests: int
    hits: int
    fill_rows: int
    refresh_rows: int

    @property
    def hit_rate(self) -> float:
        """Share of the requests that the cache answered; 0 without any."""
        return self.hits / self.requests if self.requests else 0.0


@dataclass(frozen=True, slots=True)
class Replay:
    """How accesses are replayed.

    refresh: graphs between two fillings of `inclusion-refresh`. warm_up: first graphs that are replayed but not
    counted. order: of the rows of a graph, `random`, drawn for each, or `index`, ascending. seed: of all draws.
    Raises ScenarioError for a value that means nothing.
    """

    refresh: int = 20
    warm_up: int = 0
    order: str = "random"
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse what means nothing."""
        if self.refresh < 1:
            raise ScenarioError(f"refresh: {self.refresh} graphs; allowed: 1 or more")
        if self.warm_up < 0:
            raise ScenarioError(f"warm-up: {self.warm_up} graphs; allowed: 0 or more")
        if self.order not in ORDERS:
            raise ScenarioError(f"order: unknown {self.order!r}; {nearest(self.order, ORDERS)}")


def replay_worker(
    rank: Rank, worker: WorkerAccess, policies: Sequence[str], rows: Sequence[int], how: Replay
) -> dict[tuple[str, int], CacheTally]:
    """A tally for each of `policies` and each number of cached rows of `rows`."""
    needed = worker.needed()
    found: dict[tuple[str, int], CacheTally] = {}
    for policy in policies:
        if policy in RANKINGS:
            found.update(_static(rank, worker, needed, policy, rows, how))
        elif policy == REFRESHED:
            found.update(((policy, size), _refreshed(worker, needed, size, how)) for size in rows)
    demand = [policy for policy in policies if policy in DEMAND]
    if demand:
        found.update(_demand(rank, needed, demand, rows, how))
    return found


def _static(
    rank: Rank, worker: WorkerAccess, needed: BoolArray, policy: str, rows: Sequence[int], how: Replay
) -> Iterator[tuple[tuple[str, int], CacheTally]]:
    """Caches filled once: the requests of the first rows of a ranking are their hits."""
    generator = stream(how.seed, "cache", rank)
    ranking = RANKINGS[policy].ranking(worker.inclusion, worker.boundary_degree, generator)
    asked = np.count_nonzero(needed[how.warm_up :], axis=0)
    hits = np.concatenate([[0], np.cumsum(asked[ranking])])
    for size in rows:
        yield (policy, size), CacheTally(ranking.size, size, int(hits[-1]), int(hits[size]), size, 0)


def _refreshed(worker: WorkerAccess, needed: BoolArray, size: int, how: Replay) -> CacheTally:
    """A cache filled by the recorded inclusion, then every `refresh` graphs by what was learnt since."""
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

    A trace keeps one probability per node, not how training changed it. The mean of a Beta whose prior is the recorded
    one, worth as many graphs as the window has: halfway between it and the share of the window that needed the node.
    """
    estimate: FloatArray = (worker.inclusion.astype(np.float64) + window.mean(axis=0)) / 2.0
    return estimate


def _best(worker: WorkerAccess, chance: FloatArray, size: int) -> BoolArray:
    """The `size` likeliest nodes by the rule `inclusion`, bool[B]."""
    held = np.zeros(worker.boundary_nodes, np.bool_)
    # The rule is deterministic: its generator is not drawn from.
    held[ByInclusion().ranking(chance, worker.boundary_degree, stream(0, "cache"))[:size]] = True
    return held


def _demand(
    rank: Rank, needed: BoolArray, policies: Sequence[str], rows: Sequence[int], how: Replay
) -> Iterator[tuple[tuple[str, int], CacheTally]]:
    asked = requests(rank, needed, how)
    first = int(np.count_nonzero(needed[: how.warm_up]))
    with request_stream(asked) as opened:
        for policy in policies:
            for size in rows:
                hits = opened.hits(policy, size, first)
                yield (policy, size), CacheTally(needed.shape[1], size, asked.size - first, hits, 0, 0)


def requests(rank: Rank, needed: BoolArray, how: Replay) -> IntArray:
    """The boundary indices that graphs ask for, one graph after the other, int64[n]; stream ("order", rank, t)."""
    graphs = [np.flatnonzero(graph) for graph in needed]
    if how.order == "random":
        graphs = [stream(how.seed, "order", rank, t).permutation(ids) for t, ids in enumerate(graphs)]
    return np.concatenate(graphs) if graphs else np.empty(0, np.int64)
