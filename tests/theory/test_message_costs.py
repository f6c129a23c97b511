"""What a message costs whatever its size, on machines of the catalogue: seconds of its connection, not of a link."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from gcnsim.hardware import host
from gcnsim.scenario import ClusterSpec
from gcnsim.scenario.machine import resolve_machine
from tests.cases import Case, method

MakeFacts = Callable[..., Case]
Period = Callable[..., float]

GBPS = 1e9 / 8
TOLERANCE = 0.005
"""Near a saturated link flows may meet otherwise (test_random_scenarios.py): half a percent there, too."""
SIZES = pytest.mark.parametrize("rows", [3.0, 3000.0], ids=["small", "large"])


def spec(bandwidth: float, **more: object) -> ClusterSpec:
    """Eight servers of one T4 each."""
    given = {"gpus": 8, "gpus_per_server": 1, "device": "t4", "bandwidth": bandwidth * GBPS, **more}
    return ClusterSpec(**given)  # type: ignore[arg-type]


def seconds(
    facts: MakeFacts, period: Period, where: ClusterSpec, rows: float, name: str = "full-graph", **more: object
) -> float:
    """The iteration of a small network with so many rows of 16 values between each pair."""
    given = facts(workers=8, per_server=1, rows=rows, entries=1000, inner=50, widths=(16, 8, 4), **more)
    return period(
        method(name)(replace(given, cluster=resolve_machine(where).topology, serial=where.transfers == "serial"))
    )


def test_small_messages_of_many_pairs_do_not_fill_the_nic(facts: MakeFacts, period: Period) -> None:
    """48 bytes to each of seven peers: at a tenth of the bandwidth they take what the bytes take, and no more."""
    fast, slow = (seconds(facts, period, spec(rate), 3.0, "pipegcn", tau=1) for rate in (10.0, 1.0))
    assert slow < 1.05 * fast


@SIZES
@pytest.mark.parametrize("bandwidth", [1.0, 10.0, 100.0])
def test_bytes_that_pass_on_as_they_come_are_no_later_than_staged(
    facts: MakeFacts, period: Period, bandwidth: float, rows: float
) -> None:
    staged, direct = (seconds(facts, period, spec(bandwidth, transport=text), rows) for text in ("staged", "direct"))
    assert direct <= staged


@SIZES
@pytest.mark.parametrize("bandwidth", [1.0, 25.0, 100.0])
@pytest.mark.parametrize(("name", "tau"), [("full-graph", 0), ("pipegcn", 1)])
def test_sockets_that_cost_cores_are_never_faster_than_free_ones(
    facts: MakeFacts, period: Period, name: str, tau: int, bandwidth: float, rows: float
) -> None:
    free, cores = (
        seconds(facts, period, spec(bandwidth, sockets=text, transport="staged"), rows, name, tau=tau)
        for text in ("free", "cores")
    )
    assert free <= cores * (1 + TOLERANCE)
    # Where a network is slower than a core, all that is left are the ends of messages.
    if bandwidth == 1.0 and rows > 100:
        assert cores < 1.05 * free


def test_a_network_message_holds_its_connection_for_its_call_and_the_link_for_its_bytes() -> None:
    cluster = resolve_machine(spec(25.0)).topology
    way, message_s = cluster.between(0, 1), host("generic-16").message_s.value
    assert cluster.startup(way) == message_s
    assert cluster.latency(way) == pytest.approx(50e-6 + 2 * message_s)
    cores = resolve_machine(spec(25.0, sockets="cores")).topology
    assert (cores.startup(way), cores.latency(way)) == (0.0, 50e-6)


def test_equal_serial_transfers_take_as_long_as_all_at_once(facts: MakeFacts, period: Period) -> None:
    """Five workers send alike: every receiver is written to by one of them at a time, and no link rests."""
    given = facts(workers=5, per_server=1, nic=1e8, nic_latency=0.0, pcie=1e15)
    at_once, serial = (period(method("full-graph")(replace(given, serial=flag))) for flag in (False, True))
    assert serial == pytest.approx(at_once, rel=0.01)
