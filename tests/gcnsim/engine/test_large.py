"""Groups that many bundles cross share by compiled code: the same rates and the same picoseconds as the others."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from simpy.core import Environment

from gcnsim.engine import fluid, simulate
from gcnsim.engine.calls import Call
from gcnsim.engine.fairness import Sharing
from gcnsim.engine.filling import Filling
from gcnsim.engine.fluid import FluidGroup
from gcnsim.engine.large import CompiledGroup
from tests.cases import Case, method

MakeFacts = Callable[..., Case]
Network = tuple[list[float], list[tuple[int, ...]], list[float | None]]


@st.composite
def networks(draw: st.DrawFn) -> Network:
    links = draw(st.integers(1, 6))
    capacity = draw(st.lists(st.floats(0.01, 100.0), min_size=links, max_size=links))
    route = st.lists(st.integers(0, links - 1), min_size=1, max_size=links, unique=True).map(tuple)
    routes = draw(st.lists(route, min_size=1, max_size=9))
    caps = draw(st.lists(st.none() | st.floats(0.01, 50.0), min_size=len(routes), max_size=len(routes)))
    return capacity, routes, caps


def one_by_one(network: Network, counts: list[int]) -> list[Fraction]:
    """The definition, without bundles and in fractions: all flows rise until a link, or their own cap, stops some."""
    capacity, routes, caps = network
    left = [Fraction(value) for value in capacity]
    rising = [bundle for bundle, count in enumerate(counts) for _ in range(count)]
    rates = [Fraction(0)] * len(routes)
    while rising:
        load = [sum(link in routes[bundle] for bundle in rising) for link in range(len(left))]
        limit = {
            bundle: min(
                *(left[link] / load[link] for link in routes[bundle]),
                Fraction(10**9 if (cap := caps[bundle]) is None else cap),
            )
            for bundle in rising
        }
        level = min(limit.values())
        for bundle in [each for each in rising if limit[each] == level]:
            rates[bundle] = level
            for link in routes[bundle]:
                left[link] -= level
        rising = [bundle for bundle in rising if limit[bundle] > level]
    return rates


@settings(deadline=None, max_examples=200)
@given(networks(), st.data())
def test_rates_are_those_of_plain_water_filling_and_of_small_groups_to_the_bit(network: Network, data: Any) -> None:
    capacity, routes, caps = network
    small, large = Sharing(capacity, routes, caps), Filling(capacity, routes, caps)
    for _ in range(3):
        counts = data.draw(st.lists(st.integers(0, 4), min_size=len(routes), max_size=len(routes)))
        large.counts[:] = counts
        large.share()
        assert large.rates.tolist() == small.rates(tuple(counts))
        assert large.rates.tolist() == pytest.approx([float(rate) for rate in one_by_one(network, counts)], rel=1e-9)


Joins = list[tuple[int, int, float]]


def arrivals(kind: type[FluidGroup], network: Network, joins: Joins) -> list[tuple[int, int]]:
    """(flow, when) in order of arrival, with flow k of `joins` (start in ps, bundle, units)."""
    env, log = Environment(initial_time=0), []
    group = kind(env, *network, lambda token: log.append((token, int(env.now))))
    for flow, (start, bundle, units) in enumerate(joins):
        Call(env, lambda event: group.join(*event._value), start, (bundle, units, flow))
    env.run()
    assert not any(group.counts)
    return log


@settings(deadline=None, max_examples=150)
@given(networks(), st.data())
def test_flows_arrive_at_the_same_picosecond_in_the_same_order(network: Network, data: Any) -> None:
    # Few instants and sizes: many flows start and end together.
    join = st.tuples(
        st.sampled_from([0, 0, 10**9, 10**12, 10**12 + 1]),
        st.integers(0, len(network[1]) - 1),
        st.sampled_from([1.0, 1.0, 2.0, 0.001]) | st.floats(1e-3, 10.0),
    )
    joins = data.draw(st.lists(join, min_size=1, max_size=25))
    found = arrivals(CompiledGroup, network, joins)
    assert found == arrivals(FluidGroup, network, joins)
    assert len(found) == len(joins)


@pytest.mark.parametrize(("name", "tau"), [("full-graph", 0), ("psc-gcn", 2)])
def test_a_run_has_the_same_bytes_whoever_shares_its_links(
    facts: MakeFacts, monkeypatch: pytest.MonkeyPatch, name: str, tau: int
) -> None:
    given = facts(workers=5, per_server=1, tau=tau, sampled=tau > 0, iterations=3, spread=0.6, slope=0.3, rows=900.0)
    schedule = method(name)(given)
    runs = []
    for many in (10**6, 1):
        monkeypatch.setattr(fluid, "MANY", many)
        runs.append(simulate(schedule, 7))
    np.testing.assert_array_equal(runs[0].starts, runs[1].starts)
    np.testing.assert_array_equal(runs[0].ends, runs[1].ends)


def test_queues_are_those_of_a_small_group() -> None:
    network: Network = ([10.0, 5.0], [(0,), (0, 1), (1,)], [None, None, 2.0])
    waits = []
    for kind in (FluidGroup, CompiledGroup):
        env = Environment(initial_time=0)
        group = kind(env, *network, lambda _: None)
        for bundle, units in ((0, 30.0), (1, 20.0), (2, 1.0)):
            group.join(bundle, units, bundle)
        env.run(until=10**12)
        waits.append(group.backlog(1, 4.0, lambda _: 0.0))
    assert waits[0] == waits[1] > 0


def test_small_groups_load_no_compiler() -> None:
    code = (
        "import sys; from gcnsim.api import what_if; what_if(iterations=2, method='full-graph'); "
        "sys.exit('numba' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0
