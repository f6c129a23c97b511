"""A settled run that passing faults strike: of one length, with what their draws and its state leave open."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from gcnsim.engine import Run, simulate
from gcnsim.errors import ScenarioError
from gcnsim.ids import FloatArray, Iteration
from gcnsim.scenario import Fault, Jitter
from gcnsim.schedule import Schedule
from gcnsim.simulation.faults import apply_transient_faults
from gcnsim.simulation.steady import Steady, Window, quantile_90
from gcnsim.simulation.time_limit import refuse_too_long
from gcnsim.timeline import PS_PER_S

MOST_STEPS: Final = 1_000_000
"""Operations of all iterations that are simulated one by one: about a minute of them."""

ALWAYS: Final = 100
"""Iterations that any schedule may have, however many its operations."""

SHAKEN: Final = 10
"""Iterations, for each one that the pipeline is deep, until jitter has used up what buffers it will."""

TELLING: Final = 30
"""Iterations that tell how much one differs from another."""

OTHER_DRAWS: Final = 2**31
"""Added to a seed, it is none that a scenario may have."""


class PerturbedRun(NamedTuple):
    """The run, its measured iterations, and how far the drawn factors may have moved their mean, in seconds."""

    run: Run
    window: Window
    noise_s: float


def struck(schedule: Schedule, judge: Steady, calm: Window, faults: Sequence[Fault], seed: int) -> PerturbedRun:
    """Simulate `schedule` as `faults` strike it once it has settled, as it did before `calm.first` without them.

    Every measured iteration is simulated, so that their mean tells what the faults cost over so many, and so are some
    that follow, with which their last ops share the links. Jitter has been there for a while by then. The window says
    how far the state at its end is from that at its begin, or from where the calm run drifted.

    Raises ScenarioError for more iterations than can be simulated one by one.
    """
    shaken = _shaken(schedule, faults)
    begin, measured = calm.first + shaken, judge.measured
    _refuse_many(schedule, begin, measured, faults[0].path)
    hit = apply_transient_faults(schedule, faults, begin, measured, seed, shaken)
    refuse_too_long(hit, faults[0].path)
    run = simulate(hit, begin + measured, endless=True)
    behind, ahead = judge.moved(run.ends, begin - 1)
    window = Window(begin, max(calm.behind, behind), max(calm.ahead, ahead))
    return PerturbedRun(run, window, _noise_s(schedule, run, begin, faults, seed))


def _shaken(schedule: Schedule, faults: Sequence[Fault]) -> Iteration:
    """Iterations under jitter before the first measured one: none where nothing is stale.

    A calm pipeline has all that it keeps ready; jitter, which is always there, has used up some of it before a run is
    measured. Of PSC-GCN on Reddit at 15 and 20 Gbit/s with sampling jittered by a coefficient of variation of 1, the
    first ten iterations at tau 1 and 2 were 4 to 8 % shorter than later ones.
    """
    jittered = any(isinstance(fault, Jitter) for fault in faults)
    columns = schedule.columns
    stale = bool(((columns.lag > 0) & ~np.isin(columns.wait, schedule.ends)).any())
    return SHAKEN * schedule.depth if jittered and stale else 0


def _refuse_many(schedule: Schedule, begin: Iteration, measured: Iteration, path: str) -> None:
    most = max(ALWAYS, MOST_STEPS // schedule.columns.size - begin)
    if measured > most:
        raise ScenarioError(
            f"run.iterations: {measured} iterations of {schedule.columns.size} operations are too many to simulate "
            f"one by one, as {path} needs; allowed with it: at most {most}"
        )


def _noise_s(schedule: Schedule, run: Run, begin: Iteration, faults: Sequence[Fault], seed: int) -> float:
    """Half-width, in seconds, of the 90 % interval of what other draws of the jitter give for the mean iteration.

    The spread of an iteration is that of a run with other draws, long enough to tell it, or of `run` where that is
    larger. Each of two means is off by the standard error, so their difference by sqrt(2) of it.
    """
    drawn = [fault for fault in faults if isinstance(fault, Jitter)]
    if not drawn:
        return 0.0
    measured = run.iterations - begin
    count = max(measured, TELLING)
    shaken = _shaken(schedule, faults)
    hit = apply_transient_faults(schedule, drawn, begin, count, seed + OTHER_DRAWS, shaken)
    other = simulate(hit, begin + count, endless=True)
    spread = float(_lasted(other, begin).std(ddof=1))
    if measured > 1 and len(drawn) == len(faults):
        spread = max(spread, float(_lasted(run, begin).std(ddof=1)))
    return quantile_90(count) * spread * float(np.sqrt(2.0 / measured))


def _lasted(run: Run, begin: Iteration) -> FloatArray:
    """Seconds of each measured iteration, float64[T - begin], to the end of the last worker."""
    ends = run.ends[begin - 1 :, list(run.schedule.ends)].max(axis=1)
    seconds: FloatArray = np.diff(ends) / PS_PER_S
    return seconds
