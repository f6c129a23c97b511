"""How many graphs are drawn for a run: one for each iteration, fewer where each has a million pairs of workers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from gcnsim.boundary import MANY_PARTS
from gcnsim.scenario import Scenario

MOST_PAIRS: Final = 1 << 22
"""Pairs of workers in all graphs of a run together, beyond `MANY_PARTS` workers: counts of rows and hits then take at
most 67 MB, and 1,024 workers have four graphs. What a worker exchanges with a thousand others in all hardly varies."""


def drawn_graphs(scenario: Scenario) -> int:
    """Graphs drawn for the scenario, one where it drops nothing; its iterations take them in turn."""
    if scenario.method.sampling().whole:
        return 1
    asked, gpus = scenario.run.iterations, scenario.cluster.gpus
    return asked if gpus <= MANY_PARTS else min(asked, max(2, MOST_PAIRS // gpus**2))


def fewer_drawn(asked: Iterable[Scenario], *, nodes: bool = False) -> Iterator[str]:
    """A warning where fewer graphs are drawn than there are iterations, once for each number of GPUs.

    nodes: whether graphs of drawn nodes are drawn, and not taken as their mean.
    """
    for one in {each.cluster.gpus: each for each in asked if _draws(each, nodes=nodes)}.values():
        drawn, gpus = drawn_graphs(one), one.cluster.gpus
        if drawn < one.run.iterations:
            yield (
                f"{gpus} GPUs: {drawn} graphs are drawn for {one.run.iterations} iterations, which take them in turn: "
                f"each has {gpus * (gpus - 1):,} pairs of workers"
            )


def _draws(scenario: Scenario, *, nodes: bool) -> bool:
    sampling = scenario.method.sampling()
    return not (scenario.method.mini_batches or sampling.whole) and (nodes or sampling.by_edge or sampling.drops_edges)
