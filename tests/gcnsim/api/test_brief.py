"""Errors in Python are short, and so is what a sweep shows of itself."""

from __future__ import annotations

import traceback
from pathlib import Path

import pytest

import gcnsim
from gcnsim.core.errors import GcnsimError, ScenarioError


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("what_if", {"device": "b100"}),
        ("recommend", {"gpus": 0}),
        ("simulate", {"scenario": {}}),
        ("open_sweep", {"path": "nowhere"}),
        ("load_graph", {"path": "no.npz"}),
    ],
)
def test_a_wrong_value_raises_in_under_ten_lines(name: str, given: dict[str, object]) -> None:
    with pytest.raises(GcnsimError) as caught:
        getattr(gcnsim, name)(**given)
    lines = "".join(traceback.format_exception(caught.value)).splitlines()
    assert lines[-1].startswith("gcnsim.core.errors.")
    assert len(lines) < 10


def test_a_sweep_is_shown_in_a_line(tmp_path: Path) -> None:
    axes = {"cluster.host": "P3.8xlarge,g4dn.12xlarge", "cluster.gpus_per_server": "2,4"}
    sweep = gcnsim.sweep(
        axes=axes,
        out=tmp_path / "s",
        interval="none",
        overrides=["run.iterations=2", "cluster.gpus=4", "method.name=bns-gcn"],
        processes=1,
    )
    assert repr(sweep) == f"Sweep('{tmp_path / 's'}': 4 of 4 points; axes cluster.host, cluster.gpus_per_server)"
    rows = sweep.to_arrow().to_pylist()
    assert [(row["cluster.host"], row["device"], row["cluster.gpus_per_server"]) for row in rows] == [
        ("p3.8xlarge", "v100-16", 2),
        ("p3.8xlarge", "v100-16", 4),
        ("g4dn.12xlarge", "t4", 2),
        ("g4dn.12xlarge", "t4", 4),
    ]
    assert [row["bandwidth_bytes_per_s"] for row in rows] == [1.25e9, 1.25e9, 6.25e9, 6.25e9]


def test_two_networks_say_what_the_faster_one_brings_and_have_the_recommended_setting() -> None:
    answer = gcnsim.what_if(
        gpus=4, bandwidth=["1GbE", "100GbE"], method="full-graph", allow="pipegcn", iterations=2, processes=1
    )
    best = answer.told.recommendation
    assert best.networks.startswith("100Gbps instead of 1Gbps takes ")
    assert best.networks.endswith("for pipegcn.")
    assert [(row.method, row.bandwidth_bytes_per_s) for row in best.by_machine] == [("pipegcn", 1.25e8)]
    assert best.networks in " ".join(str(answer).split())
    frame = answer.to_arrow().to_pylist()
    assert {row["bandwidth_bytes_per_s"] for row in frame} == {1.25e8, 1.25e10}
    assert all(row["nic_bytes_per_s"] == row["nic_bytes"] / row["iteration_s"] for row in frame)
    assert len(frame) == 4


def test_rows_of_several_hosts_name_them() -> None:
    answer = gcnsim.what_if(host=["p3.8xlarge", "g4dn.12xlarge"], gpus=4, method="bns-gcn", iterations=2, processes=1)
    assert [(row.host, row.gpus_per_server) for row in answer.rows] == [("p3.8xlarge", 4), ("g4dn.12xlarge", 4)]
    assert [row["host"] for row in answer.results] == ["p3.8xlarge", "g4dn.12xlarge"]
    assert "g4dn.12xlarge" in repr(answer)
    with pytest.raises(ScenarioError, match=r"cluster\.host: unknown host 'h100'"):
        gcnsim.what_if(host="h100")
