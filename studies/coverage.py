"""How often the interval of published statistics holds what the real graph gives: `python -m studies.coverage`.

Each real graph's mean inner and boundary counts are fed in as if they had been published, and the answer is compared
with the answer for the graph itself: same machine, model, method. The ranges of the assumptions were read from these
graphs, so this is a check of how they combine, not a validation.
"""

from __future__ import annotations

import functools
import os
import sys
from dataclasses import replace
from itertools import product
from pathlib import Path

from gcnsim.methods import create_method
from gcnsim.scenario import Scenario, from_mapping
from gcnsim.simulation import simulate_scenario
from gcnsim.simulation.graph_source import GraphSource
from gcnsim.simulation.source import RangeEnd
from gcnsim.simulation.statistics_source import StatisticsSource
from gcnsim.workload import BoundaryRow, DatasetFacts
from gcnsim.workload.caching import CacheSize

say = functools.partial(print, flush=True)

GRAPHS = ("tolokers", "amazon_cs", "coauthor_phy")
METHODS = (
    create_method("full-graph"),
    create_method("pipegcn"),
    create_method("psc-gcn", tau=2, epsilon=0.1),
    create_method("psc-gcn", tau=2, epsilon=0.01),
    create_method("psc-gcn", tau=1, epsilon=0.1, cache=CacheSize(fraction=0.3)),
)


def published(graph: GraphSource, scenario: Scenario) -> StatisticsSource:
    """The graph's partition as a publication would print it: means per partition."""
    _, parts = graph.partition(scenario)
    boundary = sum(part.boundary_nodes for part in parts) / len(parts)
    row = BoundaryRow(len(parts), graph.graph.nodes / len(parts), boundary)
    facts = graph.graph
    return StatisticsSource(
        DatasetFacts(
            facts.name,
            facts.nodes,
            facts.entries,
            facts.features or 128,
            facts.classes or 16,
            "gcn",
            4,
            256,
            (row,),
            (),
        )
    )


def main() -> None:
    """Print one line per case and the share of cases whose interval holds."""
    folder = os.environ.get("GCNSIM_DATA")
    if not folder:
        sys.exit("GCNSIM_DATA is not set: no real graphs here")
    held: list[bool] = []
    ratios: list[float] = []
    for name in GRAPHS:
        path = Path(folder) / f"{name}.npz"
        graph = GraphSource(str(path))
        for gpus, bandwidth in product((4, 6, 8), ("1Gbps", "10Gbps")):
            cluster = {"gpus": gpus, "bandwidth": bandwidth}
            workload = {"graph": str(path), "features": graph.graph.features or 128}
            base = from_mapping({"schema": "gcnsim.scenario/1", "cluster": cluster, "workload": workload}, "coverage")
            stand_in = published(graph, base)
            for method in METHODS:
                scenario = replace(base, method=method)
                real = simulate_scenario(scenario, graph).metrics.iteration_s
                low, likely, high = (simulate_scenario(scenario, stand_in, bound) for bound in RangeEnd)
                inside = min(low.low_s, likely.low_s) <= real <= max(high.high_s, likely.high_s)
                held.append(inside)
                ratios.append(likely.metrics.iteration_s / real)
                say(
                    f"{name:13} {gpus} {bandwidth:7} {method.name:10} tau {method.tau} eps {method.epsilon:<5g} "
                    f"real {1e3 * real:8.2f} ms, published {1e3 * likely.metrics.iteration_s:8.2f} "
                    f"[{1e3 * low.low_s:.2f}, {1e3 * high.high_s:.2f}] {'' if inside else 'OUT'}"
                )
    ratios.sort()
    say(f"{sum(held)} of {len(held)} intervals hold; likely over real: median {ratios[len(ratios) // 2]:.2f}")


if __name__ == "__main__":
    main()
