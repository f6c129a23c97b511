"""The sampled sum of neighbours: its mean is the full sum, and the rule of least variance has no more of it.

Entry (i, j) is kept with probability p_ij and then weighs P_ij / p_ij, so the sampled sum of row i has the mean
sum_j P_ij x_j and, per value, the variance sum_j (1/p_ij - 1) (P_ij x_j)^2 (independent draws).
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from gcnsim.core.ids import Float32Array, FloatArray
from gcnsim.core.streams import stream
from gcnsim.graph import build_csr
from gcnsim.graph.assign import partition_graph
from gcnsim.graph.parts import Part, split
from gcnsim.workload.draws import draw_edges
from tests.sampled import edge_probabilities, edge_weights

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
