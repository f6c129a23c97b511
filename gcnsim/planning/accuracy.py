"""Time to accuracy: iterations that recorded runs needed, times predicted seconds per iteration.

How many iterations a method needs is not simulated. It is read off training runs of the same method and knobs, on any
machine: staleness and sampling decide it, hardware does not. Where no run was recorded, the answer says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gcnsim.ids import Iteration, Seconds
from gcnsim.planning.workshop import Estimate
from gcnsim.profile import prices
from gcnsim.record import LearningCurve, read_learning_curve
from gcnsim.scenario import MethodSpec, Scenario


@dataclass(frozen=True, slots=True)
class Target:
    """An accuracy (share of one, on validation nodes) to be reached, and the runs that may tell when it is."""

    accuracy: float
    curves: tuple[LearningCurve, ...]

    @classmethod
    def of(cls, accuracy: float, folders: Sequence[str | Path]) -> Target:
        """The target with the runs in `folders`. Raises FileError for a folder without a readable run."""
        return cls(accuracy, tuple(read_learning_curve(folder) for folder in folders))

    def reached(self, scenario: Scenario, graph_hash: str | None) -> tuple[Iteration | None, str]:
        """Iterations until the accuracy was first seen in a run of the scenario's method and knobs, the median over
        runs, and from where; None and why, where no run says."""
        fitting = [curve for curve in self.curves if _same(curve, scenario.method)]
        if graph_hash is not None:
            fitting = [curve for curve in fitting if curve.graph_hash == graph_hash]
        if not fitting:
            return None, "no recorded run of this method and these knobs"
        found = [(curve, curve.first(self.accuracy)) for curve in fitting]
        done = sorted((count, curve.path.name) for curve, count in found if count is not None)
        if len(done) * 2 <= len(found):
            best = max(curve.best for curve in fitting)
            return None, f"not reached: at most {100 * best:.1f} % in {len(fitting)} recorded run(s)"
        count, name = done[(len(done) - 1) // 2]
        return count, name if len(done) == 1 else f"median of {len(done)} runs, {name}"


def _same(curve: LearningCurve, method: MethodSpec) -> bool:
    if curve.method != method.name:
        return False
    mine = {"tau": method.tau, "epsilon": method.epsilon, "sampler": method.sampler, "rate": method.rate}
    return all(name not in curve.knobs or curve.knobs[name] == value for name, value in mine.items())


def to_target(target: Target, estimate: Estimate, graph_hash: str | None) -> dict[str, Any]:
    """One row: iterations, seconds with their interval, and the cost on rented devices; None where it is not known."""
    scenario = estimate.scenario
    count, source = target.reached(scenario, graph_hash)
    cheapest = prices(scenario.cluster.device)
    seconds = _times(count, estimate.iteration_s)
    usd = None
    if seconds is not None and cheapest:
        usd = seconds / 3600.0 * cheapest[0].usd_per_gpu_hour * scenario.cluster.gpus
    method = scenario.method
    return {
        "method": method.name,
        "tau": method.tau,
        "epsilon": method.epsilon,
        "rate": method.rate,
        "gpus": scenario.cluster.gpus,
        "iterations": count,
        "seconds": seconds,
        "seconds_low": _times(count, estimate.low_s),
        "seconds_high": _times(count, estimate.high_s),
        "usd": usd,
        "source": source,
    }


def _times(count: Iteration | None, seconds: Seconds) -> Seconds | None:
    return None if count is None else count * seconds
