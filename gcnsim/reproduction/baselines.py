"""Null models: what a reader would guess from the vanilla run alone. Skill is to be closer than they are.

All start from the vanilla iteration of the same setting, as printed where a row gives it, else as predicted:
- `vanilla`: nothing changes;
- `pipelined`: over the pipelined speed-up that the paper lets one see, for pipelined methods;
- `scaled`: that, with the part that transfers take (as predicted) scaled by the rate at which nodes are sampled;
- `overlap`: the larger of computation and communication, as predicted for the vanilla run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from gcnsim.methods import create_method
from gcnsim.reproduction.answers import Ends
from gcnsim.reproduction.facts import Row
from gcnsim.reproduction.quantities import QUANTITIES
from gcnsim.reproduction.row_scenario import RowScenario

TIMED: Final = (
    "per_iteration_s", "epoch_s", "epoch_time_s", "total_s", "epochs_per_s", "throughput_x", "speedup_x", "total_x",
)  # fmt: skip
"""Metrics that follow from the iteration time alone."""

PIPELINED: Final = create_method("pipegcn")
"""Plain pipelining: what a visible speed-up is read of."""

SECONDS: Final = ("per_iteration_s", "epoch_s", "total_s")
SPEEDUPS: Final = ("throughput_x", "speedup_x")


def printed_seconds(row: Row) -> float | None:
    """The iteration time that a row prints, in whatever form."""
    for name in SECONDS:
        value = row.published(name)
        if value is not None:
            return value
    rate = row.published("epochs_per_s")
    return None if rate is None else 1.0 / rate


def visible_speedup(chosen: Sequence[tuple[Row, RowScenario]], platform: str | None) -> float | None:
    """The mean of the pipelined speed-ups that rows on `platform` print, or that follow from the times they print."""
    found = []
    here = [(row, one) for row, one in chosen if row.use == "calibrate" and one.scenario.cluster.platform == platform]
    for row, one in here:
        if one.scenario.method.canonical() == PIPELINED:
            printed = [value for name in SPEEDUPS if (value := row.published(name)) is not None]
            found += printed or _from_times(row, one, here)
    return sum(found) / len(found) if found else None


def _from_times(row: Row, one: RowScenario, others: Sequence[tuple[Row, RowScenario]]) -> list[float]:
    own = printed_seconds(row)
    vanilla = printed_vanilla(one, others)
    return [vanilla / own] if own and vanilla else []


def printed_vanilla(one: RowScenario, rows: Sequence[tuple[Row, RowScenario]]) -> float | None:
    """The printed vanilla iteration of the same setting, if a row gives it."""
    for row, other in rows:
        same = replace(other.scenario, method=one.scenario.method) == one.scenario and other.boundary == one.boundary
        if same and is_vanilla(other):
            seconds = printed_seconds(row)
            if seconds is not None and row.use == "calibrate":
                return seconds
    return None


def is_vanilla(one: RowScenario) -> bool:
    """Whether a setting is what ratios compare with: plain full-graph training, under whatever name, mostly."""
    return one.scenario.method.canonical().name == one.system.base


def null_values(
    metric: str, one: RowScenario, vanilla: Ends, printed: float | None, speedup: float | None
) -> Mapping[str, float]:
    """What each null model says of a metric; empty for vanilla rows, and metrics that time alone does not give."""
    if metric not in TIMED or is_vanilla(one):
        return {}
    run, method = vanilla.likely, one.scenario.method
    seconds = printed or run.iteration_s
    gain = speedup if method.tau and speedup else 1.0
    transfers = run.communication_s / run.iteration_s
    # Sampling edges drops few of a boundary node's rows: transfers stay as they are.
    sampling = method.sampling()
    rate = 1.0 if sampling.drops_edges else sampling.rate
    guesses = {
        "vanilla": seconds,
        "pipelined": seconds / gain,
        "scaled": seconds * (1.0 - transfers * (1.0 - rate)) / gain,
        "overlap": seconds * max(1.0 - transfers, transfers),
    }
    base = replace(run, iteration_s=seconds)
    return {name: QUANTITIES[metric].of(replace(run, iteration_s=guess), base) for name, guess in guesses.items()}
