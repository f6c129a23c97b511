"""A scenario's fields: what a host brings, what replaces what, what is documented."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gcnsim
from gcnsim.core.errors import ScenarioError
from gcnsim.core.units import bandwidth
from gcnsim.evidence.published_systems import ONE_BY_ONE
from gcnsim.hardware import device, host, link
from gcnsim.scenario import SCHEMA, ClusterSpec, from_mapping, load_scenario, of_host, to_mapping
from gcnsim.scenario.load import describe_schema
from gcnsim.scenario.machine import payload_shares, resolve_machine
from gcnsim.scenario.machine_profiles import GIVEN, with_drawn, with_given
from tests.docs.generated import catalogued


def cluster(**fields: Any) -> ClusterSpec:
    return from_mapping({"schema": SCHEMA, "cluster": fields}, "test").cluster


def test_an_instance_type_brings_its_gpus_and_its_network() -> None:
    assert of_host("p3.8xlarge") == {"device": "v100-16", "gpus_per_server": 4, "bandwidth": "10Gbps"}
    assert of_host("p5.48xlarge")["bandwidth"] == "400GB/s"
    assert of_host("generic-16") == of_host(None) == of_host("elsewhere") == {}
    found = cluster(host="P3.8xlarge", gpus=6)
    assert (found.host, found.device, found.servers, found.bandwidth) == (
        "p3.8xlarge",
        "v100-16",
        2,
        bandwidth("10Gbps"),
    )


def test_what_somebody_chose_stands() -> None:
    found = cluster(host="g4dn.12xlarge", gpus=6, gpus_per_server=3, device="l4")
    assert (found.gpus_per_server, found.device, found.bandwidth) == (3, "l4", bandwidth("50Gbps"))
    assert cluster(host="g4dn.12xlarge", devices="l4,t4").devices == ("l4", "t4")


@pytest.mark.parametrize(
    "fields", [{"host": "p4d.24xlarge"}, {"host": "p4d.24xlarge", "gpus_per_server": 2}, {"gpus": 7}]
)
def test_what_was_brought_survives_being_written(fields: dict[str, Any]) -> None:
    scenario = from_mapping({"schema": SCHEMA, "cluster": fields}, "test")
    assert from_mapping(to_mapping(scenario), "test") == scenario


@pytest.mark.parametrize("text", ["10GbE", "10 gbe", "ethernet-10g", "Ethernet 10G", "10Gbps"])
def test_a_network_is_a_bandwidth(text: str) -> None:
    assert cluster(bandwidth=text) == cluster(bandwidth="10Gbps")


def test_another_kind_of_network_brings_its_latency_too() -> None:
    found = cluster(bandwidth="InfiniBand_HDR_200G")
    assert (found.bandwidth, found.link) == (link("infiniband-hdr-200g").bandwidth.value, "infiniband-hdr-200g")
    with pytest.raises(
        ScenarioError, match=r"^cluster\.bandwidth: infiniband-hdr-200g is .* cluster\.link is ethernet"
    ):
        cluster(bandwidth="infiniband-hdr-200g", link="ethernet")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ethernet-40g", "is neither a bandwidth .15Gbps. nor a network; known: efa, ethernet-100g, "),
        ("infiniband-ndrr", "did you mean 'infiniband-ndr'"),
        ("nvlink", "is neither a bandwidth"),
        ("pcie4-x16", "is neither a bandwidth"),
        ("ethernet", "is neither a bandwidth"),
    ],
)
def test_what_is_no_network_is_no_bandwidth(text: str, message: str) -> None:
    with pytest.raises(ScenarioError, match=f"^cluster.bandwidth: '{text}' .*{message}|{message}"):
        cluster(bandwidth=text)


def test_given_figures_replace_those_of_their_profile_alone() -> None:
    spec = ClusterSpec(figures=(("t4.launch_s", 1e-6), ("t4.spmm_efficiency", 0.5)))
    t4 = with_given(device("t4"), spec)
    assert (t4.launch_s.value, t4.spmm_efficiency.value) == (1e-6, 0.5)
    assert (t4.launch_s.source, t4.launch_s.reference) == ("given", GIVEN)
    assert t4.spmm_curve is None
    assert t4.memory == device("t4").memory
    assert with_given(device("h100"), spec) == device("h100")
    assert with_given(link("ethernet"), spec) == link("ethernet")


def test_drawn_figures_are_arrays_of_their_profile_alone() -> None:
    drawn = {"t4.spmm_efficiency": np.array([0.4, 0.6]), "generic-16.sample_edges_per_s": np.array([1e6, 2e6])}
    assert np.array_equal(with_drawn(device("t4"), drawn).spmm_efficiency.value, [0.4, 0.6])
    assert np.array_equal(with_drawn(host("generic-16"), drawn).sample_edges_per_s.value, [1e6, 2e6])
    assert with_drawn(device("h100"), drawn) == device("h100")


def test_an_answer_names_them() -> None:
    answer = gcnsim.what_if(
        gpus=2, method="pipegcn", iterations=2, processes=1, overrides=["cluster.figures=t4.spmm_efficiency=50%"]
    )
    content = answer.payload["provenance"]
    assert content["given_figures"] == "t4.spmm_efficiency 50%"
    assert "given" in content["device"]
    assert "t4.spmm_efficiency" not in {assumption["name"] for assumption in answer.payload["certainty"]["assumptions"]}
    assert answer.payload["scenario"]["cluster"]["figures"] == "t4.spmm_efficiency=50%"
    assert "given_figures" not in gcnsim.what_if(gpus=2, method="pipegcn", iterations=2).payload["provenance"]


FOLDER = Path(__file__).parents[3] / "scenarios"
SHIPPED = sorted(FOLDER.glob("*.yaml"))


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_every_assumption_has_a_range_or_the_other_choice(path: Path) -> None:
    for line in path.read_text().splitlines():
        assert "# assumed" not in line or "(range: " in line or "(or: " in line, line


def test_some_servers_stand_for_all_where_there_are_many() -> None:
    papers = load_scenario(FOLDER / "bns_gcn-ogbn-papers100M.yaml")
    assert papers.partition.parts == 192 > ONE_BY_ONE
    assert papers.cluster.gpus % papers.cluster.gpus_per_server == 0


DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "files.md"


def test_ranges_and_defaults_are_the_documented_ones() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    table = text.split("<!-- generated: scenario fields -->")[1].split("<!-- end -->")[0]
    rows = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("| `")]
    message = {path.strip("`"): (allowed, default.strip("`")) for path, _, allowed, default, _ in rows}
    assert len(message) > 60
    assert {path: (catalogued(allowed), default) for path, _, allowed, default, _ in describe_schema()} == message


def shares_of(**cluster: Any) -> dict[str, float]:
    requested = {"schema": SCHEMA, "cluster": {"gpus": 4, "servers_per_rack": 1} | cluster}
    return payload_shares(resolve_machine(from_mapping(requested, "test").cluster))


def test_every_kind_of_link_has_its_own_share() -> None:
    shares = shares_of(nvlink="300GB/s", host_memory="40GB/s")
    assert shares["nic0.tx"] == shares["rack1.up"]
    # What a server's memory carries in all is stated as it is, and no frames are around it.
    assert [name for name in shares if name.startswith(("dram", "memory", "cpu"))] == []
    assert all(0.0 < share <= 1.0 for share in shares.values())


def test_capacities_are_what_is_offered_times_the_share() -> None:
    requested = {"schema": SCHEMA, "cluster": {"gpus": 4, "nvlink": "300GB/s", "servers_per_rack": 1}}
    spec = from_mapping(requested, "test").cluster
    machine = resolve_machine(spec)
    shares = payload_shares(machine)
    offered = {link.name: link.spec.capacity / shares.get(link.name, 1.0) for link in machine.topology.links}
    assert offered["nic0.tx"] == pytest.approx(spec.bandwidth)
    assert offered["rack1.up"] == pytest.approx(spec.bandwidth)
    assert offered["nvlink2.rx"] == pytest.approx(3e11)
    assert offered["pcie3.down"] == pytest.approx(machine.copies.bandwidth.value)
