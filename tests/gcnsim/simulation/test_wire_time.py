"""The least that an iteration's bytes need on the network, and times below it."""

from __future__ import annotations

import pytest

from gcnsim.planning.measured import beside_measured, read_measurement
from gcnsim.planning.study_cache import StudyCache
from gcnsim.scenario import SCHEMA, Scenario, from_mapping
from gcnsim.simulation import simulate_scenario
from gcnsim.simulation.diagnosis import impossible, impossible_time, least_wire_s


def make_scenario(dataset: str = "reddit", **cluster: object) -> Scenario:
    question = {
        "schema": SCHEMA,
        "cluster": {"gpus": 4, "gpus_per_server": 2, "bandwidth": "1Gbps", **cluster},
        "workload": {"dataset": dataset},
        "method": {"name": "pipegcn"},
        "run": {"iterations": 2},
    }
    return from_mapping(question, "test")


def test_the_busiest_card_moves_its_bytes_at_its_raw_rate() -> None:
    result = simulate_scenario(make_scenario())
    units = {name: 0.0 for name in result.run.schedule.link_names if name.startswith("nic")}
    columns = result.run.schedule.columns
    for op, link in zip(*columns.crossings, strict=True):
        name = result.run.schedule.link_names[link]
        if name in units:
            units[name] += float(result.run.schedule.demand[:, op].mean())
    assert least_wire_s(result) == pytest.approx(max(units.values()) / 1.25e8, rel=1e-9)
    assert least_wire_s(simulate_scenario(make_scenario(gpus_per_server=4))) == 0.0


def test_a_quarter_less_is_allowed_and_the_fewest_rows_count() -> None:
    assert impossible_time(1.0, 0.75, 1.25e8) is None
    text = impossible_time(1.0, 0.74, 1.25e8)
    assert text is not None
    assert "its bytes need 1.00 s on the busiest network card" in text
    result = simulate_scenario(make_scenario())
    half = 0.5 * least_wire_s(result)
    assert impossible(result, half) is not None
    assert impossible(result, half, 0.6) is None


def test_a_time_that_a_smaller_boundary_allows_is_not_called_impossible() -> None:
    """Of a graph that is known by its sizes the boundary may be little more than half of the likely one."""
    for dataset, share, wrong in (("ogbn-arxiv", 0.5, False), ("ogbn-arxiv", 0.1, True), ("reddit", 0.5, True)):
        scenario = make_scenario(dataset)
        shop = StudyCache(scenario)
        row = shop.candidate(scenario)
        seconds = share * least_wire_s(row.result)
        (content,) = beside_measured(shop, [read_measurement(f"{seconds * 1e3:.6f}ms")], [row])
        assert ("impossible as described" in content.text) is wrong, (dataset, share)
