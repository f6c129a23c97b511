"""A scenario file as the base of a what-if."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import gcnsim
from gcnsim.api.question import read_base, settings
from gcnsim.cli import main
from gcnsim.core.errors import ScenarioError
from gcnsim.core.units import bandwidth
from gcnsim.methods import COMPARED
from gcnsim.scenario import SCHEMA, load_scenario

FILE: dict[str, Any] = {
    "schema": SCHEMA,
    "cluster": {"gpus": 2, "device": "T4", "bandwidth": "25GbE"},
    "workload": {"dataset": "yelp"},
    "method": {"name": "PSC-GCN", "tau": 1, "epsilon": "20%", "cache": 0.3},
    "run": {"iterations": 3},
}


def test_its_fields_stand_where_no_option_is_given() -> None:
    rows = settings(scenario=FILE)
    assert [row.method.name for row in rows] == list(COMPARED)
    assert {(row.cluster.gpus, row.cluster.bandwidth, row.run.iterations) for row in rows} == {(2, 3.125e9, 3)}
    mine = rows[-1].method
    assert (mine.tau, mine.epsilon, mine.cache.fraction) == (1, 0.2, 0.3)


def test_a_method_that_is_not_compared_by_default_has_a_row_with_its_knobs() -> None:
    rows = settings(scenario=FILE | {"method": {"name": "sancus", "threshold": 3}})
    assert [row.method.name for row in rows] == [*COMPARED, "sancus"]
    assert rows[-1].method.values()["threshold"] == 3
    assert next(row for row in rows if row.method.name == "psc-gcn").method.epsilon == 0.1, "it has no epsilon"


def test_an_option_goes_before_its_field_and_a_note_says_so() -> None:
    lines: list[str] = []
    rows = settings(scenario=FILE, gpus=[2, 4], device="t4", bandwidth="10GbE", notice=lines.append)
    assert {(row.cluster.gpus, row.cluster.bandwidth) for row in rows} == {(2, 1.25e9), (4, 1.25e9)}
    assert lines == ["--bandwidth 10GbE replaces cluster.bandwidth: 25GbE of the scenario"]
    settings(scenario=FILE, host="p3.8xlarge", notice=lines.append)
    assert lines[1:] == [
        "--host p3.8xlarge replaces cluster.device: T4 of the scenario",
        "--host p3.8xlarge replaces cluster.bandwidth: 25GbE of the scenario",
    ]


def test_sizes_replace_a_data_set_and_a_data_set_sizes() -> None:
    lines: list[str] = []
    (row, *_) = settings(scenario=FILE, sizes={"nodes": "3M", "edges": "9M", "train": 0.5}, notice=lines.append)
    assert (row.workload.dataset, row.workload.nodes, row.workload.edges) == (None, 3_000_000, 9_000_000)
    assert row.workload.train_fraction == 0.5
    assert lines == ["--nodes 3M replaces workload.dataset: yelp of the scenario"]
    sized = FILE | {"workload": {"nodes": "3M", "edges": "9M"}}
    (row, *_) = settings(scenario=sized, sizes={"edges": "12M"})
    assert (row.workload.nodes, row.workload.edges) == (3_000_000, 12_000_000)
    (row, *_) = settings(scenario=sized, dataset="orkut")
    assert (row.workload.dataset, row.workload.nodes, row.workload.edges) == ("orkut", None, None)
    with pytest.raises(ScenarioError, match="sizes: unknown 'node'; did you mean 'nodes'"):
        settings(sizes={"node": 3})


@pytest.mark.parametrize(
    ("scenario", "message"),
    [
        ({"cluster": {}}, "schema is missing; write schema: gcnsim.scenario/1"),
        (FILE | {"cluster": [1]}, "cluster: a list is not a section"),
        (FILE | {"clutser": {}}, "clutser: unknown key; did you mean 'cluster'"),
        (FILE | {"cluster": {"gpu": 2}}, "cluster.gpu: unknown key; did you mean 'gpus'"),
    ],
)
def test_what_is_no_scenario_is_refused(scenario: dict[str, Any], message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        gcnsim.what_if(scenario)


def test_the_command_takes_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(f"schema: {SCHEMA}\ncluster: {{gpus: 2, device: h100, bandwidth: 25GbE}}\nrun: {{iterations: 2}}\n")
    assert main(["what-if", str(file), "--method", "full-graph", "--gpus", "16"]) == 0
    printed = capsys.readouterr()
    assert "16 x H100" in printed.out
    assert "25 Gbit/s" in printed.out
    assert printed.err == "note: --gpus 16 replaces cluster.gpus: 2 of the scenario\n"
    assert main(["what-if", str(file), "--csv", str(file)]) == 2
    assert "is read by this command" in capsys.readouterr().err


def test_hosts_and_gpus_of_a_server_have_a_row_each() -> None:
    rows = settings(host=["P4d.24xlarge", "g6e.12xlarge"], gpus=8, method="full-graph")
    assert [(row.cluster.host, row.cluster.device, row.cluster.servers) for row in rows] == [
        ("p4d.24xlarge", "a100-40", 1),
        ("g6e.12xlarge", "l40s", 2),
    ]
    assert [row.cluster.bandwidth for row in rows] == [bandwidth("400Gbps"), bandwidth("100Gbps")]
    rows = settings(gpus=[4, 8], gpus_per_server=[1, 4], method="full-graph")
    assert [(row.cluster.gpus_per_server, row.cluster.gpus) for row in rows] == [(1, 4), (1, 8), (4, 4), (4, 8)]
    one = settings(host=["p4d.24xlarge", "g6e.12xlarge"], gpus=8, bandwidth="10GbE", method="full-graph")
    assert {item.cluster.bandwidth for item in one} == {1.25e9}


@pytest.mark.parametrize("epsilon", ["10%", 0.1, "0.1"])
def test_a_share_is_a_number_or_a_percentage(epsilon: Any) -> None:
    (row,) = settings(method="PSC_GCN", epsilon=epsilon, cache=0.3)
    assert (row.method.epsilon, row.method.cache.fraction) == (0.1, 0.3)


def test_networks_of_different_kinds_are_no_rows_of_one_question() -> None:
    with pytest.raises(ScenarioError, match="15Gbps and infiniband-hdr-200g are networks of different kinds"):
        settings(bandwidth=["15Gbps", "infiniband-hdr-200g"])
    assert {setting.cluster.bandwidth for setting in settings(bandwidth=["10GbE", "ethernet-10g", "10Gbps"])} == {
        1.25e9
    }


@pytest.mark.parametrize("text", ["", "# nothing yet\n", "\n\n"])
def test_an_empty_file_is_called_empty(tmp_path: Path, text: str) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(text)
    with pytest.raises(ScenarioError) as caught:
        read_base(path)
    assert str(caught.value) == f"{path}: is empty, not a scenario; it starts with schema: gcnsim.scenario/1"
    with pytest.raises(ScenarioError, match=r"s\.yaml: is empty, not a scenario"):
        load_scenario(path)
