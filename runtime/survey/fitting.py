"""Which runs fit into the time that is left: repeats go first, then configurations, then those for the calibration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from runtime.survey.rule import PlannedRun


def fitting(
    runs: Sequence[PlannedRun],
    took: Mapping[str, float],
    seconds: float,
    least_repeats: int,
    expected: Mapping[str, float] | None = None,
) -> tuple[PlannedRun, ...]:
    """Of all `runs` those to train in `seconds`, in their order, as far as can be told now. took: seconds, by name.
    expected: of those not trained yet; None: as told by those that are.

    Repeats beyond `least_repeats` are left out first, then configurations of which nothing is trained yet, the last
    of the rule first, then any run, the last first; what is left of the time takes repeats back in. A run not trained
    yet takes as long as its configuration did, else as those on its graph, else as all, in the mean.
    """
    left = [run for run in runs if run.name not in took]
    begun = {run.configuration for run in runs if run.name in took}
    cost = _costs(runs, took) if expected is None else expected
    chosen = {run.name for run in left}

    def fits() -> bool:
        return sum(cost[run.name] for run in left if run.name in chosen) <= seconds

    by_rule = sorted(left, key=lambda run: (not run.seen, run.repeat, run.configuration), reverse=True)
    for run in by_rule:
        if run.repeat >= least_repeats and not fits():
            chosen.discard(run.name)
    fresh = sorted({run.configuration for run in left if not run.seen} - begun, reverse=True)
    for which in fresh:
        if not fits():
            chosen -= {run.name for run in left if not run.seen and run.configuration == which}
    for run in by_rule:
        if not fits():
            chosen.discard(run.name)
    going = begun | {run.configuration for run in left if run.name in chosen}
    for run in reversed(by_rule):
        if run.name not in chosen and run.configuration in going:
            chosen.add(run.name)
            if not fits():
                chosen.discard(run.name)
    return tuple(run for run in left if run.name in chosen)


def _costs(runs: Sequence[PlannedRun], took: Mapping[str, float]) -> dict[str, float]:
    """Seconds to expect of each run that is not trained yet."""
    done = [run for run in runs if run.name in took]

    def cost(run: PlannedRun) -> float:
        same = [took[other.name] for other in done if other.configuration == run.configuration]
        graph = [took[other.name] for other in done if other.graph == run.graph]
        known = same or graph or [took[other.name] for other in done]
        return fmean(known) if known else 0.0

    return {run.name: cost(run) for run in runs if run.name not in took}
