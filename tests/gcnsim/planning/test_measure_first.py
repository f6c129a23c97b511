"""The figure to measure first: the one that moves the time most, by how much, and with which command."""

from __future__ import annotations

import pytest

from gcnsim.planning.certainty import how_to_measure, measure_first
from gcnsim.results import AssumptionEffect
from gcnsim.scenario import Scenario, from_mapping


def make_scenario(**cluster: object) -> Scenario:
    return from_mapping({"schema": "gcnsim.scenario/1", "cluster": {"gpus": 4, **cluster}}, "test")


def effect(name: str, low: float, high: float, share: float) -> AssumptionEffect:
    return AssumptionEffect(name, "1", "0", "2", "assumed", low, high, share)


def test_the_figure_that_moves_the_time_most_is_named_with_its_command() -> None:
    effects = [effect("t4.spmm_efficiency", 0.3, 0.2, 0.3), effect("ethernet.efficiency", 0.8, 0.5, 0.7)]
    text = measure_first(make_scenario(bandwidth="15Gbps"), effects)
    assert text.startswith("ethernet.efficiency (500 ms to 800 ms, 70 % of the uncertainty): python -m runtime.survey")
    assert "on two servers" in text


@pytest.mark.parametrize("effects", [[], [effect("t4.launch_s", 0.500, 0.501, 0.9)], [effect("a.b", 0.4, 0.6, 0.1)]])
def test_nothing_is_named_where_nothing_stands_out(effects: list[AssumptionEffect]) -> None:
    assert measure_first(make_scenario(), effects) == ""


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("t4.spmm_efficiency", "runtime.measure --device cuda on one t4, then --measured-compute"),
        ("pcie3-x16.latency_s", "on one server, then gcnsim calibrate"),
        ("ethernet.efficiency", "on two servers (torchrun --nnodes 2)"),
        ("cluster.transport", "--transport direct or --transport staged"),
        ("workload", "partition your own graph (--graph)"),
        ("partition", "partition your own graph (--graph)"),
    ],
)
def test_each_kind_of_assumption_has_a_way_to_measure_it(name: str, words: str) -> None:
    assert words in how_to_measure(make_scenario(bandwidth="15Gbps"), name)
