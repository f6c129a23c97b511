"""What an answer says of NVLink and transport: in its heading, its ranges, its steps and what it recommends."""

from __future__ import annotations

from typing import Any

import pytest

import gcnsim
from gcnsim.api.question import settings
from gcnsim.planning.alternatives import path_steps
from gcnsim.scenario import Scenario, from_mapping

P4D: dict[str, Any] = {
    "dataset": "ogbn-products",
    "model": "graphsage",
    "hidden": 256,
    "host": "p4d.24xlarge",
    "gpus": 8,
}


def answered(**question: Any) -> Any:
    given: dict[str, Any] = {"method": "full-graph", "iterations": 2, "processes": 1} | question
    return gcnsim.what_if(**given)


def test_an_instance_is_simulated_with_its_nvlink_and_its_range_covers_staged_copies() -> None:
    plain, staged = answered(**P4D), answered(**P4D, transport="staged")
    (now,), (slow,) = plain.told.rows, staged.told.rows
    assert now.iteration_s < slow.iteration_s / 4
    assert now.iteration_s_low < now.iteration_s < slow.iteration_s <= now.iteration_s_high
    title = str(plain).split("ms per iter")[0]
    assert "NVLink 300 GB/s" in title
    assert "transport direct (assumed)" in " ".join(title.split())
    assert plain.payload["provenance"]["between_gpus"] == "NVLink 300 GB/s, transport direct (assumed)"
    assert "NVLink 3 of p4d.24xlarge" in plain.payload["provenance"]["between_gpus_basis"]
    assert "transport staged" in str(staged).splitlines()[0] + str(staged).splitlines()[1]


@pytest.mark.parametrize(
    ("question", "heading"),
    [
        ({"gpus": 2}, "transport direct (assumed)"),
        ({"gpus": 2, "transport": "direct"}, "transport direct"),
        ({"gpus": 2, "device": "h100", "gpus_per_server": 2}, "NVLink 450 GB/s (assumed), transport direct (assumed)"),
        ({"gpus": 2, "device": "rtx-4090", "transport": "direct"}, "transport direct"),
        ({"gpus": [2, 4], "device": ["t4", "h100"], "transport": "direct"}, "transport direct"),
        ({"gpus": 1}, None),
    ],
)
def test_the_heading_says_what_all_rows_share(question: dict[str, Any], heading: str | None) -> None:
    assert answered(**question).payload["provenance"].get("between_gpus") == heading


def test_where_the_transport_is_said_the_range_is_of_it_alone() -> None:
    known = answered(**P4D, transport="direct").told
    (row,) = known.rows
    assert row.iteration_s_high < 2 * row.iteration_s
    assert not any(assumption.name == "cluster.transport" for assumption in known.certainty.assumptions)


def scenario(method: str = "pipegcn", **cluster: object) -> Scenario:
    given = {"gpus": 4, "gpus_per_server": 4} | cluster
    return from_mapping({"schema": "gcnsim.scenario/1", "cluster": given, "method": {"name": method}}, "test")


@pytest.mark.parametrize(
    ("cluster", "steps"),
    [
        ({"transport": "staged"}, [("transport", "staged", "direct")]),
        ({"implementation": "released"}, [("transport", "staged", "direct")]),
        ({"device": "a100-80", "nvlink": "none"}, [("NVLink", "none", "300 GB/s")]),
        ({"device": "a100-40", "host": "g5.48xlarge"}, [("NVLink", "none", "300 GB/s")]),
        ({"device": "a100-80"}, []),
        ({"device": "t4"}, []),
        ({"device": "rtx-4090"}, []),
        ({"gpus": 1, "gpus_per_server": 1, "transport": "staged"}, []),
        ({"platform": "psc-gcn-t4"}, []),
        ({"sockets": "cores"}, []),
        ({"device": "cpu-core"}, []),
    ],
)
def test_direct_copies_and_nvlink_are_steps_where_they_are_off(
    cluster: dict[str, Any], steps: list[tuple[str, str, str]]
) -> None:
    knob_changes = path_steps(scenario(**cluster))
    assert [(knob_change.knob, knob_change.start, knob_change.end) for knob_change in knob_changes] == steps


def test_staged_copies_are_named_where_they_cost_the_time() -> None:
    content = answered(**P4D | {"method": "pipegcn"}, transport="staged").told
    assert "host memory" in content.recommendation.row.limited_by
    assert "rows are staged" in (content.recommendation.note or "")
    (step,) = (next_step for next_step in content.next_steps if next_step.knob == "transport")
    assert step.gain > 0.5
    assert answered(**P4D | {"method": "pipegcn"}, transport="direct").told.recommendation.note is None


def test_an_instance_with_nvlink_is_recommended_over_cards_between_servers() -> None:
    found = gcnsim.recommend(
        dataset="ogbn-products", model="graphsage", hidden=256, host=["p4d.24xlarge", "g6e.12xlarge"], gpus=8,
        minimise="time", method="pipegcn", iterations=2, processes=1,
    )  # fmt: skip
    assert found.told.choice.host == "p4d.24xlarge"
    assert found.told.runner_up is not None
    assert found.told.provenance.between_gpus == "NVLink 300 GB/s, transport direct (assumed)"


@pytest.mark.parametrize("host", ["p4d.24xlarge", "Standard_ND96asr_v4"])
def test_an_instance_has_its_own_kind_of_network(host: str) -> None:
    (own,) = settings(host=host, gpus=16, method="full-graph")
    assert own.cluster.link == ("efa" if host.startswith("p4d") else "infiniband-hdr")
    (given,) = settings(host=host, gpus=16, method="full-graph", overrides=["cluster.link=ethernet"])
    assert given.cluster.link == "ethernet"
