"""Propagate the assumptions to the iteration time: the analytic estimate under joint draws of all of them.

The estimate of a draw over the estimate at the stated values is a factor on the simulated time. Methods that exchange
boundary rows on GPUs are estimated at every draw. For other methods, each assumption's two ends are estimated, and
their factors multiply (first order in the logarithms). The uncertainty of the workload (`RangeEnd`) is one more
assumption, whose ends are estimated from the counts of both corners.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from gcnsim.core.ids import BoolArray, FloatArray, Seconds
from gcnsim.scenario import Scenario
from gcnsim.scenario.machine import resolve_machine
from gcnsim.schedule import estimate, estimates, lower_bound
from gcnsim.simulation.assumed import DRAWS, Assumption, assumptions_of, other_paths, path_by_draw, position
from gcnsim.simulation.open_assumptions import (
    WORKLOAD,
    OpenAssumptions,
    averaged,
    can_batch_draws,
    draw_positions,
    estimated_counts,
    estimated_s,
    of_parts,
    other_orders,
    pace_of,
)
from gcnsim.simulation.part_orders import PLACEMENT, Orders
from gcnsim.simulation.placement import PARTITION, partition_factors, scattered
from gcnsim.simulation.run import write_schedule
from gcnsim.simulation.source import RangeEnd, Source
from gcnsim.simulation.templates import shared
from gcnsim.trace.counts import AccessCounts

MOST_AMOUNTS: Final = 4_000_000
"""The most amounts of ops in one schedule: 32 MB, which an estimate copies a few times."""

OPS_PER_PAIR: Final = 16
"""The least ops per pair of workers, for four layers; decides only how many draws are estimated at a time."""

MOST_SIMULATED: Final = 64
"""Up to this many GPUs, synchronous iterations with other orders of the parts are simulated."""

BLEND_POWER: Final = 3.0
"""How sharply the larger of two times dominates, from a sum (1) to a maximum; simulated corners lie between 2 and 4."""


@dataclass(frozen=True, slots=True)
class TimeFactors:
    """Times of one scenario relative to the time at the stated values.

    joint: float64[draws], under every joint draw. alone: by assumption, at its low and its high end alone; `workload`
    if the workload has a range. nominal_s: the estimate at the stated values. apart: float64[draws], the part of
    `joint` from other partitions, which no sampled graph contains; otherwise ones. others: for each other path between
    the GPUs, `joint` in the draws with that path.
    """

    joint: FloatArray
    alone: Mapping[str, tuple[float, float]]
    nominal_s: Seconds
    apart: FloatArray
    others: tuple[TimeFactors, ...] = ()

    def scaled(self, simulated_s: Seconds, factor: FloatArray | float) -> FloatArray:
        """The simulated time if the estimate is `factor` times the estimate at the stated values, in the factor's
        shape.

        The part of the simulated time beyond the estimate (sharing of links, imperfect pipelining) stays constant, like
        a third resource, and the longest mostly decides (powers of `BLEND_POWER` add up). If the estimate is the longer
        of the two, both times grow alike.
        """
        if self.nominal_s >= simulated_s:
            return np.asarray(simulated_s * np.asarray(factor))
        share = (self.nominal_s / simulated_s) ** BLEND_POWER
        return np.asarray(
            simulated_s * (1.0 - share + share * np.asarray(factor) ** BLEND_POWER) ** (1.0 / BLEND_POWER)
        )

    @property
    def workload(self) -> tuple[float, float] | None:
        """The factors at both ends of the workload's range; None without a range."""
        return self.alone.get(WORKLOAD)


def factors(scenario: Scenario, accesses: Source, seed: int, draws: int = DRAWS, *, ends: bool = True) -> TimeFactors:
    """The uncertainty of the scenario's time under the joint draws of `seed`.

    ends: whether `alone` is complete; `with_ends` adds what it lacks.
    """
    scenario = replace(scenario, faults=())
    paths = other_paths(scenario)
    chosen = path_by_draw(paths, seed, draws)
    combined = _of_figures(scenario, accesses, seed, chosen == -1, ends=ends)
    if not paths:
        return combined
    others = tuple(
        _of_figures(path.scenario, accesses, seed, chosen == index, ends=False) for index, path in enumerate(paths)
    )
    joint, apart = combined.joint.copy(), combined.apart.copy()
    for index, other in enumerate(others):
        mask = chosen == index
        joint[mask] = other.nominal_s / combined.nominal_s * other.joint[mask]
        apart[mask] = other.apart[mask]
    moved = {path.name: (other.nominal_s / combined.nominal_s, 1.0) for path, other in zip(paths, others, strict=True)}
    return replace(combined, joint=joint, alone={**combined.alone, **moved}, apart=apart, others=others)


def with_ends(known: TimeFactors, scenario: Scenario, accesses: Source, seed: int) -> TimeFactors:
    """The factors `known` of the scenario, with the two ends of each assumption."""
    none = np.zeros(known.joint.size, np.bool_)
    every = _of_figures(replace(scenario, faults=()), accesses, seed, none)
    return replace(known, alone={**every.alone, **known.alone})


def _of_figures(scenario: Scenario, accesses: Source, seed: int, own: BoolArray, *, ends: bool = True) -> TimeFactors:
    """The same as `factors` with the assumed paths between GPUs, for at least the draws `own`, bool[draws].

    The factors of other draws may be ones. ends: whether to compute the two ends of each assumption.
    """
    if can_batch_draws(scenario):
        return _at_every_draw(scenario, accesses, seed, own, ends=ends)
    draws = own.size
    machine = resolve_machine(scenario.cluster)
    assumed = assumptions_of(machine, batches=scenario.method.mini_batches)
    counts = estimated_counts(scenario, accesses)
    at_values = estimate(write_schedule(scenario, counts, accesses))
    by_end = {item.name: _ends(scenario, accesses, counts, item, at_values) for item in assumed}
    shared = {item.name: item.shared for item in assumed}
    if len(accesses.assumption_bounds) > 1:
        by_end[WORKLOAD], shared[WORKLOAD] = _of_workload(scenario, accesses, at_values), WORKLOAD
    others = partition_factors(scenario, accesses, counts, at_values)
    if others is not None:
        by_end[PARTITION], shared[PARTITION] = others, of_parts(PARTITION, scenario)
    orders = other_orders(scenario, accesses)
    if orders is not None:
        by_end[PLACEMENT] = _order_ends(scenario, accesses, counts, orders)
        shared[PLACEMENT] = of_parts(PLACEMENT, scenario)
    joint = np.ones(draws)
    for name, pair in by_end.items():
        joint = joint * _between(pair, draw_positions(name, shared[name], seed, draws))
    return TimeFactors(joint, by_end, at_values, np.ones(draws))


def _order_ends(scenario: Scenario, accesses: Source, counts: AccessCounts, orders: Orders) -> tuple[float, float]:
    """The time with the orders of the least and of the most load over that with the median one.

    Synchronous iterations are simulated: their estimate takes every worker's transfers one after another and does not
    see which of them share a card.
    """
    ranks = orders.ranks(np.array([0.0, -1.0, 1.0]))
    schedules = [write_schedule(scenario, counts.placed(rank), accesses) for rank in ranks]
    if scenario.method.tau == 0 and scenario.cluster.gpus <= MOST_SIMULATED:
        now, low, high = (pace_of(schedule, scenario.run.iterations) for schedule in schedules)
    else:
        now, low, high = map(estimate, schedules)
    return low / now, high / now


def _of_workload(scenario: Scenario, accesses: Source, likely_s: Seconds) -> tuple[float, float]:
    """The factors at both ends of the workload's range, each estimated separately."""
    low, high = (estimated_s(scenario, accesses, bound) / likely_s for bound in (RangeEnd.LOW, RangeEnd.HIGH))
    return low, high


def _between(ends: tuple[float, float], place: FloatArray) -> FloatArray:
    """The factor at each position, geometric between 1 and the factor of the end on its side."""
    low, high = ends
    return np.asarray(np.where(place < 0, low, high) ** np.abs(place))


def _ends(
    scenario: Scenario, accesses: Source, counts: AccessCounts, assumption: Assumption, likely_s: Seconds
) -> tuple[float, float]:
    ends = []
    for place in (-1.0, 1.0):
        moved = with_figures(scenario, {assumption.name: float(assumption.at(np.array(place)))})
        ends.append(estimate(write_schedule(moved, counts, accesses)) / likely_s)
    return ends[0], ends[1]


def with_figures(scenario: Scenario, values: Mapping[str, float]) -> Scenario:
    """The scenario with these catalogue figures replaced, by `NAME.FIGURE`."""
    figures = tuple(sorted((dict(scenario.cluster.figures) | dict(values)).items()))
    return replace(scenario, cluster=replace(scenario.cluster, figures=figures))


def _at_every_draw(scenario: Scenario, accesses: Source, seed: int, own: BoolArray, *, ends: bool) -> TimeFactors:
    """The draws `own` as the graphs of one schedule, followed by the stated values and both ends of each assumption.

    For other partitions, the work of a worker's sampler stays constant. If the ends of the workload are other
    partitions and not other samples of the same parts, their factors multiply those of the figures.
    """
    left_open = shared("left open", scenario, (accesses,), lambda: OpenAssumptions.of(scenario, accesses))
    orders = left_open.orders if scenario.method.tau == 0 and scenario.cluster.gpus <= MOST_SIMULATED else None
    if orders is not None:
        left_open = replace(left_open, orders=None)
    if averaged(scenario):
        own, ends = np.ones_like(own), True
    names = left_open.names if ends else []
    draws, size = own.size, int(own.sum())
    places = left_open.places(seed, 1 + 2 * len(names), own)
    for index, (name, _) in enumerate(names):
        places[name][size + 1 + 2 * index : size + 3 + 2 * index] = -1.0, 1.0
    every = _estimated(replace(left_open, scenario=scenario), places, size)
    nominal_s = float(every[size])
    pairs = every[size + 1 :].reshape(-1, 2) / nominal_s
    by_end = {name: (float(low), float(high)) for (name, _), (low, high) in zip(names, pairs, strict=True)}
    joint, apart = np.ones(draws), np.ones(draws)
    if len(accesses.assumption_bounds) > 1 and WORKLOAD not in left_open.workload_changes:
        by_end[WORKLOAD] = _of_workload(scenario, accesses, nominal_s)
        apart = _between(by_end[WORKLOAD], position(WORKLOAD, seed, draws))
    joint[own] = every[:size] / nominal_s * apart[own]
    if orders is not None:
        pair = _order_ends(scenario, accesses, left_open.counts, orders)
        by_end[PLACEMENT] = pair
        drawn = orders.loads[orders.at(position(of_parts(PLACEMENT, scenario), seed, draws))]
        joint[own] *= _by_load(orders, pair, drawn)[own]
    return TimeFactors(joint, by_end, nominal_s, apart)


def _by_load(orders: Orders, ends: tuple[float, float], load: FloatArray) -> FloatArray:
    """The time at each load of an order over that at the median one, linearly towards both ends."""
    known = np.array([orders.loads[0], 1.0, orders.loads[-1]])
    return np.asarray(np.interp(load, known, [ends[0], 1.0, ends[1]]))


def _estimated(left_open: OpenAssumptions, places: Mapping[str, FloatArray], draws: int) -> FloatArray:
    """Estimates at each of `places` of the assumptions.

    They are computed in groups: schedules of many workers have many ops, and each place is a graph of a schedule.
    """
    total = len(next(iter(places.values()), np.zeros(1 + draws)))
    step = max(1, MOST_AMOUNTS // (OPS_PER_PAIR * left_open.scenario.cluster.gpus**2))
    every: list[FloatArray] = []
    for start in range(0, total, step):
        some = {name: place[start : start + step] for name, place in places.items()}
        every.append(estimates(*left_open.written(some, min(step, total - start))))
    return np.concatenate(every)


def best_case(scenario: Scenario) -> Scenario:
    """The scenario with every assumed figure at its most favourable end."""
    assumed = assumptions_of(resolve_machine(scenario.cluster), batches=scenario.method.mini_batches)
    ends = {item.name: item.at(np.array(1.0 if higher_is_better(item.name) else -1.0)) for item in assumed}
    return with_figures(scenario, {name: float(value) for name, value in ends.items()})


def higher_is_better(name: str) -> bool:
    """Whether a higher figure makes iterations shorter: true for rates and shares, false for times and queues."""
    field = name.rpartition(".")[2]
    return field.endswith("_per_s") or not (field.endswith("_s") or field in ("queue", "work_spread", "rebuild_bytes"))


def best_lower_s(scenario: Scenario, accesses: Source, bound: RangeEnd) -> Seconds:
    """The lower bound with every assumed figure and the partition at the most favourable end, at a corner of the
    workload.

    Of several possible paths, the best is used.
    """
    calm = replace(scenario, faults=())
    return min(_best_lower_s(item, accesses, bound) for item in (calm, *(path.scenario for path in other_paths(calm))))


def _best_lower_s(calm: Scenario, accesses: Source, bound: RangeEnd) -> Seconds:
    """The same as `best_lower_s`, for one path."""
    counts = estimated_counts(calm, accesses, bound)
    scatter = accesses.scatter(calm)
    if scatter is not None:
        per_server = calm.cluster.gpus_per_server
        counts = shared(
            "best parts", calm, (counts,), lambda: scattered(counts, scatter, RangeEnd.LOW, per_server), bound
        )
    orders = other_orders(calm, accesses)
    if orders is not None:
        counts = counts.placed(orders.ranks(np.array([-1.0]))[0])
    return lower_bound(write_schedule(best_case(calm), counts, accesses))
