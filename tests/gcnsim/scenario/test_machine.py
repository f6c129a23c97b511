"""From a scenario's cluster to links, by the catalogue's figures."""

from __future__ import annotations

from pathlib import Path

import pytest

from gcnsim.core.errors import ScenarioError
from gcnsim.hardware import device, host, link, platform
from gcnsim.records.calibration import write_calibration
from gcnsim.scenario import ClusterSpec
from gcnsim.scenario.machine import (
    FAR_GPUS,
    FAR_LAW_ERROR,
    LAW_ERROR,
    MEASURED_LEFT_OUT,
    SCHEDULE_ERROR,
    resolve_machine,
)
from tests.gcnsim.evidence.made_calibration import of_gpu

SPEC = ClusterSpec(gpus=3, gpus_per_server=2, bandwidth=1e9)


def test_ranks_and_servers() -> None:
    machine = resolve_machine(SPEC)
    assert machine.topology.server_of == (0, 0, 1)
    assert (machine.device.name, machine.host.name) == (SPEC.device, SPEC.host)


def test_the_nic_offers_the_scenarios_bandwidth_less_framing() -> None:
    cluster = resolve_machine(SPEC).topology
    (send, _) = cluster.between(0, 2)
    assert cluster.links[send].spec.capacity == pytest.approx(1e9 * link(SPEC.link).efficiency.value)


def test_a_message_costs_cpu_time_at_both_ends() -> None:
    message = host(SPEC.host).message_s.value
    default, cluster = (
        resolve_machine(ClusterSpec(gpus=2, gpus_per_server=1, latency=latency)).topology for latency in (None, 0.25)
    )
    assert cluster.latency(cluster.between(0, 1)) == pytest.approx(0.25 + 2 * message)
    assert default.latency(default.between(0, 1)) == pytest.approx(link(SPEC.link).latency_s.value + 2 * message)


def test_equal_clusters_are_one_machine_with_one_topology() -> None:
    one, other = (resolve_machine(ClusterSpec(gpus=5, gpus_per_server=2)) for _ in range(2))
    assert one is other
    assert one.topology is other.topology
    assert resolve_machine(ClusterSpec(gpus=6)) is not one


def test_each_worker_has_its_servers_device_link_and_memory() -> None:
    machine = resolve_machine(ClusterSpec(gpus=5, gpus_per_server=2, devices=("t4", "a100-40")))
    assert [machine.device_of(rank).name for rank in range(5)] == ["t4", "t4", *["a100-40"] * 3]
    assert [machine.copies_of(rank).name for rank in range(5)] == ["pcie3-x16", "pcie3-x16", *["pcie4-x16"] * 3]
    assert machine.capacities == tuple(device(name).memory.value for name in ("t4", "t4", *["a100-40"] * 3))
    named = resolve_machine(ClusterSpec(gpus=4, gpus_per_server=2, devices=("t4", "a100-40"), pcie="pcie5-x16"))
    assert {named.copies_of(rank).name for rank in range(4)} == {"pcie5-x16"}


def test_alike_gpus_hold_alike_and_cores_share_their_hosts_memory() -> None:
    assert resolve_machine(ClusterSpec(gpus=3)).capacities == (device("t4").memory.value,) * 3
    cores = resolve_machine(ClusterSpec(gpus=3, device="cpu-core"))
    assert (cores.kind, cores.capacities) == ("cpu", None)


def test_a_platform_adds_its_error_and_what_it_leaves_unexplained() -> None:
    known = platform("psc-gcn-t4")
    machine = resolve_machine(ClusterSpec(device="t4", platform="psc-gcn-t4"))
    assert machine.platform is known
    assert (machine.error, machine.unexplained_s) == (known.error.value, known.unexplained_s.value)
    assert machine.rate_beside_copies == known.rate_beside_copies.value


def test_paths_and_platforms_are_refused_when_they_are_asked_for() -> None:
    machine = resolve_machine(ClusterSpec(device="cpu-core", nvlink=3e11, platform="psc-gcn-t4"))
    with pytest.raises(ScenarioError, match=r"cpu-core has no nvlink"):
        machine.topology  # noqa: B018
    with pytest.raises(ScenarioError, match=r"psc-gcn-t4 is for t4, cluster\.device is cpu-core"):
        machine.platform  # noqa: B018


def test_the_schedule_of_several_gpus_has_an_error_of_its_own(tmp_path: Path) -> None:
    assert resolve_machine(ClusterSpec(gpus=4)).law_error(attends=False) == LAW_ERROR > SCHEDULE_ERROR > 0
    assert resolve_machine(ClusterSpec(gpus=4)).law_error(attends=True) == FAR_LAW_ERROR > LAW_ERROR
    assert resolve_machine(ClusterSpec(gpus=FAR_GPUS)).law_error(attends=False) == LAW_ERROR
    assert resolve_machine(ClusterSpec(gpus=FAR_GPUS + 1)).law_error(attends=False) == FAR_LAW_ERROR
    assert resolve_machine(ClusterSpec(gpus=4, device="cpu-core")).law_error(attends=True) == MEASURED_LEFT_OUT
    assert resolve_machine(ClusterSpec(gpus=1, device="cpu-core")).law_error(attends=True) == 0
    without_runs = str(tmp_path / "c.json")
    write_calibration(without_runs, of_gpu())
    for gpus in (1, 4):
        calibrated = resolve_machine(ClusterSpec(gpus=gpus, calibration=without_runs))
        assert calibrated.law_error(attends=False) == LAW_ERROR, "it knows no error of its own"
    fitted = resolve_machine(ClusterSpec(gpus=4, platform="psc-gcn-t4"))
    assert fitted.law_error(attends=False) == 0 < fitted.error
