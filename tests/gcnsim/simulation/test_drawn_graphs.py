"""How many graphs are drawn: one for each iteration, fewer where each has a million pairs of workers, as is said."""

from __future__ import annotations

from typing import Any

import pytest

from gcnsim.scenario import SCHEMA, Scenario, from_mapping
from gcnsim.simulation.open_source import open_source
from gcnsim.simulation.source import MOST_PAIRS, RangeEnd, drawn_graphs, fewer_drawn


def make_scenario(gpus: int, iterations: int = 30, **method: Any) -> Scenario:
    mapping = {
        "schema": SCHEMA,
        "cluster": {"gpus": gpus},
        "method": {"name": "psc-gcn", "epsilon": 0.1} | method,
        "run": {"iterations": iterations},
    }
    return from_mapping(mapping, "test")


@pytest.mark.parametrize(
    ("gpus", "iterations", "drawn"),
    [(6, 30, 30), (128, 10_000, 10_000), (192, 30, 30), (192, 1_000, 113), (512, 30, 16), (1024, 30, 4), (1024, 3, 3)],
)
def test_pairs_of_workers_limit_the_graphs_of_many_workers(gpus: int, iterations: int, drawn: int) -> None:
    assert drawn_graphs(make_scenario(gpus, iterations)) == drawn
    assert gpus <= 128 or drawn * gpus**2 <= MOST_PAIRS


def test_whole_graphs_are_one() -> None:
    scenario = make_scenario(1024, name="full-graph", epsilon=1)
    assert drawn_graphs(scenario) == 1
    assert not list(fewer_drawn([scenario]))


def test_fewer_graphs_are_said_once_for_each_number_of_gpus() -> None:
    lines = list(
        fewer_drawn([make_scenario(512), make_scenario(512, epsilon=0.2), make_scenario(1024), make_scenario(192)])
    )
    assert lines == [
        "512 GPUs: 16 graphs are drawn for 30 iterations, which take them in turn: each has 261,632 pairs of workers",
        "1024 GPUs: 4 graphs are drawn for 30 iterations, which take them in turn: each has 1,047,552 pairs of workers",
    ]


def test_drawn_nodes_are_means_but_of_a_graph() -> None:
    nodes = make_scenario(1024, name="bns-gcn", epsilon=1, rate=0.1)
    assert not list(fewer_drawn([nodes]))
    assert len(list(fewer_drawn([nodes], nodes=True))) == 1


def test_a_source_draws_and_says_so() -> None:
    scenario = make_scenario(400, iterations=40)
    accesses = open_source(scenario)
    counts = accesses.counts(scenario, 602, RangeEnd.LIKELY)
    assert counts.iterations == drawn_graphs(scenario) == 26
    assert any("26 graphs are drawn for 40 iterations" in line for line in accesses.warnings([scenario]))
