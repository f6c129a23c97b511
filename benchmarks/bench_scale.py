"""What a simulation takes as the cluster grows: processor time of each step and peak memory, by GPUs, with exponents.

    python -m benchmarks.bench_scale                       2 to 192 GPUs
    python -m benchmarks.bench_scale --gpus 6,48,1024      these alone
    python -m benchmarks.bench_scale --plot docs/scale.svg also draw it (needs matplotlib)

Two GPUs in a server, the default dataset, 30 drawn graphs; `full-graph` waits for every row, `psc-gcn` is pipelined and
sampled. Every size is a process of its own. An exponent is that of a line through the logarithms of the largest sizes,
from 12 GPUs on: a step that takes GPUs^e seconds.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np

from benchmarks.measuring import OUT, machine

if TYPE_CHECKING:
    from gcnsim.schedule import Schedule

GPUS: Final = (2, 4, 6, 12, 24, 48, 96, 192)
METHODS: Final = ("full-graph", "psc-gcn")
STEPS: Final = ("counts", "writing", "bounds", "iteration", "metrics")
"""Sampled accesses; the schedule; its bounds; one iteration of the engine, the mean of few; what its spans say."""

FROM: Final = 12
"""GPUs from which on exponents are fitted."""

MOST_OPS: Final = 1_500_000
"""Ops that are simulated, in whole iterations, at least two."""

T = TypeVar("T")


def main() -> int:
    """Measure, print a table, write out/scale.json; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gpus", default=",".join(map(str, GPUS)))
    parser.add_argument("--method", default=",".join(METHODS))
    parser.add_argument("--plot")
    parser.add_argument("--one", nargs=2, metavar=("METHOD", "GPUS"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        sys.stdout.write(json.dumps(one(arguments.one[0], int(arguments.one[1]))))
        return 0
    rows = []
    for method in arguments.method.split(","):
        for gpus in map(int, arguments.gpus.split(",")):
            rows.append(alone(method, gpus))
            show(rows[-1])
    fitted = {method: exponents([row for row in rows if row["method"] == method]) for method in METHODS}
    for method, found in fitted.items():
        sys.stdout.write(f"{method}: " + ", ".join(f"{step} GPUs^{value:.2f}" for step, value in found.items()) + "\n")
    OUT.mkdir(exist_ok=True)
    content = {"benchmark": "scale", "machine": machine(), "rows": rows, "exponents": fitted}
    (OUT / "scale.json").write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    if arguments.plot:
        draw(rows, arguments.plot)
    return 0


def alone(method: str, gpus: int) -> dict[str, Any]:
    """`one` in a process of its own, so that its peak is its own."""
    command = [sys.executable, "-m", "benchmarks.bench_scale", "--one", method, str(gpus)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def one(method: str, gpus: int) -> dict[str, Any]:
    """Seconds of each step, ops of an iteration, peak bytes."""
    from gcnsim.engine import engine, simulate
    from gcnsim.schedule import bounds
    from gcnsim.simulation.metrics import measure

    spent: dict[str, float] = {}
    schedule = written(method, gpus, spent)
    timed(spent, "bounds", lambda: bounds(schedule))
    count = max(2, min(30, MOST_OPS // schedule.columns.size))
    engine()
    # What is imported and laid out the first time would be most of a short run.
    simulate(written("full-graph", GPUS[0], {}), 2)
    run = timed(spent, "iteration", lambda: simulate(schedule, count))
    spent["iteration"] /= count
    timed(spent, "metrics", lambda: measure(run, 1))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {"method": method, "gpus": gpus, "ops": schedule.columns.size, "iterations": count, "peak": peak, **spent}


def written(method: str, gpus: int, spent: dict[str, float]) -> Schedule:
    """The schedule of a method; what it took is kept in `spent`."""
    from gcnsim.scenario import SCHEMA, from_mapping
    from gcnsim.simulation.model import resolve_model
    from gcnsim.simulation.open_source import open_source
    from gcnsim.simulation.run import write_schedule
    from gcnsim.simulation.source import RangeEnd

    scenario = from_mapping({"schema": SCHEMA, "method": {"name": method}, "cluster": {"gpus": gpus}}, "benchmark")
    accesses = open_source(scenario)
    features = resolve_model(scenario.workload, accesses.declared).features
    counts = timed(spent, "counts", lambda: accesses.counts(scenario, features, RangeEnd.LIKELY))
    return timed(spent, "writing", lambda: write_schedule(scenario, counts, accesses))


def timed(spent: dict[str, float], name: str, work: Callable[[], T]) -> T:
    """What `work` returns; its processor time is kept under `name`."""
    begin = time.process_time()
    found = work()
    spent[name] = time.process_time() - begin
    return found


def show(row: dict[str, Any]) -> None:
    """Print a row of the table."""
    steps = "".join(f"  {step} {1e3 * row[step]:,.1f} ms" for step in STEPS)
    rate = row["ops"] / row["iteration"] / 1e6
    sys.stdout.write(f"{row['method']:<11}{row['gpus']:>5} GPUs {row['ops']:>10,} ops{steps}")
    sys.stdout.write(f"  {rate:.2f} M ops/s  {row['peak'] / 1e6:,.0f} MB\n")
    sys.stdout.flush()


def exponents(rows: Sequence[dict[str, Any]]) -> dict[str, float]:
    """By step, the exponent of its time in the number of GPUs; of memory, what grows."""
    large = [row for row in rows if row["gpus"] >= FROM]
    if len(large) < 2:
        return {}
    gpus = np.log([row["gpus"] for row in large])
    return {step: float(np.polyfit(gpus, np.log([row[step] for row in large]), 1)[0]) for step in ("ops", *STEPS)}


def draw(rows: Sequence[dict[str, Any]], path: str) -> None:
    """The steps' times against GPUs, both axes logarithmic, as an SVG file."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    mpl.rcParams["svg.hashsalt"] = "gcnsim"
    figure = Figure(figsize=(10, 4.2), layout="constrained")
    panels = figure.subplots(1, len(METHODS), sharey=True)
    for panel, method in zip(panels, METHODS, strict=True):
        own = [row for row in rows if row["method"] == method]
        for step, style in zip(STEPS, ("o-", "s-", "^-", "D-", "v-"), strict=True):
            panel.loglog([row["gpus"] for row in own], [row[step] for row in own], style, label=step, markersize=4)
        panel.set_title(method)
        panel.set_xlabel("GPUs")
        panel.set_xticks([row["gpus"] for row in own], [str(row["gpus"]) for row in own])
        panel.minorticks_off()
        panel.grid(visible=True, alpha=0.3)
    panels[0].set_ylabel("processor time, seconds")
    panels[0].legend()
    figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    sys.exit(main())
