"""The sampled sum over neighbours: unbiased, and with less variance under the rule that minimises it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, partial

import numpy as np
import pytest
import torch

from gcnsim.core.ids import Float32Array, FloatArray
from gcnsim.core.streams import stream
from gcnsim.graph.parts import Part
from gcnsim.workload.draws import draw_edges
from gcnsim.workload.samplers import INNER_PREFERENCE, sampler
from tests.runtime.conftest import Case
from tests.runtime.exchange.dense import builder, local, loops, propagation, spread

DRAWS = 2000
EPSILON = 0.35
Z = 4.5
"""Standard errors: 1 in 150,000 means lies farther out, and each case below has about 100 of them."""

MODELS = {"gcn": "symmetric", "graphsage": "mean"}


def rows_of(part: Part) -> FloatArray:
    """Rows of every local id, [I + B, 2], whose norms differ by a factor of hundreds."""
    draw = stream(6, "rows")
    count = part.inner_nodes + part.boundary_nodes
    values: FloatArray = draw.standard_normal((count, 2)) * np.exp(1.5 * draw.standard_normal((count, 1)))
    return values


def probabilities(part: Part, model: str, rule: str) -> Float32Array:
    """As `psc-gcn` takes them from measured norms."""
    norms = np.linalg.norm(rows_of(part), axis=1)
    if model == "graphsage":
        norms = norms * np.sqrt(np.concatenate([part.inner_degree, part.boundary_degree]) + 1.0)
    return sampler(rule)(part, norms.astype(np.float32)).probabilities(EPSILON).p


def drawn_sums(part: Part, model: str, rule: str) -> FloatArray:
    """The sum over neighbours of every draw, [DRAWS, I, 2]."""
    p = probabilities(part, model, rule)
    made = builder(part, MODELS[model])
    weights = made.weights(1.0 / p.astype(np.float64))
    rows = torch.from_numpy(rows_of(part))
    found = np.empty((DRAWS, part.inner_nodes, 2))
    for graph in range(DRAWS):
        sampled_graph = made.thinned(graph, draw_edges(part, p, stream(0, "trace", part.rank, graph)), weights)
        out = torch.from_numpy(found[graph])
        sampled_graph.inner.multiply(rows[: part.inner_nodes], out)
        if sampled_graph.boundary is not None:
            sampled_graph.boundary.multiply(
                rows[part.inner_nodes + torch.from_numpy(sampled_graph.needed)], out, add=True
            )
    return found


Sums = Callable[[str, str], FloatArray]


@pytest.fixture(scope="module")
def part(case: Case) -> Part:
    """The part whose graphs are drawn."""
    return case.parts(3)[1]


@pytest.fixture(scope="module")
def sums(part: Part) -> Iterator[Sums]:
    """The sums of all draws of `sums(model, rule)`."""
    before = torch.get_num_threads()
    # Products this small take a hundred times longer where two threads wait for each other on a busy machine.
    torch.set_num_threads(1)
    yield cache(partial(drawn_sums, part))
    torch.set_num_threads(before)


@pytest.mark.parametrize("rule", ["uniform", "vr"])
@pytest.mark.parametrize("model", list(MODELS))
def test_the_mean_of_many_draws_is_the_exact_sum(case: Case, part: Part, sums: Sums, model: str, rule: str) -> None:
    found = sums(model, rule)
    whole = local(propagation(case.graph, MODELS[model]), part)
    p = probabilities(part, model, rule).astype(np.float64)
    missing = np.divide(1.0, p) - 1.0
    variance = (whole * ~loops(part)) ** 2 * spread(part, missing) @ rows_of(part) ** 2
    error = found.mean(0) - whole @ rows_of(part)
    random = variance > 1e-20
    assert np.abs(error[~random]).max(initial=0.0) < 1e-12
    deviation = np.sqrt(variance[random] / DRAWS)
    z = error[random] / deviation
    assert np.abs(z).max() < Z
    # Not just inside: as wide as it should be, or the interval would prove nothing.
    assert 0.6 < float(z.std()) < 1.4
    spread_found = found.var(0)[random].sum() / variance[random].sum()
    assert 0.85 < spread_found < 1.15


@pytest.mark.parametrize("model", list(MODELS))
def test_variance_under_vr_is_at_most_that_of_uniform(case: Case, model: str) -> None:
    """Row by row in the measure that the rule minimises, sum_j a_j ||P_ij h_j||^2 (1/p_ij - 1), at the same budget."""
    for part in case.parts(3):
        whole = local(propagation(case.graph, MODELS[model]), part) * ~loops(part)
        preference = np.ones(whole.shape[1])
        preference[: part.inner_nodes] = INNER_PREFERENCE
        size = preference * (rows_of(part) ** 2).sum(1)
        measure, budget = {}, {}
        for rule in ("uniform", "vr"):
            p = probabilities(part, model, rule).astype(np.float64)
            measure[rule] = whole**2 * spread(part, 1.0 / p - 1.0) @ size
            budget[rule] = spread(part, p).sum(1)
        assert (measure["vr"] <= measure["uniform"] * (1 + 1e-5) + 1e-12).all()
        assert measure["vr"].sum() < 0.7 * measure["uniform"].sum()
        np.testing.assert_allclose(budget["vr"], budget["uniform"], rtol=1e-5)


@pytest.mark.parametrize("model", list(MODELS))
def test_variance_found_in_draws_is_less_under_vr(sums: Sums, model: str) -> None:
    assert sums(model, "vr").var(0).sum() < 0.8 * sums(model, "uniform").var(0).sum()
