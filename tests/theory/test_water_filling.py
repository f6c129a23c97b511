"""Theorem 2 of PSC-GCN against exact water-filling by bisection on the multiplier, written independently."""

from __future__ import annotations

import numpy as np
import pytest

from gcnsim.core.ids import FloatArray
from gcnsim.graph.parts import Part
from gcnsim.workload.samplers import VarianceReduction

CASES = 3000


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


def test_budget_below_one_and_single_neighbours() -> None:
    low, one = filled([np.array([1.0, 3.0]), np.array([4.0])], 0.25)
    assert low == pytest.approx([0.125, 0.375])
    assert one == pytest.approx([0.25])


def test_ties_share_equally() -> None:
    (p,) = filled([np.array([1.0, 2.0, 1.0, 2.0, 1.0])], 0.6)
    assert p[[0, 2, 4]] == pytest.approx(np.full(3, 3 / 7))
    assert p[[1, 3]] == pytest.approx(np.full(2, 6 / 7))


def test_full_rate_is_one_even_with_zero_norms() -> None:
    (p,) = filled([np.array([0.0, 1.0, 2.0])], 1.0)
    assert p.tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("scale", [1e-20, 1e30])
def test_norms_of_any_magnitude_and_mixed_magnitudes(scale: float) -> None:
    tiny = np.array([1.0, 1e-12, 2e-12, 1e-12])
    plain, mixed = filled([np.array([1.0, 2.0, 3.0]) * scale, tiny * scale], 0.5)
    assert plain == pytest.approx(np.array([1.0, 2.0, 3.0]) / 4, rel=1e-5)
    assert mixed == pytest.approx([1.0, 0.25, 0.5, 0.25], rel=1e-5)


def test_variance_never_exceeds_that_of_uniform_sampling() -> None:
    rng = np.random.default_rng(3)
    rows = [random_row(rng) for _ in range(300)]
    for q, p in zip(rows, filled(rows, 0.2), strict=True):
        assert (q * q / p).sum() <= (q * q / 0.2).sum() * (1 + 1e-6)
