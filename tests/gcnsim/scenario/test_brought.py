"""What a host and a network bring to a question that leaves it open."""

from __future__ import annotations

from typing import Any

import pytest

import gcnsim
from gcnsim.core.errors import ScenarioError
from gcnsim.core.units import bandwidth
from gcnsim.hardware import link
from gcnsim.scenario import SCHEMA, ClusterSpec, from_mapping, of_host, to_mapping


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


def test_a_what_if_is_of_the_instance() -> None:
    found = gcnsim.what_if(host="p3.8xlarge", gpus=6, bandwidth="25GbE", method="pipegcn", iterations=1).base.cluster
    assert (found.host, found.device, found.gpus_per_server, found.bandwidth) == ("p3.8xlarge", "v100-16", 4, 25e9 / 8)


def test_an_unknown_host_is_refused_with_the_nearest() -> None:
    with pytest.raises(ScenarioError, match=r"unknown host 'g4dn\.12xlarg'; did you mean 'g4dn\.12xlarge'"):
        gcnsim.what_if(host="g4dn.12xlarg")
