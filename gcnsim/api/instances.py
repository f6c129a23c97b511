"""What a host of the catalogue brings to a question that leaves device, bandwidth or GPUs per server open."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from gcnsim import hardware
from gcnsim.scenario import ClusterSpec, Scenario

BANDWIDTH_ELSE: Final = "15Gbps"


@dataclass(frozen=True, slots=True)
class Instance:
    """device, bandwidth: of the host, else those of no host in particular. gpus: in one server; None: not its own."""

    device: str = ClusterSpec().device
    bandwidth: str = BANDWIDTH_ELSE
    gpus: int | None = None

    def filled(self, scenario: Scenario) -> Scenario:
        """The scenario with as many GPUs in a server as the host has, where nobody chose; the last may hold fewer."""
        if self.gpus is None or scenario.cluster.gpus_per_server_explicit:
            return scenario
        return replace(scenario, cluster=replace(scenario.cluster, gpus_per_server=self.gpus))


def instance(host: str | None) -> Instance:
    """What the host has of its own; without one, what is usual. Raises ScenarioError for an unknown name."""
    if host is None:
        return Instance()
    found = hardware.host(host)
    return Instance(
        device=found.device or Instance().device,
        bandwidth=BANDWIDTH_ELSE if found.nic is None else f"{found.nic.value * 8 / 1e9:g}Gbps",
        gpus=None if found.gpus is None else round(found.gpus.value),
    )
