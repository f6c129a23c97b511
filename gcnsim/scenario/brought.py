"""The fields of a cluster that a name brings: a network its kind, a host its GPUs and network, a device its server.

Only fields that a file or an option leaves open are set.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from gcnsim.core.errors import ScenarioError
from gcnsim.core.spellings import known_name
from gcnsim.core.units import BANDWIDTH
from gcnsim.hardware import (
    GENERIC_LINK,
    NETWORK,
    device,
    host,
    hosts,
    is_file,
    kind_of_network,
    known_device,
    network_of,
)

LINK: Final = "link"


def with_brought(cluster: Mapping[str, Any]) -> dict[str, Any]:
    """The section `cluster` as written, plus the fields that its host and its network set.

    Raises ScenarioError for a network of another kind than `link`.
    """
    section = dict(cluster)
    if (network := kind_of_network(section.get("bandwidth"))) is not None:
        given = section.get(LINK)
        if isinstance(given, str) and known_name(given, (network,)) is None:
            raise ScenarioError(
                f"cluster.bandwidth: {section['bandwidth']} is a network of its own kind, cluster.link is {given}; "
                f"allowed: one of them, or cluster.link: {network}"
            )
        section[LINK] = network
    usual = section.get("host") is None and section.get("devices") is None
    if usual and (server := server_of(section.get("device"))) is not None:
        section["host"] = server
    # A bandwidth without a host is one of Ethernet, unless it names a network.
    kept = {"device"} if section.get("devices") is not None else set()
    if usual and section.get("bandwidth") is not None and section.get(LINK) is None:
        section[LINK] = GENERIC_LINK
    for name, value in of_host(section.get("host"), section.get("gpus_per_server")).items():
        if name not in kept and section.get(name) is None:
            section[name] = value
    return section


def server_of(device_name: object) -> str | None:
    """The host that a device is usually sold in; None for none, and for an unknown name. Raises FileError for an
    unusable file."""
    known = known_device(device_name) if isinstance(device_name, str) else None
    return None if known is None else device(known).sold_in


def of_host(name: object, gpus_per_server: object = None) -> dict[str, Any]:
    """The cluster fields that a host of the catalogue or of a file sets, in scenario notation.

    These are GPUs per server, their device, the bandwidth of the NIC and its kind of link. gpus_per_server: how many of
    its GPUs are used, which have the network adapters next to them; None: all. Empty for a host that is not an instance
    type, and for an unknown name. Raises FileError for an unusable file.
    """
    if not isinstance(name, str):
        return {}
    known = name if is_file(name) else known_name(name, hosts())
    if known is None:
        return {}
    own = host(known)
    fields: dict[str, Any] = {} if own.device is None else {"device": own.device}
    if own.gpus is not None:
        fields["gpus_per_server"] = round(own.gpus.value)
    if (rate := network_of(own, gpus_per_server)) is not None:
        fields["bandwidth"] = BANDWIDTH.exact(min(rate, NETWORK.high))
    if own.network is not None:
        fields[LINK] = own.network
    return fields
