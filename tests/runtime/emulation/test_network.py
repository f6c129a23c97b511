"""Namespaces with shaped links: as fast as asked, gone afterwards, and never anybody else's."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from runtime.emulation import network as module
from runtime.emulation.network import NetworkError, burst, clean, network, reshape
from runtime.emulation.spec import PAYLOAD_SHARE
from runtime.emulation.throughput import measure
from tests.runtime.emulation.places import namespaces, needs_namespaces

TRIES = 5
"""Other work on the machine can only slow a measurement down."""


def test_the_burst_is_a_time_within_bounds() -> None:
    assert burst(125e6) == 187_500
    assert burst(125e3) == 16_384
    assert burst(1e12) == 4_000_000


@needs_namespaces
@pytest.mark.parametrize("megabits", [200, 1000])
def test_the_rate_is_the_asked_one_within_3_percent(megabits: int) -> None:
    bandwidth = megabits * 125e3
    errors: list[float] = []
    with network(2, bandwidth, 0.0) as made:
        while len(errors) < TRIES and not (errors and abs(errors[-1]) < 0.03):
            errors.append((measure(made, 0.6) or 0.0) / (bandwidth * PAYLOAD_SHARE) - 1)
    assert abs(errors[-1]) < 0.03, errors
    assert max(errors) < 0.03


@needs_namespaces
def test_the_switchs_ends_of_the_links_are_shaped_too() -> None:
    """So what two hosts send to a third shares its bandwidth."""
    with network(2, 12.5e6, 0.0) as made:
        shaped = subprocess.run(["tc", "-n", made.switch, "qdisc"], capture_output=True, text=True, check=True).stdout
    assert shaped.count("qdisc tbf") == 2


@needs_namespaces
def test_a_link_in_use_gets_another_rate_and_keeps_its_burst() -> None:
    with network(2, 12.5e6, 0.0) as made:
        reshape(made, 0, 12.5e6, 2.5e6)
        ends = [(made.name(0), module.DEVICE), (made.switch, "port0"), (made.switch, "port1")]
        words = [["tc", "-n", where, "qdisc", "show", "dev", device] for where, device in ends]
        shown = [subprocess.run(word, capture_output=True, text=True, check=True).stdout for word in words]
    # tc rounds a burst to the clock's ticks.
    assert ["rate 19687Kbit burst 187" in item for item in shown] == [True, True, False]
    assert "rate 98439Kbit burst 187" in shown[2]


@needs_namespaces
def test_it_is_there_within_the_block_and_gone_after_it() -> None:
    pid = os.getpid()
    with network(3, 125e6, 0.0) as made:
        assert namespaces(pid) == sorted([made.switch, *(made.name(host) for host in range(3))])
        lonely = subprocess.Popen([*made.inside(1), "sleep", "60"])
    assert namespaces(pid) == []
    assert lonely.wait(5) == -9, "what ran in a host has ended"


@needs_namespaces
def test_an_error_in_the_block_removes_it_too() -> None:
    with pytest.raises(RuntimeError, match="no luck"), network(2, 125e6, 0.0):
        raise RuntimeError("no luck")
    assert namespaces(os.getpid()) == []


@needs_namespaces
def test_clean_removes_what_the_dead_left_and_nothing_else() -> None:
    finished = subprocess.Popen(["true"])
    finished.wait()
    dead, living = f"gcnsim-{finished.pid}-h0", f"gcnsim-{os.getpid()}-h0"
    others = "gcnsim-bench-test", f"gcnsim-{finished.pid}-other"
    names = (dead, living, *others)
    try:
        for name in names:
            subprocess.run(["ip", "netns", "add", name], check=True)
        assert dead in clean()
        left = namespaces()
        assert dead not in left
        assert {living, *others} <= set(left)
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)


def test_without_tools_the_reason_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert module.refused() == "ip and tc not found"
    with pytest.raises(NetworkError, match="ip: cannot be run: No such file"), network(2, 125e6, 0.0):
        pass
