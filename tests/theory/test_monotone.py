"""Better hardware and larger caches never hurt."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from gcnsim.engine import simulate
from gcnsim.schedule import Schedule
from gcnsim.simulation import link_units
from tests.cases import Case, method

MakeFacts = Callable[..., Case]
Period = Callable[[Schedule], float]


@pytest.mark.parametrize(
    ("name", "tau", "sampled", "slack"),
    [
        ("full-graph", 0, False, 1e-9),
        ("pipegcn", 1, False, 0.005),
        ("psc-gcn", 0, True, 0.005),
        ("psc-gcn", 2, True, 0.005),
    ],
)
def test_more_bandwidth_is_never_slower(
    facts: MakeFacts, period: Period, name: str, tau: int, sampled: bool, slack: float
) -> None:
    bandwidths = (2e7, 4e7, 8e7, 1.6e8, 3.2e8, 6.4e8, 1.3e9, 1e10)
    times = [period(method(name)(facts(tau=tau, sampled=sampled, slope=0.2, nic=nic))) for nic in bandwidths]
    assert all(fast <= slow * (1 + slack) for slow, fast in itertools.pairwise(times))
    assert times[-1] < 0.7 * times[0]


@pytest.mark.parametrize("tau", [0, 2])
def test_a_larger_cache_never_sends_more(facts: MakeFacts, tau: int) -> None:
    shares = (0.0, 0.1, 0.4, 0.9, 1.0)
    sent = []
    for hits in shares:
        given = facts(tau=tau, sampled=True, iterations=4, spread=0.4, hits=hits)
        units = link_units(simulate(method("psc-gcn")(given), 9), 5)
        sent.append([units[f"nic{server}.{side}"] for server in (0, 1) for side in ("tx", "rx")])
    for less, more in itertools.pairwise(sent):
        assert all(after < before for before, after in zip(less, more, strict=True))


def test_a_lone_transfer_bound_by_the_network_is_inverse_in_bandwidth(facts: MakeFacts, period: Period) -> None:
    slow, fast = (period(method("pipegcn")(facts(nic=nic, nic_latency=0.0))) for nic in (1e6, 2e6))
    assert slow == pytest.approx(2 * fast, rel=0.02)
