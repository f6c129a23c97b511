"""How long a question will take, before it is answered: by a law fitted to this engine's own runs.

A simulation handles each op of each iteration once; ops grow with the pairs of workers. The law is for the machine in
benchmarks/README.md and good to a factor of two: it is for whoever waits, not for a result.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from gcnsim.alternatives import partition_seconds
from gcnsim.errors import plural
from gcnsim.ids import Seconds
from gcnsim.planning.study_cache import StudyCache, canonical
from gcnsim.scenario import Scenario

LONG_S: Final = 10.0
"""What takes longer is announced."""

OP_S: Final = 25e-6
"""Seconds of one op of one iteration: 11 to 34 us seen on 2 to 32 workers."""

WRITTEN_S: Final = 150e-6
"""Seconds per op of writing a schedule, and of its estimates under all draws of the assumptions."""

DRAWN_S: Final = 20e-9
"""Seconds per stored entry of one drawn graph of a graph at hand."""

STEPS: Final = 6
"""Next steps that are simulated, about."""


def expected_s(studies: StudyCache, asked: Sequence[Scenario], candidates: Sequence[Scenario]) -> Seconds:
    """About how long it takes to answer for `asked`, to try `candidates` and the next steps of one of them."""
    every = dict.fromkeys(canonical(each) for each in (*asked, *candidates))
    steps = STEPS * max((_simulated_s(each) for each in every), default=0.0)
    cores = max(1, min(studies.processes, len(every)))
    return (sum(map(_simulated_s, every)) + steps) / cores + _recorded_s(studies, list(every))


def expected_sweep_s(studies: StudyCache, settings: Sequence[Scenario], points: int) -> Seconds:
    """About how long it takes to simulate each of `settings` at so many bandwidths besides its own."""
    return points * sum(map(_simulated_s, settings)) / max(1, studies.processes)


def _simulated_s(scenario: Scenario) -> Seconds:
    workers, method = scenario.cluster.gpus, scenario.method
    layers = scenario.workload.layers or 4
    ops = (9.0 * workers * (workers - 1) + 47.0 * workers) * layers / 4.0
    iterations = 8.0 if method.sampling().whole and method.tau < 2 else min(6.0 + workers, 60.0)
    return ops * (OP_S * iterations + WRITTEN_S)


def _recorded_s(studies: StudyCache, every: Sequence[Scenario]) -> Seconds:
    """Cutting a graph at hand, and drawing from it for every rate and cache."""
    graph = studies.accesses.graph
    if graph is None:
        return 0.0
    entries = graph.entries
    cuts = {(each.cluster.gpus, each.partition): each for each in every}
    drawings = {(each.cluster.gpus, each.method.epsilon, each.method.rate) for each in every}
    drawn = sum(every[0].run.iterations for _, epsilon, rate in drawings if min(epsilon, rate) < 1.0)
    cut = sum(partition_seconds(entries, each.partition) for each in cuts.values())
    return cut + drawn * entries * DRAWN_S


def announced(seconds: Seconds, settings: Sequence[Scenario], what: str = "the next steps") -> str | None:
    """What to say before a wait; None where it is short."""
    if seconds <= LONG_S:
        return None
    about = f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} minutes"
    return f"this takes about {about} ({plural(len(settings), 'setting')} and {what}; Ctrl-C stops it)"
