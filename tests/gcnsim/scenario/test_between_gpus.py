"""What rows pass between GPUs: NVLink is the host's, the transport the software's."""

from __future__ import annotations

from typing import Any

import pytest

from gcnsim.scenario import ClusterSpec, from_mapping, to_mapping
from gcnsim.scenario.machine import resolve_machine
from gcnsim.scenario.machine_profiles import NVLINK_THERE, TRANSPORT, BetweenGpus


def between(**cluster: Any) -> BetweenGpus:
    return resolve_machine(ClusterSpec(**({"gpus": 8, "gpus_per_server": 8} | cluster))).between


def rate(found: BetweenGpus) -> float | None:
    return None if found.nvlink is None else found.nvlink.value


@pytest.mark.parametrize(
    ("host", "device", "expected"),
    [
        ("p4d.24xlarge", "a100-40", 300e9),
        ("a2-highgpu-8g", "a100-40", 300e9),
        ("p5.48xlarge", "h100", 450e9),
        ("g6e.12xlarge", "l40s", None),
        # A module in an instance without NVLink has none; one in a slower instance has the instance's.
        ("g5.48xlarge", "a100-40", None),
        ("p4d.24xlarge", "h100", 300e9),
    ],
)
def test_an_instance_has_the_nvlink_that_the_catalogue_says(host: str, device: str, expected: float | None) -> None:
    between_gpus = between(host=host, device=device)
    assert rate(between_gpus) == expected
    assert NVLINK_THERE not in between_gpus.open


def test_a_server_of_no_instance_has_that_of_its_device_which_is_an_assumption() -> None:
    between_gpus = between(device="h100")
    assert rate(between_gpus) == 450e9
    assert NVLINK_THERE in between_gpus.open
    assert rate(between(device="rtx-4090")) is None
    assert rate(between(device="h100", gpus_per_server=1)) is None


def test_a_rate_that_is_asked_for_goes_before_the_host_and_none_takes_it_away() -> None:
    assert rate(between(host="p4d.24xlarge", device="a100-40", nvlink=1e11)) == 1e11
    for nvlink in (1e11, 0.0):
        assert NVLINK_THERE not in between(device="a100-40", nvlink=nvlink).open
    assert rate(between(device="a100-40", nvlink=0.0)) is None


def test_of_unequal_servers_the_slowest_counts() -> None:
    assert rate(between(gpus=4, gpus_per_server=2, devices=("h100", "a100-40"))) == 300e9
    assert rate(between(gpus=4, gpus_per_server=2, devices=("h100", "t4"))) is None


@pytest.mark.parametrize(
    ("cluster", "transport", "assumed"),
    [
        ({}, "direct", True),
        ({"gpus": 1, "gpus_per_server": 1}, "direct", False),
        ({"transport": "staged"}, "staged", False),
        ({"transport": "direct"}, "direct", False),
        ({"gpudirect": True}, "direct", False),
        ({"sockets": "cores"}, "staged", False),
        ({"implementation": "released"}, "staged", False),
        ({"platform": "psc-gcn-t4"}, "staged", False),
        ({"device": "cpu-core"}, "staged", False),
    ],
)
def test_transport_is_direct_on_gpus_unless_something_says_staged(
    cluster: dict[str, Any], transport: str, assumed: bool
) -> None:
    between_gpus = between(**cluster)
    assert between_gpus.transport == transport
    assert (TRANSPORT in between_gpus.open) == assumed


def test_staged_software_leaves_nvlink_alone_unless_its_rate_is_asked_for() -> None:
    assert rate(between(host="p4d.24xlarge", device="a100-40", transport="staged")) is None
    assert rate(between(host="p4d.24xlarge", device="a100-40", transport="staged", nvlink=3e11)) == 3e11


def test_gpudirect_is_the_hosts_where_copies_are_direct() -> None:
    assert between(host="p4d.24xlarge", device="a100-40").gpudirect
    assert not between(host="p4d.24xlarge", device="a100-40", transport="staged").gpudirect
    assert not between(host="p4d.24xlarge", device="a100-40", gpudirect=False).gpudirect
    assert not between(host="g5.48xlarge", device="a10g").gpudirect


def test_without_peer_to_peer_direct_copies_pass_host_memory() -> None:
    for device, passes in (("rtx-4090", True), ("l40s", False)):
        spec = ClusterSpec(gpus=2, gpus_per_server=2, device=device, transport="direct", host_memory=4e10)
        cluster = resolve_machine(spec).topology
        names = [cluster.links[link].name for link in cluster.direct(0, 1) or ()]
        assert ("dram0" in names) == passes, names


@pytest.mark.parametrize("nvlink", ["none", "300GB/s", None])
def test_what_is_written_is_read_again(nvlink: str | None) -> None:
    requested = {"schema": "gcnsim.scenario/1", "cluster": {"gpus": 4, "device": "a100-40", "nvlink": nvlink}}
    scenario = from_mapping(requested, "test")
    assert from_mapping(to_mapping(scenario), "again") == scenario
