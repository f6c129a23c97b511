"""What one step more of each knob would bring, simulated from the recommended setting."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from gcnsim.planning.workshop import Workshop, with_knobs
from gcnsim.scenario import CacheSize, Scenario
from gcnsim.units import BANDWIDTH

EPSILON_STEPS = (1.0, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01)
CACHE_STEPS = (0.0, 0.1, 0.3, 0.5, 1.0)


@dataclass(frozen=True, slots=True)
class Step:
    """One knob moved one step. gain: share of the iteration time it saves (negative: it costs)."""

    knob: str
    start: int | float | str
    end: int | float | str
    iteration_s: float
    gain: float


def next_steps(workshop: Workshop, scenario: Scenario) -> list[Step]:
    """A step of each knob from `scenario`, the most useful first."""
    moves = list(_moves(scenario))
    workshop.prepare([scenario, *(moved for _, _, _, moved in moves)])
    now = workshop.result(scenario).metrics.iteration_s
    steps = []
    for knob, start, end, moved in moves:
        seconds = workshop.result(moved).metrics.iteration_s
        steps.append(Step(knob, start, end, seconds, 1.0 - seconds / now))
    return sorted(steps, key=lambda step: -step.gain)


def _moves(scenario: Scenario) -> Iterator[tuple[str, int | float | str, int | float | str, Scenario]]:
    method, cluster = scenario.method, scenario.cluster
    tau, epsilon, cache = method.tau, method.epsilon, method.cache
    yield "tau", tau, tau + 1, with_knobs(scenario, tau + 1, epsilon, cache)
    lower = [step for step in EPSILON_STEPS if step < epsilon]
    if lower:
        yield "epsilon", epsilon, lower[0], with_knobs(scenario, tau, lower[0], cache)
    larger = [step for step in CACHE_STEPS if step > (cache.fraction or 0.0)]
    if larger and cache.nbytes is None:
        size = CacheSize(fraction=larger[0])
        yield "cache", cache.describe(), size.describe(), with_knobs(scenario, tau, epsilon, size)
    faster = replace(cluster, bandwidth=2 * cluster.bandwidth)
    yield (
        "bandwidth",
        BANDWIDTH.exact(cluster.bandwidth),
        BANDWIDTH.exact(faster.bandwidth),
        replace(scenario, cluster=faster),
    )
    more = replace(cluster, gpus=cluster.gpus + cluster.gpus_per_server)
    if scenario.partition.file is None:
        yield "gpus", cluster.gpus, more.gpus, replace(scenario, cluster=more)
