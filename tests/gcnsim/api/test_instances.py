"""What an instance type brings to a question that leaves it open."""

from __future__ import annotations

from dataclasses import replace

import pytest

import gcnsim
from gcnsim.api.instances import Instance, instance
from gcnsim.errors import ScenarioError
from gcnsim.scenario import SCHEMA, ClusterSpec, from_mapping


def test_an_instance_type_brings_its_gpus_and_its_network() -> None:
    assert instance("p3.8xlarge") == Instance("v100-16", "10Gbps", 4)
    assert instance("p5.48xlarge").bandwidth == "3200Gbps"
    assert instance("generic-16") == instance(None) == Instance("t4", "15Gbps", None)


def test_gpus_per_server_are_the_instances_unless_somebody_chose() -> None:
    asked = from_mapping({"schema": SCHEMA, "cluster": {"gpus": 6}}, "test")
    filled = instance("g4dn.12xlarge").filled(asked).cluster
    assert (filled.gpus_per_server, filled.servers, filled.gpus_per_server_explicit) == (4, 2, False)
    chosen = replace(asked, cluster=replace(ClusterSpec(), gpus_per_server=3, gpus_per_server_explicit=True))
    assert instance("g4dn.12xlarge").filled(chosen) == chosen
    assert instance(None).filled(asked) == asked


def test_a_what_if_is_of_the_instance() -> None:
    found = gcnsim.what_if(host="p3.8xlarge", gpus=6, bandwidth="25Gbps", method="pipegcn", iterations=1).base.cluster
    assert (found.host, found.device, found.gpus_per_server, found.bandwidth) == ("p3.8xlarge", "v100-16", 4, 25e9 / 8)


def test_an_unknown_host_is_refused_with_the_nearest() -> None:
    with pytest.raises(ScenarioError, match=r"unknown host 'g4dn\.12xlarg'; did you mean 'g4dn\.12xlarge'"):
        gcnsim.what_if(host="g4dn.12xlarg")
