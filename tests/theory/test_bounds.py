"""Analytic bounds against simulated iterations, for every method over bandwidths, cores, imbalance and sampling."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given as drawn_from
from hypothesis import settings
from hypothesis import strategies as st

from gcnsim.schedule import Schedule, bounds, estimate
from gcnsim.workload.staleness import BlockRule
from tests.cases import Case, method

MakeFacts = Callable[..., Case]
Period = Callable[[Schedule], float]

SLACK = 0.005
"""What a run may still be away from its steady mean, and a sampled window from the mean of all drawn graphs."""

METHODS = [
    ("full-graph", 0, False),
    ("pipegcn", 1, False),
    ("bns-gcn", 0, True),
    ("psc-gcn", 0, True),
    ("psc-gcn", 3, True),
    ("pipegcn-gf", 1, False),
    ("cagnet-1d", 0, False),
    ("roc", 0, False),
]
RATE = 0.3
"""Of bns-gcn; the others do not read it."""

SHAPES: list[dict[str, float]] = [
    {"nic": 1e8},
    {"nic": 1e9, "slope": 0.3, "startup": 1e-3},
    {"nic": 1e10, "workers": 3, "per_server": 1, "cores": 1.0},
    {"nic": 5e8, "workers": 5, "hits": 0.5, "pcie": 1e9},
    {"nic": 1e9, "workers": 2, "nic_latency": 0.02},
    {"nic": 1e9, "workers": 6, "per_server": 4, "nic_latency": 0.005, "rows": 1.0},  # unequal hops of the ring
]


@pytest.mark.parametrize(("name", "tau", "sampled"), METHODS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_lower_is_below_and_upper_above_the_simulated_iteration(
    facts: MakeFacts, period: Period, name: str, tau: int, sampled: bool, shape: dict[str, float]
) -> None:
    drawn = {"iterations": 12, "spread": 0.3, "weighted": True} if sampled else {}
    schedule = method(name)(facts(tau=tau, sampled=sampled, rate=RATE, **drawn, **shape))
    limits, seconds = bounds(schedule), period(schedule)
    assert limits.lower_s <= seconds * (1 + SLACK)
    assert seconds <= limits.upper_s * (1 + SLACK)
    assert limits.busiest_s <= estimate(schedule) <= limits.upper_s
    assert limits.busiest_s <= limits.lower_s


@pytest.mark.parametrize("name", ["full-graph", "pipegcn", "psc-gcn"])
def test_one_worker_is_exact(facts: MakeFacts, period: Period, name: str) -> None:
    schedule = method(name)(facts(workers=1, per_server=1, tau=2))
    limits = bounds(schedule)
    assert limits.lower_s == pytest.approx(limits.upper_s, rel=1e-12)
    assert period(schedule) == pytest.approx(limits.lower_s, rel=1e-9)
    assert (limits.busiest, limits.busiest_kind) == ("gpu of worker 0", "compute")


@pytest.mark.parametrize(("name", "tau", "sampled"), METHODS)
def test_more_bandwidth_never_raises_a_bound(facts: MakeFacts, name: str, tau: int, sampled: bool) -> None:
    schedules = [
        method(name)(facts(tau=tau, sampled=sampled, slope=0.2, nic=nic, rate=RATE))
        for nic in (1e7, 2e7, 5e7, 1e8, 3e8, 1e9, 1.1e9, 1e10, 1e12)
    ]
    for slow, fast in itertools.pairwise(schedules):
        assert bounds(fast).lower_s <= bounds(slow).lower_s
        assert estimate(fast) <= estimate(slow)
        assert bounds(fast).upper_s <= bounds(slow).upper_s


def test_a_tight_resource_is_the_bound(facts: MakeFacts, period: Period) -> None:
    schedule = method("pipegcn")(facts(nic=1e7, nic_latency=0.0))
    limits = bounds(schedule)
    assert limits.busiest_kind == "nic"
    assert limits.lower_s == limits.busiest_s
    assert period(schedule) == pytest.approx(limits.lower_s, rel=0.02)


@settings(max_examples=25, deadline=None)
@drawn_from(
    test=st.sampled_from(["fixed", "adaptive", "gap"]),
    threshold=st.floats(0.0, 3.0).map(lambda power: 10.0**power - 1.0),
    warmup=st.sampled_from([0.0, 0.02, 0.5]),
    back=st.booleans(),
    latency=st.sampled_from([5e-5, 5e-3, 0.05]),
    workers=st.integers(2, 4),
    nic=st.sampled_from([1e8, 1e10]),
)
def test_rare_broadcasts_have_their_latency_as_rarely(
    facts: MakeFacts,
    period: Period,
    test: str,
    threshold: float,
    warmup: float,
    back: bool,
    latency: float,
    workers: int,
    nic: float,
) -> None:
    rule = BlockRule(test, threshold, 0.5, warmup, skips_backward=back)
    given = facts(workers=workers, nic=nic, nic_latency=latency)
    schedule = method("sancus")(replace(given, block_rule=rule, seed=int(threshold)))
    limits, seconds = bounds(schedule), period(schedule)
    assert limits.lower_s <= seconds * (1 + 1e-9)
    assert seconds <= limits.upper_s * (1 + SLACK)
    assert estimate(schedule) <= limits.upper_s * (1 + 1e-9)
