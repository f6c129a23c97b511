"""The slow wire of the exchange: what is held back, how long, and what is not."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from runtime.emulation import Emulation
from runtime.emulation.spec import PAYLOAD_SHARE
from runtime.exchange.channels import LinkEmulation, Meter, wire_of


def emulation(**fields: object) -> Emulation:
    """Two hosts of two workers at 1 MB/s of payload."""
    facts = {
        "hosts": 2,
        "workers_per_host": 2,
        "bandwidth": 1e6 / PAYLOAD_SHARE,
        "measured": None,
        "burst": 0,
        "latency_s": 0.0,
        "latency_by": "none",
        "limiter": "exchange",
        "cores": 2,
        "congestion": "bbr",
    }
    return Emulation(**{**facts, **fields})  # type: ignore[arg-type]


def took(work: Callable[[], None]) -> float:
    """Seconds."""
    start = time.monotonic()
    work()
    return time.monotonic() - start


def test_a_meter_serves_one_after_the_other() -> None:
    meter = Meter(1000.0)
    assert meter.take(500, 10.0) == pytest.approx(10.5)
    assert meter.take(500, 10.2) == pytest.approx(11.0)
    assert meter.take(100, 20.0) == pytest.approx(20.1)


def test_a_message_to_another_host_takes_the_workers_share_of_the_link() -> None:
    wire = LinkEmulation(emulation(), 1)
    assert took(lambda: wire.before_send(2, 50_000)) == pytest.approx(0.1, abs=0.03)
    assert took(lambda: wire.before_send(0, 50_000)) < 0.03, "the same host"


def test_one_senders_message_has_waited_already_but_two_share_the_receivers_link() -> None:
    wire = LinkEmulation(emulation(), 0)
    assert took(lambda: wire.after_receive(2, 50_000, True)) < 0.03
    assert took(lambda: wire.after_receive(3, 50_000, True)) == pytest.approx(0.1, abs=0.04)


def test_latency_delays_what_was_waited_for() -> None:
    wire = LinkEmulation(emulation(limiter="netns", latency_s=0.05, latency_by="exchange"), 0)
    assert took(lambda: wire.after_receive(2, 10**9, True)) == pytest.approx(0.05, abs=0.03)
    assert took(lambda: wire.after_receive(2, 10**9, False)) < 0.03, "it came while nobody waited"
    assert took(lambda: wire.after_receive(1, 10**9, True)) < 0.03, "the same host"


def test_a_sum_takes_a_rings_time() -> None:
    wire = LinkEmulation(emulation(latency_s=0.01, latency_by="exchange"), 0)
    since = time.monotonic()
    # 6 steps of a quarter of the bytes at the host's rate, each with the latency.
    assert took(lambda: wire.after_sum(40_000, 4, since)) == pytest.approx(6 * (0.01 + 0.01), abs=0.04)
    alone = LinkEmulation(emulation(hosts=1, workers_per_host=4), 0)
    assert took(lambda: alone.after_sum(40_000, 4, time.monotonic())) < 0.03


def test_only_what_the_network_does_not_do_is_done_here(monkeypatch: pytest.MonkeyPatch) -> None:
    for facts, wanted in (
        (emulation(), True),
        (emulation(limiter="netns"), False),
        (emulation(limiter="netns", latency_s=1e-3, latency_by="netem"), False),
        (emulation(limiter="userns", latency_s=1e-3, latency_by="exchange"), True),
    ):
        for name, value in facts.environment().items():
            monkeypatch.setenv(name, value)
        assert (wire_of(0) is not None) is wanted
