"""Shares of links, bounds, and estimates of sampled sums."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given as drawn_from
from hypothesis import settings
from hypothesis import strategies as st

from gcnsim.core.ids import Float32Array, FloatArray
from gcnsim.core.streams import stream
from gcnsim.graph import build_csr
from gcnsim.graph.assign import partition_graph
from gcnsim.graph.parts import Part, split
from gcnsim.schedule import Schedule, bounds, estimate, resource_loads
from gcnsim.workload.samplers import VarianceReduction
from gcnsim.workload.staleness import BlockRule
from tests.cases import Case, method
from tests.sampled import draw_edges, edge_probabilities, edge_weights

CASES = 1200


def rows_part(counts: list[int], degree: int = 0) -> Part:
    """A part whose every stored entry ends at a boundary node of its own, so that norms set q entry by entry."""
    rows, entries = len(counts), sum(counts)
    return Part(
        rank=0,
        parts=2,
        inner=np.arange(rows),
        boundary=rows + np.arange(entries),
        boundary_ptr=np.array([0, 0, entries]),
        indptr=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        columns=(rows + np.arange(entries)).astype(np.int32),
        inner_degree=np.array(counts, np.int64),
        boundary_degree=np.full(entries, degree),
    )


def filled(rows: list[FloatArray], epsilon: float) -> list[FloatArray]:
    part = rows_part([row.size for row in rows])
    norms = np.concatenate([np.zeros(len(rows)), *rows]).astype(np.float32)
    p = VarianceReduction(part, norms).probabilities(epsilon).p
    return [piece.astype(np.float64) for piece in np.split(p, part.indptr[1:-1])]


def water(q: FloatArray, budget: float, lower: float) -> FloatArray:
    """p = min(1, max(lower, q / root)) with the root that uses up the budget, by plain bisection."""
    low, high = 0.0, 1.0
    while np.clip(q * high, lower, 1.0).sum() < budget and high < 1e300:
        high *= 2
    for _ in range(300):
        middle = (low + high) / 2
        low, high = (middle, high) if np.clip(q * middle, lower, 1.0).sum() < budget else (low, middle)
    return np.clip(q * high, lower, 1.0)


def random_row(rng: np.random.Generator) -> FloatArray:
    n = int(rng.integers(1, 40)) if rng.random() < 0.9 else int(rng.integers(40, 400))
    spread = float(rng.choice([0.0, 0.1, 1.0, 3.0]))
    row = np.exp(spread * rng.standard_normal(n))
    if rng.random() < 0.3:
        row = np.round(row) + 1.0  # ties
    return row.astype(np.float32).astype(np.float64)


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 0.5, 0.9])
def test_equals_exact_water_filling(epsilon: float) -> None:
    rng = np.random.default_rng(int(1000 * epsilon))
    rows = [random_row(rng) for _ in range(CASES // 4)]
    for q, p in zip(rows, filled(rows, epsilon), strict=True):
        expected = water(q, epsilon * q.size, 0.1 * epsilon)
        assert p == pytest.approx(expected, rel=2e-6)
        assert p.sum() == pytest.approx(epsilon * q.size, rel=1e-6)
        assert p.max() <= 1.0
        assert (q * q / p).sum() == pytest.approx((q * q / expected).sum(), rel=1e-5)


def test_equals_the_theorem_where_nothing_falls_below_the_floor() -> None:
    rng = np.random.default_rng(5)
    rows = [rng.uniform(1.0, 4.0, int(rng.integers(2, 30))).astype(np.float32).astype(float) for _ in range(500)]
    for q, p in zip(rows, filled(rows, 0.6), strict=True):
        ascending, n, budget = np.sort(q), q.size, 0.6 * q.size
        sums = np.cumsum(ascending)
        k = max(k for k in range(1, n + 1) if (budget + k - n) * ascending[k - 1] <= sums[k - 1] * (1 + 1e-12))
        assert p == pytest.approx(np.minimum(1.0, q * (budget + k - n) / sums[k - 1]), rel=2e-6)


def test_rows_with_zeros_keep_budget_and_floor() -> None:
    rng = np.random.default_rng(9)
    rows = [row * (rng.random(row.size) < 0.6) for row in (random_row(rng) for _ in range(800))]
    for epsilon in (0.05, 0.3, 0.7):
        for q, p in zip(rows, filled(rows, epsilon), strict=True):
            assert p.sum() == pytest.approx(epsilon * q.size, rel=1e-6)
            assert p.min() >= 0.1 * epsilon * (1 - 1e-6)
            assert p.max() <= 1.0
            assert (p[q > 0].min(initial=1.0)) >= p[q == 0].max(initial=0.0) * (1 - 1e-6)


def test_all_zero_row_is_uniform() -> None:
    (p,) = filled([np.zeros(7)], 0.2)
    assert p == pytest.approx(np.full(7, 0.2))


def test_nonzero_entries_saturate_and_zeros_share_the_rest() -> None:
    (p,) = filled([np.array([0.0, 5.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0])], 0.5)
    assert p[[1, 3]].tolist() == [1.0, 1.0]
    assert p[[0, 2, 4, 5, 6, 7, 8, 9]] == pytest.approx(np.full(8, 3 / 8))


def test_as_many_nonzero_entries_as_the_budget_still_leave_the_floor() -> None:
    (p,) = filled([np.array([2.0, 2.0, 0.0, 0.0])], 0.5)
    assert p == pytest.approx([0.95, 0.95, 0.05, 0.05])


def test_full_rate_is_one_even_with_zero_norms() -> None:
    (p,) = filled([np.array([0.0, 1.0, 2.0])], 1.0)
    assert p.tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("scale", [1e-20, 1e30])
def test_norms_of_any_magnitude_and_mixed_magnitudes(scale: float) -> None:
    tiny = np.array([1.0, 1e-12, 2e-12, 1e-12])
    plain, mixed = filled([np.array([1.0, 2.0, 3.0]) * scale, tiny * scale], 0.5)
    assert plain == pytest.approx(np.array([1.0, 2.0, 3.0]) / 4, rel=1e-5)
    assert mixed == pytest.approx([1.0, 0.25, 0.5, 0.25], rel=1e-5)


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
    load = resource_loads(schedule).mean(axis=0).max()
    assert load <= estimate(schedule) <= limits.upper_s
    assert load <= limits.lower_s


@pytest.mark.parametrize("name", ["full-graph", "pipegcn", "psc-gcn"])
def test_one_worker_is_exact(facts: MakeFacts, period: Period, name: str) -> None:
    schedule = method(name)(facts(workers=1, per_server=1, tau=2))
    limits = bounds(schedule)
    assert limits.lower_s == pytest.approx(limits.upper_s, rel=1e-12)
    assert period(schedule) == pytest.approx(limits.lower_s, rel=1e-9)


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
    assert limits.lower_s == resource_loads(schedule).mean(axis=0)[schedule.columns.streams :].max()
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


DRAWS, WIDTH = 3000, 3


@pytest.fixture(scope="module")
def part() -> Part:
    """One of three parts of 200 nodes of very different degrees."""
    rng = np.random.default_rng(3)
    ends = (200 * rng.random((1200, 2)) ** 1.5).astype(np.int64)
    graph = build_csr(ends[:, 0], ends[:, 1], 200, "small")
    return split(graph, partition_graph(graph, 3, "random", seed=1))[0]


@pytest.fixture(scope="module")
def rows(part: Part) -> FloatArray:
    """x_j of every local id, of very different lengths, float64[I + B, WIDTH]."""
    rng = np.random.default_rng(4)
    nodes = part.inner_nodes + part.boundary_nodes
    return np.exp(rng.standard_normal((nodes, 1))) * rng.standard_normal((nodes, WIDTH))


def by_row(part: Part, entries: FloatArray) -> FloatArray:
    """Sums over each inner node's entries, float64[I, ...]."""
    sums = np.zeros((part.inner_nodes, *entries.shape[1:]))
    np.add.at(sums, np.repeat(np.arange(part.inner_nodes), np.diff(part.indptr)), entries)
    return sums


def probabilities(name: str, part: Part, rows: FloatArray, epsilon: float) -> FloatArray:
    norms: Float32Array = np.linalg.norm(rows, axis=1).astype(np.float32)
    return edge_probabilities(name, part, epsilon, norms).astype(np.float64)


def weighted_variance(part: Part, rows: FloatArray, p: FloatArray) -> FloatArray:
    """Per inner node, sum of a_j (1/p_ij - 1) ||P_ij x_j||^2 with a_j = 1.1 for inner j: what Theorem 2 minimises."""
    length = edge_weights(part) * np.linalg.norm(rows, axis=1)[part.columns]
    preference = np.where(part.columns < part.inner_nodes, 1.1, 1.0)
    return by_row(part, preference * (1.0 / p - 1.0) * length**2)


@pytest.mark.parametrize("name", ["uniform", "vr"])
@pytest.mark.parametrize("epsilon", [0.1, 0.5])
def test_the_mean_over_draws_is_the_full_sum(name: str, epsilon: float, part: Part, rows: FloatArray) -> None:
    p = probabilities(name, part, rows, epsilon)
    terms = edge_weights(part)[:, None] * rows[part.columns]
    total, squares = np.zeros((2, part.inner_nodes, WIDTH))
    for draw in range(DRAWS):
        mask = draw_edges(part, p.astype(np.float32), stream(9, name, draw))
        sampled = by_row(part, (mask / p)[:, None] * terms)
        total += sampled
        squares += (sampled - by_row(part, terms)) ** 2
    variance = by_row(part, (1.0 / p - 1.0)[:, None] * terms**2)
    random = variance > 1e-20
    deviation = (total / DRAWS - by_row(part, terms))[random] / np.sqrt(variance[random] / DRAWS)
    # Each deviation is about standard normal; the widest of hundreds stays below 5, and all together they are not few.
    assert np.abs(deviation).max() < 5.0
    assert np.mean(deviation**2) == pytest.approx(1.0, abs=0.4)
    # The spread of the draws is the closed form's, so the interval above is the right one.
    assert (squares / DRAWS).sum() == pytest.approx(variance.sum(), rel=6.0 / math.sqrt(DRAWS))
    assert total[~random] / DRAWS == pytest.approx(by_row(part, terms)[~random], rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("epsilon", [0.02, 0.1, 0.3, 0.7, 0.95])
def test_vr_has_at_most_the_variance_of_uniform(epsilon: float, part: Part, rows: FloatArray) -> None:
    vr, uniform = (
        weighted_variance(part, rows, probabilities(name, part, rows, epsilon)) for name in ("vr", "uniform")
    )
    # Row by row: uniform probabilities meet the same budget and floor, so the optimum cannot be worse.
    assert bool(np.all(vr <= uniform * (1.0 + 1e-5)))
    assert vr.sum() < 0.9 * uniform.sum()


def test_vr_at_equal_lengths_of_inner_terms_is_uniform(part: Part) -> None:
    degree = np.concatenate([part.inner_degree, part.boundary_degree])
    preference = np.where(np.arange(degree.size) < part.inner_nodes, math.sqrt(1.1), 1.0)
    level = (np.sqrt(degree + 1.0) / preference)[:, None]
    vr, uniform = (probabilities(name, part, level, 0.3) for name in ("vr", "uniform"))
    assert vr == pytest.approx(uniform, rel=1e-5)
    gap = weighted_variance(part, level, vr) - weighted_variance(part, level, uniform)
    assert np.abs(gap).max() < 1e-4 * weighted_variance(part, level, uniform).max()
