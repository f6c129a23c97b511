"""PSC-GCN (`psc-gcn`): rows tau iterations old, edges sampled at rate epsilon, layer-0 rows cached by inclusion.

Source: PSC-GCN, Algorithms 1 and 2. Readings where the paper is open: tau 0 is the vanilla iteration with a freshly
sampled graph; wanted ids are pulled once per iteration; epsilon 1 draws nothing, so it sends no ids and needs no
sampler; only layer-0 rows can be cached, deeper rows change every iteration.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import inf
from typing import ClassVar, Final, Self

from gcnsim.core.ids import Rank
from gcnsim.cost import MemoryCounts
from gcnsim.methods.families.boundary_rows import BoundaryRows
from gcnsim.methods.full_graph import FullGraph
from gcnsim.methods.method import RATE_STEPS, KnobStep, Method, Sampling
from gcnsim.methods.pipegcn import PipeGcn
from gcnsim.trace.counts import AccessCounts
from gcnsim.workload.caching import CacheSize
from gcnsim.workload.knobs import CACHE, CACHE_POLICY, EPSILON, NORMS, REFRESH, SAMPLER, TAU, knob

TAUS: Final = (0, 1, 2, 3)
CACHES: Final = (0.0, 0.1, 0.3)
CACHE_STEPS: Final = (0.0, 0.1, 0.3, 0.5, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class PscGcn(BoundaryRows):
    """Pre-fetched stale rows, sampled edges, cached inputs."""

    name: ClassVar[str] = "psc-gcn"
    about: ClassVar[str] = "sampled boundary rows, tau iterations old, inputs cached on the GPU"
    overlaps: ClassVar[bool] = True
    draws_on_host: ClassVar[bool] = True
    simulated_only: ClassVar[tuple[str, ...]] = ("norms",)

    tau: int = knob(TAU)
    epsilon: float = knob(EPSILON)
    cache: CacheSize = knob(CACHE)
    cache_policy: str = knob(CACHE_POLICY)
    sampler: str = knob(SAMPLER)
    refresh: int = knob(REFRESH)
    norms: str | None = knob(NORMS)

    @property
    def weighted(self) -> bool:
        """Whether the variance-reduced sampler is used."""
        return self.sampler == "vr"

    def sampling(self) -> Sampling:
        """The sampling of edges at rate epsilon; none at 1."""
        if self.epsilon == 1.0:
            return Sampling()
        return Sampling(self.sampler, self.epsilon, norms=self.norms)

    def held(self, counts: AccessCounts, rank: Rank) -> MemoryCounts:
        """The stored graphs of 2 tau + 1 iterations; without sampling one, with a separate crossing block for the
        cache.
        """
        held = self.held_at_most(counts, rank)
        if self.epsilon == 1.0:
            return replace(held, graphs=1, kept_crossing=held.crossing)
        inside, cross = counts.inner_edges[:, rank], counts.boundary_edges[:, rank]
        entries = int((inside + cross).max()) + held.inner
        return replace(held, graphs=2 * self.tau + 1, kept=entries, kept_crossing=int(cross.max()))

    def canonical(self) -> Method:
        """At epsilon 1 without a cache: full-graph training at tau 0, PipeGCN at tau 1."""
        if self.epsilon < 1.0 or not self.cache.empty or self.tau > 1:
            return self
        return PipeGcn() if self.tau else FullGraph(overlap=self.overlap)

    @classmethod
    def as_this_method(cls, method: Method) -> Self | None:
        """Instances of this class, full-graph training and PipeGCN."""
        if isinstance(method, cls):
            return method
        if type(method) not in (FullGraph, PipeGcn):
            return None
        return cls(tau=method.tau, epsilon=1.0).overlapping(method.overlap)

    def candidates(self, rates: Sequence[float]) -> Iterator[Method]:
        """Every rate with a few taus and caches."""
        for rate, tau, cache in product(rates, TAUS, CACHES):
            yield self.with_knobs(tau=tau, epsilon=rate, cache=CacheSize(fraction=cache))

    def steps(self) -> Iterator[KnobStep]:
        """One more iteration of staleness, the next lower rate, the next larger cache."""
        if self.tau < (TAU.high or inf):
            yield KnobStep("tau", self.tau, self.tau + 1, self.with_knobs(tau=self.tau + 1))
        lower = [step for step in RATE_STEPS if step < self.epsilon]
        if lower:
            yield KnobStep("epsilon", self.epsilon, lower[0], self.with_knobs(epsilon=lower[0]))
        larger = [step for step in CACHE_STEPS if step > (self.cache.fraction or 0.0)]
        if larger and self.cache.nbytes is None:
            size = CacheSize(fraction=larger[0])
            yield KnobStep("cache", self.cache.describe(), size.describe(), self.with_knobs(cache=size))
