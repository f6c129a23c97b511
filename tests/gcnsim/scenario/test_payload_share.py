"""Payload over raw bandwidth, link by link, as the catalogue states it."""

from __future__ import annotations

from typing import Any

import pytest

from gcnsim.scenario import SCHEMA, from_mapping
from gcnsim.scenario.machine import payload_shares, resolve_machine


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
