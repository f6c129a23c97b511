"""The facts of an emulation travel to the workers through the environment, and nonsense there is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gcnsim.core.errors import ScenarioError
from runtime.emulation import Emulation
from runtime.emulation.spec import NAME

FACTS = Emulation(3, 2, 62.5e6, 58.8e6, 93_750, 1e-4, "netem", "netns", 2, "bbr")


def test_they_come_as_they_went() -> None:
    assert Emulation.here(FACTS.environment()) == FACTS
    unmeasured = Emulation(1, 2, 62.5e6, None, 0, 0.0, "none", "exchange", 2, "bbr")
    assert Emulation.here(unmeasured.environment()) == unmeasured


def test_without_them_nothing_is_emulated() -> None:
    assert Emulation.here({}) is None


def test_workers_are_numbered_host_by_host() -> None:
    assert [FACTS.host_of(rank) for rank in range(6)] == [0, 0, 1, 1, 2, 2]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"limiter": "magic"}, 'limiter is "magic"'),
        ({"latency_by": "hope"}, 'latency_by is "hope", wanted "none" or "netem" or "exchange"'),
        ({"bandwidth": "500Mbps"}, 'bandwidth is "500Mbps", wanted number'),
        ({"hosts": 0}, "hosts is 0"),
        ({"cores": True}, "cores is true"),
        ({"measured": -1.0}, "measured is -1.0"),
        ({"congestion": None}, "congestion is null"),
        ({"more": 1}, "emulation.more is unknown; runtime.emulate sets it"),
    ],
)
def test_nonsense_is_refused(change: dict[str, Any], words: str) -> None:
    with pytest.raises(ScenarioError, match=words) as caught:
        Emulation.here({NAME: json.dumps({**FACTS.asdict(), **change})})
    assert str(caught.value).startswith(NAME)


@pytest.mark.parametrize("text", ["", "{", "[]", "7"])
def test_no_object_is_refused(text: str) -> None:
    with pytest.raises(ScenarioError, match=NAME):
        Emulation.here({NAME: text})
