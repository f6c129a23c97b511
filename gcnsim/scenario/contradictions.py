"""Fields of a cluster that contradict each other are refused where both are given.

Only what somebody wrote counts: a default says nothing, so this is asked of the fields of a file or an option, before
defaults fill in the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gcnsim.errors import ScenarioError


def refuse_contradictions(given: Mapping[str, Any]) -> None:
    """Raises ScenarioError where two fields of `cluster` cannot both hold. given: by name, those that were written."""
    devices, one = given.get("devices"), given.get("device")
    if devices is not None and one is not None and one != devices[0]:
        raise ScenarioError(
            f"cluster.device: {one} is not the first of cluster.devices ({','.join(devices)}), which name the device "
            f"of every server; allowed with them: {devices[0]}, or none"
        )
    if given.get("gpudirect") and given.get("transport") == "staged":
        raise ScenarioError(
            "cluster.transport: staged is not allowed with cluster.gpudirect: true, which passes host memory by; "
            "allowed: direct, or none"
        )
