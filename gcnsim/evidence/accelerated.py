"""Runs whose workers wait as long as a GPU would take: what their scenario has besides."""

from __future__ import annotations

from typing import Any

from gcnsim.errors import ScenarioError
from gcnsim.hardware import device, figures_of
from gcnsim.runs.recorded_run import RecordedRun
from gcnsim.units import BANDWIDTH, FRACTION, NBYTES, SECONDS

NETWORK, LOCAL = "ethernet", "host-memory"


def accelerated_cluster(run: RecordedRun) -> dict[str, Any]:
    """Fields of `cluster` that a run's accelerator says: hosts, PCIe switches, what the network was measured at.

    Nothing where workers computed. Raises ScenarioError where the device has other figures now than in the run.
    """
    accelerator, emulation = run.accelerator, run.emulation
    if accelerator is None or emulation is None:
        return {}
    _refuse_changed(run, accelerator)
    figures: dict[str, Any] = {}
    if emulation["measured"]:
        figures[f"{NETWORK}.efficiency"] = FRACTION.exact(min(emulation["measured"] / emulation["bandwidth"], 1.0))
    if accelerator.get("queue"):
        figures[f"{NETWORK}.queue"] = NBYTES.exact(accelerator["queue"])
    message_s = accelerator.get("message_s") or 0.0
    figures[f"{accelerator['host']}.message_s"] = SECONDS.exact(message_s)
    if accelerator.get("local_latency_s") is not None:
        figures[f"{LOCAL}.latency_s"] = SECONDS.exact(accelerator["local_latency_s"])
    # Waits stand for sums whose rows all come from memory, and for copies at the rate of PCIe.
    figures[f"{accelerator['name']}.l2_cache"] = "1B"
    figures[f"{accelerator['host']}.staging_bandwidth"] = "1000GB/s"
    found: dict[str, Any] = {"host": accelerator["host"], "figures": figures}
    if accelerator.get("latency_s") is not None:
        # Of a small message, from the call at one end to that at the other.
        found["latency"] = SECONDS.exact(max(accelerator["latency_s"] - 2 * message_s, 0.0))
    if accelerator.get("gpus_per_switch"):
        found |= {"pcie_sharing": "switch", "gpus_per_switch": accelerator["gpus_per_switch"]}
    return found


def accelerated_faults(run: RecordedRun) -> list[dict[str, Any]]:
    """The slow worker and the traffic of others that a run was given, as a scenario's faults."""
    accelerator = run.accelerator or {}
    found: list[dict[str, Any]] = []
    if accelerator.get("slow_worker") is not None:
        found.append({"kind": "slow-gpu", "worker": accelerator["slow_worker"], "factor": accelerator["slow_factor"]})
    if accelerator.get("background"):
        rate = BANDWIDTH.exact(accelerator["background"])
        found += [{"kind": "background", "link": link, "rate": rate} for link in ("nic0.tx", "nic1.rx")]
    return found


def _refuse_changed(run: RecordedRun, accelerator: Any) -> None:
    found = {name: figure.value for name, figure in figures_of(device(accelerator["name"])).items()}
    for name, value in (accelerator.get("figures") or {}).items():
        if found.get(name) != value:
            raise ScenarioError(
                f"{run.path}: waits are by {accelerator['name']}.{name} {value:g}, which is {found.get(name)} here; "
                "allowed: the figures that the run was made with"
            )
