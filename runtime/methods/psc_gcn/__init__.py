"""PSC-GCN (`psc-gcn`): edges sampled at rate epsilon with the least variance, rows tau iterations old, layer 0 cached.

Source: PSC-GCN, Algorithms 1 and 2, Theorem 2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from gcnsim.core.errors import ScenarioError
from gcnsim.workload.caching import CacheSize
from gcnsim.workload.knobs import CACHE, CACHE_POLICY, COLD_START, EPSILON, ESTIMATOR, REFRESH, SAMPLER, TAU, knob
from runtime.methods.method import Method
from runtime.options import Options

if TYPE_CHECKING:
    from runtime.methods.worker import Context, MethodWorker


@dataclass(frozen=True)
class PscGcn(Method):
    """PSC-GCN; see the module."""

    name: ClassVar[str] = "psc-gcn"
    waits: ClassVar[bool] = True
    tau: int = knob(TAU)
    epsilon: float = knob(EPSILON)
    sampler: str = knob(SAMPLER)
    refresh: int = knob(REFRESH)
    cache: CacheSize = knob(CACHE)
    cache_policy: str = knob(CACHE_POLICY)
    estimator: str = knob(ESTIMATOR)
    cold_start: str = knob(COLD_START)

    @property
    def period(self) -> int | None:
        """Probabilities are recomputed every `refresh` iterations."""
        return None if self.asks_once or self.sampler != "vr" else self.refresh

    @property
    def asks_once(self) -> bool:
        """True without sampling: the graph is always the same."""
        return self.epsilon >= 1.0

    def refuse(self, options: Options) -> None:
        """Refuse a cache of rows that are never sent, and estimators of sums if no layer has any."""
        usual = ESTIMATOR.default
        if options.gathers and self.estimator != usual:
            raise ScenarioError(
                f"--estimator: {self.estimator} with {options.model}, which reads no weight of a drawn edge; "
                f"allowed: {usual}"
            )
        if options.preaggregate and not self.cache.empty:
            raise ScenarioError(
                f"--cache: {self.cache.describe()} with --preaggregate: no layer-0 row travels; allowed: 0%"
            )

    def worker(self, context: Context) -> MethodWorker:
        """The worker with sampled graphs, stale rows and a cache."""
        from runtime.methods.psc_gcn.worker import PscGcnWorker

        return PscGcnWorker(
            context,
            tau=self.tau,
            cold_start=self.cold_start,
            epsilon=float(self.epsilon),
            sampler=self.sampler,
            refresh=self.refresh,
            estimator=self.estimator,
            cache=self.cache,
            cache_policy=self.cache_policy,
        )
