"""Networks by name: the generation says which one may be meant, a rate that it does not have says none."""

from __future__ import annotations

import pytest

from gcnsim.core.errors import ScenarioError
from gcnsim.hardware import NETWORK


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("ndr400", "infiniband-ndr"),
        ("hdr200", "infiniband-hdr"),
        ("ib-hdr", "infiniband-hdr"),
        ("EDR", "infiniband-edr"),
    ],
)
def test_a_generation_suggests_its_network(text: str, meant: str) -> None:
    with pytest.raises(ScenarioError, match=f"nor a network; did you mean '{meant}'. known: efa, "):
        NETWORK.read(text, "--bandwidth")


@pytest.mark.parametrize("text", ["HDR100", "ndr200", "FDR"])
def test_another_rate_or_generation_suggests_no_network(text: str) -> None:
    with pytest.raises(ScenarioError, match="nor a network; known: efa, "):
        NETWORK.read(text, "--bandwidth")
