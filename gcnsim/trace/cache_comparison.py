"""The cache curve: hit rate against cache size, by rule, of the accesses that a trace recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from gcnsim.caching import DEMAND, KINDS, REFRESHED, ByDegreeRatio, CacheSize, capacity, expanded, need_library
from gcnsim.errors import ScenarioError
from gcnsim.ids import Rank
from gcnsim.sampling import NODES, Full
from gcnsim.trace.access import AccessTrace, TraceOrigin
from gcnsim.trace.cache_replay import CacheTally, Replay, replay_worker


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

    graphs: of the trace, the uncounted warm-up among them. notes: rules left out or without effect, and why.
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

    how: defaults of `Replay` when None. path: what errors call the trace. on_worker: called before each, for progress.
    Raises ScenarioError for an unknown rule, a size out of range, a warm-up that leaves no graph, a trace that asks for
    no row or does not tell what a rule needs, and a demand rule where libcachesim is not installed.
    """
    how = how or Replay()
    asked, notes = _answerable(trace, tuple(policies), how, path)
    shares = _shares(sizes)
    _check(trace, how, path)
    tallies = []
    for rank, worker in enumerate(trace.workers):
        on_worker(rank)
        # The width of a row plays no part in a share.
        rows = [capacity(share, worker.boundary_nodes, 1) for share in shares]
        found = replay_worker(rank, worker, asked, sorted(set(rows)), how)
        tallies.append([[found[policy, size] for size in rows] for policy in asked])
    points = tuple(
        CachePoint(policy, share.fraction or 0.0, tuple(worker[at][place] for worker in tallies))
        for at, policy in enumerate(asked)
        for place, share in enumerate(shares)
    )
    return CacheCurve(trace.origin, trace.iterations, how, points, notes)


def _answerable(
    trace: AccessTrace, names: tuple[str, ...], how: Replay, path: str
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The rules to replay, and notes; a rule asked for by its own name is never left out."""
    asked, notes = expanded(names), []
    if not asked:
        raise ScenarioError("cache policy: none is given; allowed: static, demand, all or names of rules")
    ratio = ByDegreeRatio.name
    if ratio in asked and not _tells_cross_edges(trace.origin):
        untold = f"{path}: graphs drawn by {trace.origin.sampler} at {trace.origin.epsilon:g} do not tell cross edges"
        if ratio in names:
            raise ScenarioError(f"{untold}, which {ratio} needs; allowed: {', '.join(_others(ratio))}")
        asked = tuple(name for name in asked if name != ratio)
        notes.append(f"{ratio} left out: {untold}")
    if REFRESHED in asked and how.refresh >= trace.iterations:
        notes.append(f"{REFRESHED} never refreshes: every {how.refresh} graphs, and the trace has {trace.iterations}")
    for name in asked:
        if name in DEMAND:
            need_library(name)
    return asked, tuple(notes)


def _others(policy: str) -> tuple[str, ...]:
    """Every rule but `policy`."""
    return tuple(name for name in KINDS if name != policy)


def _tells_cross_edges(origin: TraceOrigin) -> bool:
    """Whether inclusion depends on the number of cross edges: not where nodes are drawn, nor where all is kept."""
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
