"""How often other numberings of the parts lie within the printed interval: `python -m studies.numberings`.

Parts as METIS made them, numbered anew at random: full-graph training of three partitions on T4 GPUs, two a server.
The time of a numbering is the answer's estimate of it, by the load of the busiest network card; a few are simulated.
Two intervals are asked: the printed one, in which other assumptions are open, too, and its share of the placement
alone, the 90 % interval over the orders of the answer's draws. Accepted before they were compared: 85 to 97 % of the
numberings within the placement's interval, none under 85 % within the printed one, estimates within 5 % of the runs.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Final

import numpy as np

from gcnsim.api.question import settings
from gcnsim.core.ids import FloatArray
from gcnsim.core.streams import stream
from gcnsim.graph.placement import card_loads
from gcnsim.planning.candidate import central
from gcnsim.planning.study import Studies, key_of
from gcnsim.simulation.assumed import DRAWS, position
from gcnsim.simulation.model import resolve_model
from gcnsim.simulation.open_assumptions import mean_counts, of_parts, pace_of
from gcnsim.simulation.part_orders import PLACEMENT, random_orders
from gcnsim.simulation.run import write_schedule
from gcnsim.simulation.source import RangeEnd

DATASETS: Final = ("reddit", "ogbn-products", "yelp")
GPUS: Final = 16
PER_SERVER: Final = 2
NUMBERINGS: Final = 400
SIMULATED: Final = 20


def main() -> int:
    """Print the table; return the exit code."""
    sys.stdout.write(
        "| dataset | answer | printed interval | within | interval of the placement | within | simulated | error |\n"
        "|---|---|---|---|---|---|---|---|\n"
    )
    for name in DATASETS:
        sys.stdout.write(row_of(name) + "\n")
        sys.stdout.flush()
    return 0


def row_of(name: str) -> str:
    """The row of one dataset."""
    (scenario,) = settings(
        dataset=name, gpus=GPUS, gpus_per_server=PER_SERVER, device="t4", bandwidth="15Gbps", method="full-graph"
    )
    studies = Studies(scenario)
    key = key_of(scenario)
    accesses, seconds = studies.accesses_of(key), studies.result(*key).metrics.iteration_s
    features = resolve_model(scenario.workload, accesses.declared).features
    orders = random_orders(accesses, scenario, features)
    assert orders is not None
    low_end, high_end = studies.factors(*key).alone[PLACEMENT]

    def times(loads: FloatArray) -> FloatArray:
        known = np.array([orders.loads[0], 1.0, orders.loads[-1]])
        return np.asarray(seconds * np.interp(loads, known, [low_end, 1.0, high_end]))

    counts = mean_counts(accesses.counts(scenario, features, RangeEnd.LIKELY))
    middle = orders.parts[len(orders.parts) // 2]
    generator = stream(1, "numberings", name)
    numbered = np.stack([generator.permutation(GPUS) for _ in range(NUMBERINGS)])
    loads = card_loads(counts.rows.mean(axis=0), np.concatenate([middle[None], numbered]), PER_SERVER).max(axis=1)
    found = times(loads[1:] / loads[0])
    placed = central(times(orders.loads[orders.at(position(of_parts(PLACEMENT, scenario), studies.seed, DRAWS))]))
    printed = central(studies.times(scenario))
    calm = replace(scenario, faults=())
    paces = [
        pace_of(write_schedule(calm, counts.placed(order), accesses), scenario.run.iterations)
        for order in (middle, *numbered[:SIMULATED])
    ]
    run = seconds * np.array(paces[1:]) / paces[0]
    error = np.abs(found[:SIMULATED] / run - 1.0)
    return (
        f"| {name} | {1e3 * seconds:.0f} ms | {said(printed)} | {within(found, printed):.0%} | {said(placed)} | "
        f"{within(found, placed):.0%} | {within(run, placed):.0%}, {within(run, printed):.0%} | "
        f"{np.median(error):.1%}, {error.max():.1%} |"
    )


def said(ends: tuple[float, float]) -> str:
    """An interval in milliseconds."""
    return f"{1e3 * ends[0]:.0f} to {1e3 * ends[1]:.0f}"


def within(times: FloatArray, ends: tuple[float, float]) -> float:
    """The share of `times` between both ends."""
    return float(np.mean((ends[0] <= times) & (times <= ends[1])))


if __name__ == "__main__":
    sys.exit(main())
