"""Profiles and counts of many parts: processor time and peak memory of what is known of four published graphs.

    python -m benchmarks.bench_parts                       6 to 1,024 parts
    python -m benchmarks.bench_parts --gpus 1024           these alone

`full-graph` asks for whole parts, so its counts are those of the profile; `psc-gcn` draws 30 graphs, at most,
at a rate of 0.1, beside a cache of 30 % that is chosen by inclusion. Every figure is of a process of its own: the time
without starting Python and opening the source, the peak with all of it. Placing 64 parts of Reddit on servers of two is
timed in this process.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from statistics import median
from typing import Any, Final

from benchmarks.measuring import Figure, report

GPUS: Final = (6, 48, 192, 512, 1024)
GRAPHS: Final = ("reddit", "ogbn-products", "yelp", "ogbn-papers100M")
METHODS: Final[dict[str, dict[str, Any]]] = {
    "profile": {"name": "full-graph"},
    "counts": {"name": "psc-gcn", "epsilon": 0.1, "cache": "30%"},
}
"""What is measured, by the method whose accesses are asked for."""

LEAST: Final = {"ogbn-papers100M": 32}
"""Parts from which on a graph is known; from 2 on where it does not say."""

SECONDS, MEGABYTES = 20.0, 1_000.0
"""Limits at any number of parts."""


def main() -> int:
    """Measure; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gpus", default=",".join(map(str, GPUS)))
    parser.add_argument("--one", nargs=3, metavar=("GRAPH", "WHAT", "GPUS"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        sys.stdout.write(json.dumps(one(arguments.one[0], arguments.one[1], int(arguments.one[2]))))
        return 0
    figures = []
    for graph in GRAPHS:
        for gpus in map(int, arguments.gpus.split(",")):
            for what in METHODS if gpus >= LEAST.get(graph, 2) else ():
                seconds, peak = alone(graph, what, gpus)
                figures.append(Figure(f"{graph}, {gpus} parts: {what}", seconds, "s", f"<= {SECONDS:g}"))
                figures.append(Figure(f"{graph}, {gpus} parts: {what}, peak", peak, "MB", f"<= {MEGABYTES:g}"))
    figures.append(Figure("reddit, 64 parts: balanced order on servers of two", placing(), "s", "<= 0.1"))
    return report("parts", "profiles and counts of published graphs, processor time", figures)


def placing() -> float:
    """Processor seconds in which 64 parts are placed, the median of five times."""
    from gcnsim.graph.placement import balanced_order
    from gcnsim.trace.packaged_profiles import profile_at

    rows, seconds = profile_at("reddit", 64)[0].pairs, []
    for _ in range(5):
        begin = time.process_time()
        balanced_order(rows, 2)
        seconds.append(time.process_time() - begin)
    return median(seconds)


def alone(graph: str, what: str, gpus: int) -> tuple[float, float]:
    """`one` in a process of its own, so that its peak is its own."""
    command = [sys.executable, "-m", "benchmarks.bench_parts", "--one", graph, what, str(gpus)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    seconds, peak = json.loads(done.stdout)
    return seconds, peak


def one(graph: str, what: str, gpus: int) -> tuple[float, float]:
    """Processor seconds that the counts take, and the peak in MB."""
    from gcnsim.scenario import SCHEMA, from_mapping
    from gcnsim.simulation.model import resolve_model
    from gcnsim.simulation.open_source import open_source
    from gcnsim.simulation.source import RangeEnd

    requested = {"cluster": {"gpus": gpus}, "workload": {"dataset": graph}, "method": METHODS[what]}
    scenario = from_mapping({"schema": SCHEMA, **requested}, "benchmark")
    accesses = open_source(scenario)
    features = resolve_model(scenario.workload, accesses.declared).features
    begin = time.process_time()
    counts = accesses.counts(scenario, features, RangeEnd.LIKELY)
    seconds = time.process_time() - begin
    assert counts.workers == gpus
    assert counts.rows.sum() > 0
    return seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6


if __name__ == "__main__":
    sys.exit(main())
