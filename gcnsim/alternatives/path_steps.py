"""What the paths between GPUs could be otherwise: direct copies in place of staged ones, NVLink where there is none."""

from __future__ import annotations

from dataclasses import replace

from gcnsim.alternatives.host_options import KnobChange
from gcnsim.machine import resolve_machine
from gcnsim.scenario import DIRECT, STAGED, Scenario
from gcnsim.simulation.limit import Limit


def path_steps(scenario: Scenario) -> list[KnobChange]:
    """Direct copies where rows are staged; else NVLink, where the device is made with it and the servers lack it.

    None on a platform, whose figures are fitted to the paths of its runs.
    """
    cluster = scenario.cluster
    if cluster.gpus == 1 or cluster.platform is not None or "transport" not in scenario.method.uses:
        return []
    machine = resolve_machine(cluster)
    if machine.kind != "gpu":
        return []
    if machine.between.transport == STAGED:
        if cluster.sockets != "free":
            return []
        direct = replace(scenario, cluster=replace(cluster, transport=DIRECT))
        return [KnobChange("transport", STAGED, DIRECT, direct)]
    rates = [each.nvlink for each in machine.devices or (machine.device,)]
    alone = min(cluster.gpus, cluster.gpus_per_server) == 1
    if machine.between.nvlink is not None or alone or not all(rates):
        return []
    rate = min(each.value for each in rates if each is not None)
    moved = replace(scenario, cluster=replace(cluster, nvlink=rate))
    return [KnobChange("NVLink", "none", f"{rate / 1e9:g} GB/s", moved)]


def staging_decides(limit: Limit, scenario: Scenario) -> str | None:
    """That staged copies set the pace, and what follows; None where something else does."""
    machine = resolve_machine(scenario.cluster)
    staged = machine.kind == "gpu" and machine.between.transport == STAGED
    if limit.kind not in ("memory", "pcie") or not staged or "transport" not in scenario.method.uses:
        return None
    what = "gradients" if limit.text.startswith("all-reduce") else "rows"
    return (
        f"{what} are staged, copied whole into host memory and out of it: that costs the time (cluster.transport: "
        "direct moves them from GPU to GPU, as NCCL does)"
    )
