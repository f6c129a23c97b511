"""The answer in sentences: what to use, and how sure that is."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from gcnsim.ids import BoolArray
from gcnsim.planning.candidate import Candidate, Estimate
from gcnsim.planning.certainty import Difference
from gcnsim.planning.recommend import NEAR, Choice
from gcnsim.results import MEASURE_CORES, NO_RANGE
from gcnsim.scenario import setting_text
from gcnsim.units import format_gbps, format_seconds, range_text


def network_text(found: Sequence[Candidate]) -> str:
    """What each faster network brings over the next slower one. found: the best setting on each, slowest network first.

    Times are of an epoch where an iteration trains not all nodes.
    """
    told = []
    for slow, fast in pairwise(found):
        low, high = format_gbps(slow.scenario.cluster.bandwidth), format_gbps(fast.scenario.cluster.bandwidth)
        gain = 1.0 - fast.epoch_s / slow.epoch_s
        times = f"{format_seconds(slow.iteration_s)} to {format_seconds(fast.iteration_s)} per iteration"
        apart = Difference.of(fast, slow)
        if (apart is None or apart.distinguishable) and abs(gain) >= NEAR / 3:
            way = "less" if gain > 0 else "more"
            told.append(f"{high} instead of {low} takes {100 * abs(gain):.0f} % {way} time ({times})")
        else:
            less = "changes less than 1 %" if apart is None else "makes no clear difference"
            told.append(f"{high} instead of {low} {less} ({times})")
    settings = {setting_text(each.scenario.method) for each in found}
    own = next(iter(settings)) if len(settings) == 1 else "the best setting of each"
    return f"{'; '.join(told)}, for {own}." if told else ""


def verdict(chosen: tuple[Estimate, float | None], *, several: bool) -> str:
    """One sentence: the recommended setting, its time with the interval, how much faster than full-graph training."""
    estimate, baseline = chosen
    scenario = estimate.scenario
    cluster = scenario.cluster
    where = f" on {cluster.gpus} x {cluster.device} at {format_gbps(cluster.bandwidth)}" if several else ""
    time = f"{format_seconds(estimate.iteration_s)} per iteration{range_text(estimate.low_s, estimate.high_s)}"
    text = f"Use {setting_text(scenario.method)}{where}: {time}"
    if baseline is not None and not scenario.method.baseline:
        epochs = "" if estimate.result.per_epoch == 1 else " per epoch"
        there = " on the same machine" if several else ""
        text += f", {times_as_fast(baseline / estimate.epoch_s)} full-graph training{epochs}{there}"
    if estimate.result.fits is False:
        text += "; it does not fit the GPUs' memory"
    return f"{text}."


def times_as_fast(ratio: float) -> str:
    """`3.3 times as fast as`, `1.4 times as slow as`, or `as fast as` where both differ by less than 3 %."""
    if abs(ratio - 1.0) < NEAR:
        return "as fast as"
    if ratio < 1.0:
        return f"{_times(1 / ratio)} times as slow as"
    return f"{_times(ratio)} times as fast as"


def _times(ratio: float) -> str:
    """A ratio above 1: `1.04`, `3.3`, `202`."""
    return f"{ratio:.2f}" if ratio < 2.0 else f"{ratio:.2g}" if ratio < 99.5 else f"{ratio:.0f}"


def confidence_text(choice: Choice, rivals: Sequence[Candidate] = ()) -> str:
    """How often the recommended setting wins among those of its machine that were simulated and may be recommended, and
    against rivals, the best settings of other machines.
    """
    if not choice.estimate.ranged:
        return f"not known: {NO_RANGE}; {MEASURE_CORES}"
    text = (
        f"{_in_draws(choice.wins)} of the assumptions, this setting is the fastest of {len(choice.pool)} tried or "
        "within 3 % of it"
        if len(choice.pool) > 1
        else "no other allowed setting was simulated"
    )
    unknown = "" if all(each.ranged for each in rivals) else f"; against {NO_RANGE} it is not known"
    rivals = [each for each in rivals if each.ranged]
    if not rivals:
        return text + unknown
    faster = np.all([choice.estimate.epochs_over(each) <= 1 + NEAR for each in rivals], axis=0)
    others = "the other machine's best" if len(rivals) == 1 else "the best of every other machine"
    return f"{text}; {_in_draws(faster)}, it is as fast as {others} or within 3 % of it{unknown}"


def _in_draws(wins: BoolArray) -> str:
    """How often it holds.

    >>> _in_draws(np.array([True, True, True, False]))
    '75 %: in 3 of 4 random draws'
    """
    return f"{100 * float(wins.mean()):.0f} %: in {int(wins.sum())} of {wins.size} random draws"
