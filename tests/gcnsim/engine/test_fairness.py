"""Max-min fair rates: feasible, no flow can gain without taking from one that has no more, whatever the order."""

from __future__ import annotations

import math
from fractions import Fraction
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gcnsim.engine import fairness
from gcnsim.engine.fairness import Sharing

Case = tuple[list[float], list[tuple[int, ...]], list[int], list[float | None]]


def max_min_rates(
    capacity: list[float], routes: list[tuple[int, ...]], counts: list[int], caps: list[float | None]
) -> list[float]:
    return Sharing(capacity, routes, caps).rates(tuple(counts))


@st.composite
def networks(draw: st.DrawFn) -> Case:
    links = draw(st.integers(1, 5))
    capacity = draw(st.lists(st.floats(0.01, 100.0), min_size=links, max_size=links))
    route = st.lists(st.integers(0, links - 1), min_size=1, max_size=links, unique=True).map(tuple)
    routes = draw(st.lists(route, min_size=1, max_size=7))
    size = len(routes)
    counts = draw(st.lists(st.integers(0, 4), min_size=size, max_size=size))
    caps = draw(st.lists(st.none() | st.floats(0.01, 50.0), min_size=size, max_size=size))
    return capacity, routes, counts, caps


def loads(case: Case, rates: list[float]) -> list[float]:
    capacity, routes, counts, _ = case
    used = [0.0] * len(capacity)
    for route, count, rate in zip(routes, counts, rates, strict=True):
        for link in route:
            used[link] += count * rate
    return used


def test_two_flows_share_a_link_in_halves() -> None:
    assert max_min_rates([10.0], [(0,)], [2], [None]) == [5.0]


def test_three_links_in_a_row_with_one_long_flow() -> None:
    # Bertsekas and Gallager: one flow over all links, one flow on each; the tightest link settles the long flow.
    rates = max_min_rates([1.0, 2.0, 3.0], [(0, 1, 2), (0,), (1,), (2,)], [1, 1, 1, 1], [None] * 4)
    assert rates == [0.5, 0.5, 1.5, 2.5]


def test_three_links_settle_one_after_the_other() -> None:
    # A: 6 among three; then B: 10 - 2 among two; then C: 12 - 2 - 4.
    rates = max_min_rates([6.0, 10.0, 12.0], [(0,), (0, 1, 2), (1,), (1, 2), (2,)], [2, 1, 1, 1, 1], [None] * 5)
    assert rates == [2.0, 2.0, 4.0, 4.0, 6.0]


def test_a_ring_of_three_links_with_two_hop_flows() -> None:
    assert max_min_rates([4.0, 4.0, 4.0], [(0, 1), (1, 2), (2, 0)], [1, 1, 1], [None] * 3) == [2.0, 2.0, 2.0]


def test_a_capped_flow_leaves_the_rest_to_the_others() -> None:
    assert max_min_rates([9.0], [(0,), (0,)], [1, 2], [1.0, None]) == [1.0, 4.0]


def test_a_cap_above_the_share_changes_nothing() -> None:
    assert max_min_rates([9.0], [(0,), (0,)], [1, 2], [5.0, None]) == [3.0, 3.0]


def test_cores_shared_by_threads_of_one_core_each() -> None:
    assert max_min_rates([16.0], [(0,)], [6], [1.0]) == [1.0]
    assert max_min_rates([16.0], [(0,)], [64], [1.0]) == [0.25]


def test_a_bundle_without_flows_has_no_rate_and_takes_nothing() -> None:
    assert max_min_rates([8.0], [(0,), (0,)], [0, 2], [None, None]) == [0.0, 4.0]


def test_no_flows_at_all() -> None:
    assert max_min_rates([8.0, 1.0], [], [], []) == []


@settings(deadline=None, max_examples=150)
@given(networks())
def test_feasible_and_every_flow_has_a_bottleneck(case: Case) -> None:
    capacity, routes, counts, caps = case
    rates = max_min_rates(capacity, routes, counts, caps)
    used = loads(case, rates)
    for link, limit in enumerate(capacity):
        assert used[link] <= limit * (1 + 1e-9)
    for bundle, (route, count, cap) in enumerate(zip(routes, counts, caps, strict=True)):
        if count == 0:
            assert rates[bundle] == 0.0
            continue
        assert rates[bundle] > 0.0
        if cap is not None:
            assert rates[bundle] <= cap
        at_cap = cap is not None and math.isclose(rates[bundle], cap, rel_tol=1e-9)
        bottlenecks = [
            link
            for link in route
            if used[link] >= capacity[link] * (1 - 1e-9)
            and all(
                rates[other] <= rates[bundle] * (1 + 1e-9)
                for other, crossed in enumerate(routes)
                if counts[other] and link in crossed
            )
        ]
        assert at_cap or bottlenecks


@settings(deadline=None, max_examples=100)
@given(networks(), st.randoms(use_true_random=False))
def test_order_of_flows_and_links_does_not_matter(case: Case, random: Random) -> None:
    capacity, routes, counts, caps = case
    rates = max_min_rates(capacity, routes, counts, caps)
    flows, links = list(range(len(routes))), list(range(len(capacity)))
    random.shuffle(flows)
    random.shuffle(links)
    moved = max_min_rates(
        [capacity[link] for link in links],
        [tuple(links.index(link) for link in routes[flow]) for flow in flows],
        [counts[flow] for flow in flows],
        [caps[flow] for flow in flows],
    )
    assert moved == pytest.approx([rates[flow] for flow in flows], rel=1e-9)


def one_by_one(case: Case) -> list[Fraction]:
    """The definition, without bundles and in fractions: all flows rise until a link, or their own cap, stops some."""
    capacity, routes, counts, caps = case
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
        for bundle in [number for number in rising if limit[number] == level]:
            rates[bundle] = level
            for link in routes[bundle]:
                left[link] -= level
        rising = [bundle for bundle in rising if limit[bundle] > level]
    return rates


@settings(deadline=None, max_examples=200)
@given(networks())
def test_rates_are_those_of_plain_water_filling(case: Case) -> None:
    capacity, routes, counts, caps = case
    rates = max_min_rates(capacity, routes, counts, caps)
    assert rates == pytest.approx([float(rate) for rate in one_by_one(case)], rel=1e-9)


@settings(deadline=None, max_examples=100)
@given(networks())
def test_a_bundle_is_its_flows_one_by_one(case: Case) -> None:
    capacity, routes, counts, caps = case
    rates = max_min_rates(capacity, routes, counts, caps)
    single = [bundle for bundle, count in enumerate(counts) for _ in range(count)]
    apart = max_min_rates(capacity, [routes[b] for b in single], [1] * len(single), [caps[b] for b in single])
    assert apart == pytest.approx([rates[b] for b in single], rel=1e-9)


def test_of_equally_tight_links_that_of_the_lowest_id_is_settled_first() -> None:
    # 0.3 to each flow of either link. The first is settled, and 0.9 - 0.3, a little above 0.6, is left of the second.
    assert (0.9 - 0.3) / 2 == 0.30000000000000004 > 0.9 / 3 == 0.3
    assert Sharing([0.3, 0.9], [(1,), (0, 1)], [None, None]).rates((2, 1)) == [0.30000000000000004, 0.3]
    # 1.1 / 5 on both links: the first is settled with what crosses both, and the second has what that left.
    rates = Sharing([1.1, 1.1], [(0,), (1,), (0, 1)], [None] * 3).rates((3, 3, 2))
    assert rates == [0.22000000000000003, 0.22, 0.22000000000000003]


def test_a_cap_counts_for_each_flow_and_takes_no_part_of_others() -> None:
    # Two bundles of two and three flows, each flow at most 1 and 2: 14 - 2 - 6 is left to a single one.
    shared = Sharing([14.0], [(0,), (0,), (0,)], [1.0, 2.0, None])
    assert shared.rates((2, 3, 1)) == [1.0, 2.0, 6.0]
    assert shared.rates((2, 0, 1)) == [1.0, 0.0, 12.0]


def test_what_is_remembered_is_what_would_be_found_and_no_more_than_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fairness, "REMEMBERED", 2)
    shared = Sharing([12.0], [(0,), (0,)], [None, None])
    requested = [(1, 1), (1, 2), (2, 2), (1, 1), (3, 0)]
    assert [shared.rates(counts) for counts in requested] == [[6.0] * 2, [4.0] * 2, [3.0] * 2, [6.0] * 2, [4.0, 0.0]]
    assert shared.rates((3, 0)) is shared.rates((3, 0)), "found once"
    assert len(shared._known) <= 2
