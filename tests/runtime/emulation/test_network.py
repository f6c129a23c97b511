"""Emulated networks: what is asked, and what they carry."""

from __future__ import annotations

import itertools
import json
import os
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest

from gcnsim.core.errors import ScenarioError
from runtime.emulation import Emulation, throughput
from runtime.emulation import network as module
from runtime.emulation.network import NetworkError, burst, clean, network, reshape
from runtime.emulation.spec import NAME, PAYLOAD_SHARE
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


class Source:
    """A connection that brings `sizes` bytes, one after the other; then it is closed."""

    def __init__(self, *sizes: int) -> None:
        self.sizes, self.closed, self.patience = itertools.chain(sizes, itertools.repeat(0)), False, 0.0

    def settimeout(self, seconds: float) -> None:
        self.patience = seconds

    def recv_into(self, _: Any) -> int:
        return next(self.sizes)

    def close(self) -> None:
        self.closed = True


def received(monkeypatch: pytest.MonkeyPatch, seconds: float, *arrivals: tuple[float, int]) -> float:
    """What is measured where bytes arrive at these times."""
    times, sizes = zip(*arrivals, strict=True)
    clock, source = iter(times), Source(*sizes)
    monkeypatch.setattr("runtime.emulation.throughput.time.monotonic", lambda: next(clock))
    found = throughput._received(source, seconds)  # type: ignore[arg-type]
    assert (source.closed, source.patience) == (True, 10.0)
    return found


def test_the_first_quarter_of_the_time_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    # The start is over at 101: of the 200 bytes, 160 come in the 3 s from there on.
    arrivals = [(100.0, 10), (100.5, 10), (101.0, 20), (102.0, 100), (104.0, 60)]
    assert received(monkeypatch, 4.0, *arrivals) == pytest.approx(160 / 3)


def test_a_sender_that_leaves_early_is_measured_until_then(monkeypatch: pytest.MonkeyPatch) -> None:
    arrivals = [(100.0, 10), (101.0, 20), (102.0, 50), (103.0, 0)]
    assert received(monkeypatch, 4.0, *arrivals) == pytest.approx(50 / 2)


def test_where_only_the_start_is_seen_nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    assert received(monkeypatch, 4.0, (100.0, 10), (100.5, 0)) == 0.0


def test_two_processes_measure_the_loopback() -> None:
    rate = throughput.measure(None, 0.2)
    assert rate is not None
    assert rate > 1e6


def test_a_free_port_can_be_listened_at() -> None:
    with socket.create_server(("127.0.0.1", throughput.free_port())) as server:
        assert server.getsockname()[1] > 0
