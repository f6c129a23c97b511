"""The joint draws of the assumptions of one setting: corrected by runs, and spread over graphs."""

from __future__ import annotations

from math import ceil, floor

import numpy as np

from gcnsim.core.ids import FloatArray, IntArray, Seconds
from gcnsim.planning.candidate import INTERVAL
from gcnsim.scenario import Scenario
from gcnsim.simulation import Result
from gcnsim.simulation.assumed import normal_position
from gcnsim.simulation.open_assumptions import DrawnRuns
from gcnsim.simulation.propagation import TimeFactors
from gcnsim.simulation.source import Source


def corrected_draws(
    times: FloatArray, scenario: Scenario, accesses: Source, seed: int, seconds: Seconds, left_open: TimeFactors
) -> FloatArray:
    """Return estimated draws moved so that both ends of their interval are those of runs, float64[draws].

    The two draws around each end are simulated. Their mean logarithmic error moves them and all beyond; it falls to
    zero at the stated values, whose time is that of the run, linearly in the logarithm of the time. times: the
    estimated seconds per iteration; seconds: those of the run; left_open: what scaled them.
    """
    ends = end_draws(times)
    wanted = [int(draw) for draw in np.concatenate(ends)]
    runs = DrawnRuns.of(scenario, accesses, seed, times.size, wanted)
    stated = runs.pace(times.size)
    apart = left_open.scaled(seconds, left_open.apart)
    errors = {draw: np.log(runs.pace(draw) / stated * apart[draw] / times[draw]) for draw in wanted}
    at = {float(np.log(times[end]).mean()): float(np.mean([errors[int(draw)] for draw in end])) for end in ends}
    if min(at) < np.log(seconds) < max(at):
        at[float(np.log(seconds))] = 0.0
    places = sorted(at)
    return np.asarray(times * np.exp(np.interp(np.log(times), places, [at[place] for place in places])))


def end_draws(times: FloatArray) -> tuple[IntArray, IntArray]:
    """Return the two draws around the low end of the 90 % interval and the two around its high end (`central`)."""
    order = np.argsort(times, kind="stable")
    place = INTERVAL[0] * times.size - 0.5
    around = np.array([floor(place), ceil(place)])
    return order[around], order[-1 - around]


def over_graphs(drawn: FloatArray, result: Result, scenario: Scenario, even: bool, seed: int) -> FloatArray:
    """Return the draws of a setting, float64[draws], over sampled graphs. result: the setting's run."""
    seconds, draws = result.metrics.iteration_s, drawn.size
    # The variation between sampled graphs is drawn per setting: how settings share it is unknown. The error of cost
    # laws is drawn per method, because it is the same at another bandwidth.
    graphs = normal_position(_graphs_of(scenario, even), seed, draws)
    laws = normal_position(f"laws of {scenario.method.name}", seed, draws)
    spread = np.sqrt(1.0 - result.law_share**2) * graphs + result.law_share * laws
    reach = np.where(spread < 0, seconds / max(result.low_s, 1e-300), result.high_s / seconds)
    return np.asarray(drawn * reach**spread)


def _graphs_of(scenario: Scenario, even: bool) -> str:
    """Return the name of the random stream for the variation between sampled graphs.

    It depends on the sampled graph and on the method, not on file names.
    """
    method, cluster, cut = scenario.method, scenario.cluster, scenario.partition
    parts = "even" if even else f"{cut.method} {cut.objective} {cut.algorithm} {cut.balance} {cut.imbalance} {cut.seed}"
    return (
        f"graphs of {method.name} {method.tau} {method.epsilon} {method.rate} {method.cache.describe()}, "
        f"{cluster.gpus} x {cluster.gpus_per_server} at {cluster.bandwidth}, {parts}"
    )
