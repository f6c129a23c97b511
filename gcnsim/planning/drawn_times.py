"""The time of a setting under joint draws of the assumptions: of the figures, of the order of its parts, and of what
other drawn graphs would change."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from gcnsim.ids import FloatArray
from gcnsim.planning.other_paths import estimated_times
from gcnsim.scenario import Scenario
from gcnsim.uncertainty import DRAWS, Factors, Placement, normal_position, placements, position

if TYPE_CHECKING:
    from gcnsim.planning.study_cache import StudyCache

Key: TypeAlias = tuple[Scenario, Placement, bool]
"""One simulation: the scenario, the order of its parts, and whether these are even (`EvenPartition`)."""


def drawn_times(
    studies: StudyCache,
    scenario: Scenario,
    even: bool,
    factors: Callable[[Key], Factors],
    simulated: Callable[[Key], FloatArray | None],
    draws: int = DRAWS,
) -> FloatArray:
    """Seconds per iteration of `scenario`, as `canonical` has it, under joint draws: float64[draws].

    factors: what the assumptions leave open, under so many draws. simulated: the simulated factors of the draws, or of
    the first of them; None where all are estimated.
    """

    def placed(key: Key) -> tuple[float, FloatArray]:
        asked, order, _ = key
        seconds = studies.result(asked, order, even=even).metrics.iteration_s
        left_open, found = factors(key), simulated(key)
        if found is None:
            return seconds, estimated_times(studies, key, left_open, seconds)
        times = found * left_open.scaled(seconds, left_open.apart)[: found.size]
        if found.size < draws:
            times = np.append(times, estimated_times(studies, key, left_open, seconds)[found.size :])
        return seconds, times

    result = studies.result(scenario, even=even)
    seconds = result.metrics.iteration_s
    in_order = sorted((placed(key) for key in orders_of(scenario, even)), key=lambda each: each[0])
    # Nobody chose the order as numbered: it is no likelier than another.
    share = (1.0 + position("placement", studies.seed, draws)) / 2.0
    times = in_order[0][1] ** (1.0 - share) * in_order[-1][1] ** share if len(in_order) > 1 else in_order[0][1]
    # What other drawn graphs would change is each setting's own: nobody knows how settings share it. What laws leave
    # out is the method's: they are wrong alike at another bandwidth.
    graphs = normal_position(_graphs_of(scenario, even), studies.seed, draws)
    laws = normal_position(f"laws of {scenario.method.name}", studies.seed, draws)
    spread = np.sqrt(1.0 - result.law_share**2) * graphs + result.law_share * laws
    reach = np.where(spread < 0, seconds / max(result.low_s, 1e-300), result.high_s / seconds)
    return np.asarray(times * reach**spread)


def orders_of(scenario: Scenario, even: bool = False) -> list[Key]:
    """The simulations that the times of a setting under joint draws are made of: one for each order of its parts. The
    scenario is as `canonical` has it."""
    orders = () if even else placements(scenario)
    return [(scenario, order, even) for order in (orders if len(orders) > 1 else (Placement.NUMBERED,))]


def _graphs_of(scenario: Scenario, even: bool) -> str:
    """The name of the random stream that says what other drawn graphs would change of a setting: of what it draws from
    and of how it uses it, not of how files are called."""
    method, cluster, cut = scenario.method, scenario.cluster, scenario.partition
    parts = "even" if even else f"{cut.method} {cut.objective} {cut.algorithm} {cut.balance} {cut.imbalance} {cut.seed}"
    return (
        f"graphs of {method.name} {method.tau} {method.epsilon} {method.rate} {method.cache.describe()}, "
        f"{cluster.gpus} x {cluster.gpus_per_server} at {cluster.bandwidth}, {parts}"
    )
