"""Boundary rows in fewer bits, from the question to the links."""

from __future__ import annotations

from typing import Any

import pytest

from gcnsim.api import simulate, what_if
from gcnsim.core.errors import ScenarioError
from gcnsim.scenario import from_mapping, scenario_hash, to_mapping

REDDIT: dict[str, Any] = {
    "schema": "gcnsim.scenario/1",
    "cluster": {"gpus": 4, "bandwidth": "10Gbps"},
    "workload": {"dataset": "reddit"},
    "run": {"iterations": 4},
}


def result_with(payload: str, name: str = "full-graph", **cluster: Any) -> dict[str, Any]:
    given = {"cluster": REDDIT["cluster"] | {"payload": payload} | cluster, "method": {"name": name}}
    return dict(simulate(REDDIT | given).payload)


def test_fewer_bits_are_fewer_bytes_on_every_path() -> None:
    whole, half = result_with("fp32"), result_with("fp16")
    for name in ("nic0.tx", "pcie0.up", "pcie3.down"):
        ratio = half["links"][name]["bytes"] / whole["links"][name]["bytes"]
        assert 0.5 <= ratio < 0.51, "all but the weights' gradients is halved"
    assert half["result"]["iteration_s"] < whole["result"]["iteration_s"]
    assert half["result"]["compute_s"] == pytest.approx(whole["result"]["compute_s"], rel=1e-9)


@pytest.mark.parametrize("name", ["pipegcn", "bns-gcn", "psc-gcn"])
def test_bytes_shrink_with_bits_in_every_method(name: str) -> None:
    sent = [result_with(payload, name)["result"]["nic_bytes"] for payload in ("fp32", "fp16", "int8", "int4", "int2")]
    assert sent == sorted(sent, reverse=True)
    assert len(set(sent)) == len(sent)


def test_fp32_changes_no_question() -> None:
    plain = from_mapping(REDDIT, "test")
    scenario = from_mapping(REDDIT | {"cluster": REDDIT["cluster"] | {"payload": "fp32"}}, "test")
    assert scenario_hash(plain) == scenario_hash(scenario)
    assert "payload" not in to_mapping(plain)["cluster"]


def test_a_what_if_asks_it_of_every_row() -> None:
    rows = what_if(gpus=2, gpus_per_server=1, method=["full-graph", "pipegcn"], payload="int8", iterations=4).results
    usual = what_if(gpus=2, gpus_per_server=1, method=["full-graph", "pipegcn"], iterations=4).results
    for row, before in zip(rows, usual, strict=True):
        assert row["nic_bytes"] < 0.3 * before["nic_bytes"]


@pytest.mark.parametrize(
    ("payload", "name", "cluster", "says"),
    [
        ("fp8", "full-graph", {}, "unknown payload 'fp8'"),
        ("int8", "sancus", {}, "not modelled with sancus"),
    ],
)
def test_refused_where_it_is_not_modelled(payload: str, name: str, cluster: dict[str, Any], says: str) -> None:
    with pytest.raises(ScenarioError, match=says):
        result_with(payload, name, **cluster)
