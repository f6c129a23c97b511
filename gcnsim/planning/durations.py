"""How long the parts of an answer take: a law of few coefficients, fitted to runs on one machine.

`benchmarks/bench_durations.py` measures and writes the coefficients (`gcnsim/data/durations.yaml`, which names the
machine). The logarithm of a part's seconds is a sum of coefficients times features of the setting. Two of them say how
it grows: log n, and log(1 + (n / bend)^2), which is nothing for few and twice the logarithm for many: exponents e and
e + 2 f. It is for whoever waits, and for limited waits; no time that is predicted depends on it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import exp, log, log1p
from pathlib import Path
from typing import Final

from gcnsim.engine import engine
from gcnsim.ids import Seconds
from gcnsim.io.yaml_files import read_yaml
from gcnsim.machine import resolve_machine
from gcnsim.scenario import COARSE, Scenario
from gcnsim.simulation import fidelity
from gcnsim.uncertainty import other_paths

FILE: Final = Path(__file__).resolve().parent.parent / "data" / "durations.yaml"

FEATURES: Final[Mapping[str, tuple[str, ...]]] = {
    "iterations": ("one", "stale", "drawn", "tau", "both_gpus"),
    "compiled": ("one", "servers", "many_servers", "stale"),
    "coarse": ("one", "servers", "many_servers", "stale"),
    "reference": ("one", "servers", "many_servers", "stale"),
    "study": ("one", "gpus", "many_gpus", "drawn"),
    "ranking": ("one", "gpus", "many_gpus"),
    "draw": ("one", "gpus", "many_gpus", "stale"),
}
"""Of each part, what its logarithm depends on. iterations: until a run is steady, a number. compiled, coarse,
reference: seconds of an op of an iteration by that engine. study: seconds of all else of a setting, from counts to
estimates under all draws. ranking: seconds of ranking the candidates of a machine. draw: seconds of a simulated draw of
the assumptions besides its ops."""

BEND_GPUS: Final = 16.0
BEND_SERVERS: Final = 8.0

LAYERS: Final = 4
"""Where the dataset has its own number of layers, which is known when it is read."""

MOST_ITERATIONS: Final = 150.0
"""Runs end about here, settled or not."""


@dataclass(frozen=True, slots=True)
class Size:
    """What the law knows of a setting. ops: of an iteration; messages: those between servers among them. tau: its
    staleness; drawn: whether its graphs differ; paths: other ones that may be between its GPUs, estimated too."""

    gpus: int
    servers: int
    ops: float
    messages: float
    tau: int
    drawn: bool
    coarse: bool = False
    paths: int = 0

    @classmethod
    def of(cls, scenario: Scenario, *, mean: bool = False) -> Size:
        """The size of `scenario`; mean: of the mean of its graphs, of which there is then one."""
        cluster, method = scenario.cluster, scenario.method
        gpus, layers = cluster.gpus, scenario.workload.layers or LAYERS
        pairs = gpus * (gpus - 1)
        # What the schedules of `gcnsim.methods` have: messages of layers and of the ring, ids where graphs are drawn.
        drawn = method.sampling()
        ids = (0, 0) if drawn.whole or method.mini_batches else (1, 3) if drawn.by_edge else (2, 4)
        # Copies to and from the host, of rows and of the ring, are there where rows are staged.
        direct = resolve_machine(cluster).between.direct
        of_batches, of_rows = (4 * layers + 3, 8 * layers - 1) if direct else (4 * layers + 5, 12 * layers - 1)
        per_pair, per_worker = (5, of_batches) if method.mini_batches else (2 * layers + 1, of_rows)
        ops = (per_pair + ids[0]) * pairs + (per_worker + ids[1]) * gpus
        apart = 1.0 - (min(cluster.gpus_per_server, gpus) - 1) / max(1, gpus - 1)
        return cls(
            gpus=gpus,
            servers=cluster.servers,
            ops=float(ops),
            messages=(per_pair - 2 + ids[0]) * pairs * apart,
            tau=method.tau,
            # Of stale settings the pipeline decides when a run is steady, also where one graph stands for all drawn.
            drawn=drawn.by_edge and (method.tau > 0 or not (mean or scenario.run.iterations == 1)),
            coarse=fidelity(scenario) == COARSE,
            paths=len(other_paths(scenario)),
        )

    def feature(self, name: str) -> float:
        """The value of one of `FEATURES`."""
        stale = float(self.tau > 0)
        return {
            "one": 1.0,
            "gpus": log(self.gpus),
            "many_gpus": log1p((self.gpus / BEND_GPUS) ** 2),
            "servers": log(self.servers),
            "many_servers": log1p((self.servers / BEND_SERVERS) ** 2),
            "stale": stale,
            "drawn": float(self.drawn),
            "tau": log(max(1, self.tau)),
            "both_gpus": stale * self.drawn * log(self.gpus),
        }[name]


@dataclass(frozen=True, slots=True)
class Law:
    """The coefficients. parts: of each part, by feature. start_s: of a question before and after all that, seconds.
    compiled: whether the compiled engine simulates."""

    parts: Mapping[str, Mapping[str, float]]
    start_s: Seconds
    compiled: bool = True

    def part(self, name: str, size: Size) -> float:
        """One of `FEATURES`: seconds, or a number of iterations."""
        return exp(sum(value * size.feature(feature) for feature, value in self.parts[name].items()))

    def iterations(self, size: Size) -> float:
        """Iterations that are simulated until a run is steady, about."""
        return min(self.part("iterations", size), MOST_ITERATIONS)

    def op_s(self, size: Size) -> Seconds:
        """Seconds of an op of an iteration, by the engine in use."""
        return self.part("coarse" if size.coarse else "compiled" if self.compiled else "reference", size)

    def engine_s(self, size: Size) -> Seconds:
        """Seconds of the engine until a run is steady."""
        return size.ops * self.iterations(size) * self.op_s(size)

    def study_s(self, size: Size) -> Seconds:
        """Seconds of a setting: written, bounded, simulated, measured, and estimated under all draws; of other paths
        between its GPUs each, which of stale settings are not simulated."""
        simulated = 1 + (0 if size.tau else size.paths)
        return (1 + size.paths) * self.part("study", size) + simulated * self.engine_s(size)

    def draw_s(self, size: Size) -> Seconds:
        """Seconds of one simulated draw of the assumptions."""
        return self.part("draw", size) + self.engine_s(size)


def fitted_law() -> Law:
    """The law of the data file, for the engine in use."""
    parts, start_s = _read()
    return Law(parts, start_s, engine().kernel is not None)


@cache
def _read() -> tuple[dict[str, dict[str, float]], Seconds]:
    content = read_yaml(FILE)
    parts = {name: {each: float(value) for each, value in found.items()} for name, found in content["parts"].items()}
    return parts, float(content["start_s"])


def total(law: Law, sizes: Sequence[Size]) -> tuple[float, float]:
    """Of runs of these sizes until they are steady: ops that are simulated, and messages between servers, each of which
    has links shared anew, at most."""
    counts = [(size.ops, size.messages, law.iterations(size)) for size in sizes]
    return sum(ops * often for ops, _, often in counts), sum(messages * often for _, messages, often in counts)
