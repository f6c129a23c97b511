"""What a name brings to fields that a question leaves open: an instance type its GPUs and NIC, a network its kind.

Applied to the fields of a file or an option before defaults fill in the others, so that given values stay.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from gcnsim.errors import ScenarioError
from gcnsim.hardware import NETWORK, host, hosts, is_file, kind_of_network
from gcnsim.known_names import known_name
from gcnsim.units import BANDWIDTH

LINK: Final = "link"


def with_brought(cluster: Mapping[str, Any]) -> dict[str, Any]:
    """The section `cluster` as it was written, with what its host and its network have of their own.

    Raises ScenarioError for a network of another kind than `link`.
    """
    found = dict(cluster)
    if (network := kind_of_network(found.get("bandwidth"))) is not None:
        given = found.get(LINK)
        if isinstance(given, str) and known_name(given, (network,)) is None:
            raise ScenarioError(
                f"cluster.bandwidth: {found['bandwidth']} is a network of its own kind, cluster.link is {given}; "
                f"allowed: one of them, or cluster.link: {network}"
            )
        found[LINK] = network
    for name, value in of_host(found.get("host")).items():
        if name == "device" and found.get("devices") is not None:
            continue
        if found.get(name) is None:
            found[name] = value
    return found


def of_host(name: object) -> dict[str, Any]:
    """The fields of a cluster that a host of the catalogue, or of a file, has of its own, as a scenario writes them:
    GPUs in a server, their device, the bandwidth of the NIC and its kind of link; none of a host that is no instance
    type, and of an unknown name. Raises FileError for a file that cannot be used."""
    if not isinstance(name, str):
        return {}
    known = name if is_file(name) else known_name(name, hosts())
    if known is None:
        return {}
    own = host(known)
    fields: dict[str, Any] = {} if own.device is None else {"device": own.device}
    if own.gpus is not None:
        fields["gpus_per_server"] = round(own.gpus.value)
    if own.nic is not None:
        fields["bandwidth"] = BANDWIDTH.exact(min(own.nic.value, NETWORK.high))
    if own.network is not None:
        fields[LINK] = own.network
    return fields
