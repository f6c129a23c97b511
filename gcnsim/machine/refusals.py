"""What of a cluster no schedule of a question would use is refused: it would not change the answer."""

from __future__ import annotations

from collections.abc import Sequence

from gcnsim.cluster import RING
from gcnsim.errors import ScenarioError, plural
from gcnsim.methods import Method, named
from gcnsim.scenario import DIRECT, LEAN, ClusterSpec


def refuse_no_effect(clusters: Sequence[ClusterSpec]) -> None:
    """Raises ScenarioError for racks that hold all servers of every one of `clusters`: nothing passes their uplinks."""
    largest = max(clusters, key=lambda each: each.servers)
    held = largest.servers_per_rack
    if held is not None and held >= largest.servers:
        allowed = "null" if largest.servers == 1 else f"less than {largest.servers}, or null"
        raise ScenarioError(
            f"cluster.servers_per_rack: {held} is all of {plural(largest.servers, 'server')}, so nothing passes the "
            f"rack's uplink; allowed: {allowed}"
        )


def refuse_unused(spec: ClusterSpec, method: Method) -> None:
    """Raises ScenarioError for a path, a device or an order of transfers that the method's schedule does not have."""
    asked = {
        "devices": spec.devices is not None,
        "transfers": spec.transfers != "concurrent",
        "payload": spec.payload != "fp32",
        "sockets": spec.sockets != "free",
        "rate_beside_copies": spec.rate_beside_copies is not None,
        "sampler_device": spec.sampler_device is not None,
        "sampler_threads": spec.sampler_threads is not None,
        "features": spec.features is not None,
        "implementation": spec.implementation != LEAN,
        "nvlink": bool(spec.nvlink),
        "transport": spec.transport == DIRECT,
        "gpudirect": bool(spec.gpudirect),
        "allreduce": spec.allreduce != RING,
    }
    for name, given in asked.items():
        if given and name not in method.uses:
            having = ", ".join(_using(name))
            raise ScenarioError(f"cluster.{name}: not modelled with {method.name}; methods with it: {having}")


def _using(option: str) -> list[str]:
    return named(lambda kind: option in kind.uses)
