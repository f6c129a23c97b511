"""A field with a name for each server."""

from __future__ import annotations

from typing import Any

import pytest

from gcnsim.core.errors import ScenarioError
from gcnsim.hardware import links_between, links_within
from gcnsim.scenario.catalogue_fields import LINK, PCIE, Words

NAMES = Words("device", lambda: ("t4", "h100"), own=lambda text: text.endswith(".yaml"))


def test_names_of_every_server() -> None:
    assert NAMES.read("t4, h100", "p") == NAMES.read(["t4", "h100"], "p") == ("t4", "h100")
    assert NAMES.read("mine.yaml,t4", "p") == ("mine.yaml", "t4")
    assert NAMES.write(("t4", "h100")) == "t4,h100"
    assert NAMES.allowed == "names separated by commas, the last for all further servers: h100, t4, or files (.yaml)"
    assert Words("device", lambda: ("t4",)).allowed.endswith("servers: t4")


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ("h200", "p: unknown device 'h200'; known: h100, t4"),
        ("t4,", "p: unknown device ''"),
        ([3], "p: unknown device 3"),
        ([], "p: nothing is named"),
        (7, "p: 7 is not allowed; names separated by commas"),
    ],
)
def test_what_names_nothing(raw: Any, message: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        NAMES.read(raw, "p")
    assert message in str(caught.value)
    with pytest.raises(ScenarioError, match="is not allowed"):
        NAMES.check("t4", "p")


@pytest.mark.parametrize("rate", ["32GB/s", "256 Gbit/s", "16gb/s", "100Mbps"])
def test_a_rate_in_the_place_of_a_link_is_told_how_it_is_set(rate: str) -> None:
    needed = f"'{rate}' is a rate, the name of a link is needed"
    for field, path, names, way in (
        (PCIE, "cluster.pcie", links_within(), "cluster.figures=NAME.bandwidth"),
        (LINK, "cluster.link", links_between(), "cluster.bandwidth"),
    ):
        with pytest.raises(ScenarioError) as caught:
            field.read(rate, path)
        assert (
            str(caught.value) == f"{path}: {needed}: {', '.join(sorted(names))}; a rate is set with --set {way}={rate}"
        )


def test_a_link_is_between_servers_or_within_them() -> None:
    with pytest.raises(ScenarioError, match=r"^cluster\.pcie: unknown link within servers 'ethernet-10g'; known: host"):
        PCIE.read("ethernet-10g", "cluster.pcie")
    with pytest.raises(ScenarioError, match=r"^cluster\.link: unknown link between servers 'pcie4-x16'; known: efa"):
        LINK.read("pcie4-x16", "cluster.link")
