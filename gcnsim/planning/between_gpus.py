"""What an answer says of the paths between GPUs: a few words for its heading, and where they come from."""

from __future__ import annotations

from collections.abc import Sequence

from gcnsim.machine import NVLINK_THERE, TRANSPORT, BetweenGpus, resolve_machine
from gcnsim.scenario import Scenario

ASSUMED = " (assumed)"


def heading_words(asked: Sequence[Scenario]) -> str | None:
    """NVLink and transport, as far as all of `asked` share them: `NVLink 300 GB/s, transport direct (assumed)`; None
    where nothing passes between GPUs."""
    found = _distinct(asked)
    if not found:
        return None
    parts = []
    if len({each.nvlink and each.nvlink.value for each in found}) == 1 and found[0].nvlink is not None:
        assumed = NVLINK_THERE in found[0].open
        sizes = {each.cluster.nvlink_gpus for each in asked}
        joined = f" within {sizes.pop()} GPUs" if len(sizes) == 1 and None not in sizes else ""
        parts.append(f"NVLink {found[0].nvlink.value / 1e9:g} GB/s{joined}{ASSUMED if assumed else ''}")
    transports = {(each.transport, TRANSPORT in each.open) for each in found}
    if len(transports) == 1:
        (name, assumed), *_ = transports
        parts.append(f"transport {name}{ASSUMED if assumed else ''}")
    return ", ".join(parts) or None


def basis_words(scenario: Scenario) -> str | None:
    """Where the paths between GPUs of the scenario's machine come from; None where nothing passes between GPUs."""
    found = _distinct([scenario])
    if not found:
        return None
    between, machine = found[0], resolve_machine(scenario.cluster)
    how = f"transport {between.transport}: {between.why}"
    if TRANSPORT in between.open:
        how += " (assumed: --transport chooses)"
    if min(scenario.cluster.gpus, scenario.cluster.gpus_per_server) == 1:
        return how
    if between.nvlink is None:
        used = between.direct and not between.peer_to_peer
        inside = "PCIe, through host memory: its driver has no peer to peer" if used else "PCIe"
        return f"{how}; within a server {inside}"
    rate = f"{between.nvlink.value / 1e9:g} GB/s per direction of one GPU"
    if between.nvlink.source == "given":
        size = scenario.cluster.nvlink_gpus
        joined = "" if size is None else f", within {size} GPUs each, PCIe between others"
        return f"{how}; NVLink, {rate}, as asked{joined}"
    name = "NVLink" if between.generation is None else f"NVLink {between.generation}"
    whose = machine.host.name if machine.host.device is not None else f"{machine.device.name} as a module (assumed)"
    return f"{how}; {name} of {whose}, {rate} ({between.nvlink.reference}, {between.nvlink.date})"


def _distinct(asked: Sequence[Scenario]) -> list[BetweenGpus]:
    """The paths of those scenarios whose GPUs send anything over them."""
    sending = [each for each in asked if each.cluster.gpus > 1 and "transport" in each.method.uses]
    machines = [resolve_machine(cluster) for cluster in dict.fromkeys(each.cluster for each in sending)]
    return [machine.between for machine in machines if machine.kind == "gpu"]
