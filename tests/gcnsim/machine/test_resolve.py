"""From a scenario's cluster to links, by the catalogue's figures."""

from __future__ import annotations

import pytest

from gcnsim.errors import ScenarioError
from gcnsim.machine import machine
from gcnsim.profile import host, link
from gcnsim.scenario import ClusterSpec

SPEC = ClusterSpec(gpus=3, gpus_per_server=2, bandwidth=1e9)


def test_ranks_and_servers() -> None:
    cluster, device, server = machine(SPEC)
    assert cluster.server_of == (0, 0, 1)
    assert (device.name, server.name) == (SPEC.device, SPEC.host)


def test_the_nic_offers_the_scenarios_bandwidth_less_framing() -> None:
    cluster, _, _ = machine(SPEC)
    (send, _) = cluster.between(0, 2)
    assert cluster.links[send].spec.capacity == pytest.approx(1e9 * link(SPEC.link).efficiency.value)


def test_a_message_costs_cpu_time_at_both_ends() -> None:
    message = host(SPEC.host).message_s.value
    default, given = (machine(ClusterSpec(gpus=2, gpus_per_server=1, latency=latency))[0] for latency in (None, 0.25))
    assert given.latency(given.between(0, 1)) == pytest.approx(0.25 + 2 * message)
    assert default.latency(default.between(0, 1)) == pytest.approx(link(SPEC.link).latency_s.value + 2 * message)


def test_pcie_is_the_devices_unless_the_scenario_names_one() -> None:
    for spec, name in ((ClusterSpec(device="t4"), "pcie3-x16"), (ClusterSpec(pcie="pcie5-x16"), "pcie5-x16")):
        cluster, _, _ = machine(spec)
        profile = link(name)
        (up,) = cluster.to_host(0)
        assert cluster.links[up].spec.capacity == pytest.approx(profile.bandwidth.value * profile.efficiency.value)


def test_cores_are_the_hosts() -> None:
    cluster, _, server = machine(SPEC)
    (cores,) = cluster.cores(0)
    assert cluster.links[cores].spec.capacity == server.cores.value


def test_an_unknown_device_is_refused() -> None:
    with pytest.raises(ScenarioError, match="t5"):
        machine(ClusterSpec(device="t5"))
