"""What one step more of each knob would bring, simulated from the recommended setting."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from math import inf

from gcnsim.errors import ScenarioError
from gcnsim.knobs import TAU
from gcnsim.planning.payload import in_gbps
from gcnsim.planning.workshop import Heard, Workshop, with_knobs
from gcnsim.scenario import CacheSize, ClusterSpec, Scenario

EPSILON_STEPS = (1.0, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01)
CACHE_STEPS = (0.0, 0.1, 0.3, 0.5, 1.0)


@dataclass(frozen=True, slots=True)
class Step:
    """One knob moved one step. gain: share of the iteration time it saves (negative: it costs). fits: whether the GPUs
    hold it then; None where that is not known.
    """

    knob: str
    start: int | float | str
    end: int | float | str
    iteration_s: float
    gain: float
    fits: bool | None


def next_steps(workshop: Workshop, scenario: Scenario, heard: Heard = lambda done, total: None) -> list[Step]:
    """A step of each knob from `scenario`, the most useful first, those that do not fit last; a step that nothing
    allows is left out.
    """
    moves = [move for move in _moves(scenario) if workshop.allows(move[3])]
    workshop.prepare([scenario, *(moved for _, _, _, moved in moves)], heard=heard)
    now = workshop.result(scenario).metrics.iteration_s
    steps = []
    for knob, start, end, moved in moves:
        result = workshop.result(moved)
        seconds = result.metrics.iteration_s
        steps.append(Step(knob, start, end, seconds, 1.0 - seconds / now, result.fits))
    return sorted(steps, key=lambda step: (step.fits is False, -step.gain))


Move = tuple[str, int | float | str, int | float | str, Scenario]


def _moves(scenario: Scenario) -> Iterator[Move]:
    method, cluster = scenario.method, scenario.cluster
    tau, epsilon, cache = method.tau, method.epsilon, method.cache
    if tau < (TAU.high or inf):
        yield "tau", tau, tau + 1, with_knobs(scenario, tau + 1, epsilon, cache)
    lower = [step for step in EPSILON_STEPS if step < epsilon]
    if lower:
        yield "epsilon", epsilon, lower[0], with_knobs(scenario, tau, lower[0], cache)
    larger = [step for step in CACHE_STEPS if step > (cache.fraction or 0.0)]
    if larger and cache.nbytes is None:
        size = CacheSize(fraction=larger[0])
        yield "cache", cache.describe(), size.describe(), with_knobs(scenario, tau, epsilon, size)
    yield from _machines(scenario, cluster)


def _machines(scenario: Scenario, cluster: ClusterSpec) -> Iterator[Move]:
    """Twice the bandwidth, one server more: where the cluster's own ranges allow it."""
    with suppress(ScenarioError):
        faster = replace(cluster, bandwidth=2 * cluster.bandwidth)
        yield (
            "bandwidth",
            in_gbps(cluster.bandwidth),
            in_gbps(faster.bandwidth),
            replace(scenario, cluster=faster),
        )
    with suppress(ScenarioError):
        more = replace(cluster, gpus=cluster.gpus + cluster.gpus_per_server)
        if scenario.partition.file is None:
            yield "gpus", cluster.gpus, more.gpus, replace(scenario, cluster=more)
