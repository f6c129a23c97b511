"""The rate that a host receives at, by a clock and a sender of the test's own; no shaped link is needed."""

from __future__ import annotations

import itertools
import socket
from typing import Any

import pytest

from runtime.emulation import throughput


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
