"""The matrices of drawn graphs against rows of the dense propagation matrix."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import pytest
import torch

from gcnsim.core.ids import BoolArray
from gcnsim.core.streams import stream
from gcnsim.graph.parts import Part, own_send_sets
from gcnsim.workload.samplers import VarianceReduction
from runtime.aggregate import PlainMatrix, matrix_kind
from runtime.exchange import CachedRows, GraphBuilder, static_requests
from tests.runtime.conftest import Case
from tests.runtime.exchange.dense import WEIGHTS, builder, local, loops, of_drawn, propagation, spread
from tests.sampled import draw_edges


def kept_of(part: Part, rate: float, seed: int = 0) -> BoolArray:
    kept: BoolArray = stream(seed, "kept", part.rank).random(part.entries) < rate
    return kept


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("count", [1, 3])
def test_the_whole_graph_is_the_rows_of_p(case: Case, weights: str, count: int) -> None:
    whole = propagation(case.graph, weights)
    for part in case.parts(count):
        sampled_graph = builder(part, weights).whole()
        np.testing.assert_allclose(of_drawn(part, sampled_graph), local(whole, part), rtol=1e-14, atol=0)
        assert np.array_equal(sampled_graph.needed, np.arange(part.boundary_nodes))
        assert sampled_graph.ptr == tuple(part.boundary_ptr.tolist())
        crossing = int(np.count_nonzero(part.columns >= part.inner_nodes))
        assert sampled_graph.edges == (part.entries - crossing, crossing)
        assert (sampled_graph.boundary is None) == (part.boundary_nodes == 0)
        assert (sampled_graph.rows, sampled_graph.hits) == (part.boundary_nodes, 0)


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("rate", [0.0, 0.3, 1.0])
def test_a_thinned_graph_is_p_masked_and_divided(case: Case, weights: str, rate: float) -> None:
    whole = propagation(case.graph, weights)
    for part in case.parts(3):
        kept = kept_of(part, rate)
        p = stream(1, "p", part.rank).uniform(0.1, 1.0, part.entries)
        made = builder(part, weights)
        sampled_graph = made.thinned(7, kept, made.weights(1.0 / p))
        factor = spread(part, kept / p) + loops(part)
        np.testing.assert_allclose(of_drawn(part, sampled_graph), local(whole, part) * factor, rtol=1e-13, atol=0)
        crossing = part.columns >= part.inner_nodes
        assert sampled_graph.graph == 7
        assert sampled_graph.edges == (int((kept & ~crossing).sum()), int((kept & crossing).sum()))
        wanted = np.unique(part.columns[kept & crossing]) - part.inner_nodes
        assert np.array_equal(sampled_graph.needed, wanted)
        assert sampled_graph.ptr == tuple(np.searchsorted(wanted, part.boundary_ptr).tolist())
        assert (sampled_graph.boundary is None) == (wanted.size == 0)


def test_entries_keep_their_order_and_each_weight_is_rounded_once(case: Case) -> None:
    for part in case.parts(3):
        made = GraphBuilder(part, "symmetric", PlainMatrix, torch.float32, torch.device("cpu"))
        p = VarianceReduction(part).probabilities(0.3).p
        kept = draw_edges(part, p, stream(5, "order", part.rank))
        graph = made.thinned(0, kept, made.weights(np.divide(1.0, p, dtype=np.float64)))
        count, row = part.inner_nodes, np.repeat(np.arange(part.inner_nodes), np.diff(part.indptr))
        scale = 1.0 / np.sqrt(np.concatenate([part.inner_degree, part.boundary_degree]) + 1.0)
        weight = scale[row] * scale[part.columns] * (1.0 / p.astype(np.float64))
        own = 1.0 / (part.inner_degree.astype(np.float64) + 1.0)
        near, far = (np.flatnonzero(kept & (inside == (part.columns < count))) for inside in (True, False))
        # A self-loop follows the entries of its row.
        order = np.argsort(np.concatenate([row[near], np.arange(count)]), kind="stable")
        columns = np.concatenate([part.columns[near], np.arange(count)])[order]
        values = np.concatenate([weight[near], own])[order].astype(np.float32)
        assert np.array_equal(graph.inner.rows.columns, columns)
        assert np.array_equal(graph.inner.rows.values, values)
        assert np.array_equal(np.diff(graph.inner.rows.indptr), np.bincount(row[near], minlength=count) + 1)
        assert graph.boundary is not None
        assert np.array_equal(graph.needed[graph.boundary.rows.columns], part.columns[far] - count)
        assert np.array_equal(graph.boundary.rows.values, weight[far].astype(np.float32))
        assert np.array_equal(np.diff(graph.boundary.rows.indptr), np.bincount(row[far], minlength=count))


@pytest.mark.parametrize("held", [False, True], ids=["none", "held"])
@pytest.mark.parametrize("rate", [0.0, 0.3])
def test_a_joined_graph_is_the_pattern_with_its_transpose(case: Case, rate: float, held: bool) -> None:
    for part in case.parts(3):
        slot = np.full(part.boundary_nodes, -1, np.int64)
        slot[::3] = np.arange(slot[::3].size)
        cached = CachedRows(slot, torch.zeros(slot[::3].size, 1)) if held else None
        made, kept = builder(part, "symmetric"), kept_of(part, rate)
        given = 0, kept, made.weights(np.ones(part.entries)), cached
        plain, joined = made.thinned(*given), made.thinned(*given, joined=True)
        assert joined.with_requests(static_requests(own_send_sets(part), torch.device("cpu"))).pattern is joined.pattern
        for one, other in ((plain.pattern, joined.pattern), (plain.inner, joined.inner)):
            assert all(
                np.array_equal(getattr(one.rows, name), getattr(other.rows, name)) for name in ("indptr", "columns")
            )
        g = torch.from_numpy(stream(2, "g").standard_normal((part.inner_nodes, 4)))
        out = torch.zeros(part.inner_nodes + joined.rows, 4, dtype=torch.float64)
        joined.pattern.multiply_transposed(g, out)
        rows, columns = (torch.from_numpy(place) for place in joined.pattern.rows.places)
        weights = torch.from_numpy(joined.pattern.rows.values)
        dense = torch.zeros_like(out).index_add_(0, columns, weights[:, None] * g[rows])
        torch.testing.assert_close(out, dense, rtol=1e-12, atol=1e-15)


def test_graphs_drawn_after_another_do_not_change_it(case: Case) -> None:
    part = case.parts(3)[0]
    made = builder(part, "symmetric")
    weights = made.weights(np.full(part.entries, 2.0))
    first = made.thinned(0, kept_of(part, 0.4, 1), weights)
    before = of_drawn(part, first)
    whole = of_drawn(part, made.whole())
    made.thinned(1, kept_of(part, 0.4, 2), weights)
    assert np.array_equal(of_drawn(part, first), before)
    assert np.array_equal(of_drawn(part, made.whole()), whole)


@pytest.mark.parametrize("weights", WEIGHTS)
def test_held_rows_only_change_the_order_of_columns(case: Case, weights: str) -> None:
    part = case.parts(3)[2]
    slot = np.full(part.boundary_nodes, -1, np.int64)
    slot[::3] = np.arange(slot[::3].size)
    held = CachedRows(slot, torch.zeros(slot[::3].size, 1))
    made = builder(part, weights)
    kept = kept_of(part, 0.5)
    factors = made.weights(np.full(part.entries, 2.0))
    for plain, cached in (
        (made.whole(), made.whole(held)),
        (made.thinned(0, kept, factors), made.thinned(0, kept, factors, held)),
    ):
        assert np.array_equal(of_drawn(part, plain), of_drawn(part, cached))
        assert np.array_equal(np.sort(cached.needed), plain.needed)
        assert cached.ptr == plain.ptr
        assert cached.hits == np.count_nonzero(slot[plain.needed] >= 0) > 0
        assert plain.hits == 0


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("rate", [0.0, 0.4, 1.0])
def test_with_boundary_scales_chosen_columns_and_drops_the_others(case: Case, weights: str, rate: float) -> None:
    whole = propagation(case.graph, weights)
    for part in case.parts(3):
        draw = stream(2, "chosen", part.rank)
        chosen = draw.random(part.boundary_nodes) < rate
        factor = draw.uniform(1.0, 3.0, part.boundary_nodes)
        sampled_graph = builder(part, weights).with_boundary(4, chosen, factor)
        scale = np.concatenate([np.ones(part.inner_nodes), chosen * factor])
        np.testing.assert_allclose(of_drawn(part, sampled_graph), local(whole, part) * scale, rtol=1e-13, atol=0)
        assert np.array_equal(sampled_graph.needed, np.flatnonzero(chosen))
        assert sampled_graph.ptr == tuple(np.searchsorted(np.flatnonzero(chosen), part.boundary_ptr).tolist())


@pytest.mark.parametrize("weights", WEIGHTS)
def test_self_normalised_rows_keep_their_sum(case: Case, weights: str) -> None:
    whole = propagation(case.graph, weights)
    for part in case.parts(3):
        kept = kept_of(part, 0.3)
        made = builder(part, weights)
        sampled_graph = made.thinned(0, kept, made.weights(made.self_normalised(kept)))
        off = ~loops(part)
        found, wanted = of_drawn(part, sampled_graph), local(whole, part)
        some = (spread(part, kept) > 0).any(1)
        np.testing.assert_allclose((found * off).sum(1)[some], (wanted * off).sum(1)[some], rtol=1e-13)
        assert not (found * off)[~some].any()
        assert (~some & (part.inner_degree > 0)).any(), "a row that lost all its entries is among them"
        assert np.array_equal(np.diagonal(found), np.diagonal(wanted)), "self-loops stay as they are"
        ratio = np.divide(found, wanted, out=np.zeros_like(found), where=(found > 0) & off)
        rows = [row[row > 0] for row in ratio[some]]
        assert all(np.allclose(row, row[0], rtol=1e-12) for row in rows), "one factor per row"


@pytest.mark.parametrize("weights", WEIGHTS)
def test_means_are_plain_means_of_what_is_kept(case: Case, weights: str) -> None:
    for part in case.parts(3):
        kept = kept_of(part, 0.3)
        made = builder(part, weights)
        found = of_drawn(part, made.thinned(0, kept, None))
        present = (spread(part, kept) > 0) | (loops(part) if weights != "mean" else False)
        count = present.sum(1, keepdims=True)
        np.testing.assert_allclose(found, present / np.maximum(count, 1), rtol=1e-14, atol=0)
        assert (count == (weights != "mean")).any(), "a row that keeps none of its neighbours is among them"


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize(
    "name",
    ["numba", pytest.param("dgl", marks=pytest.mark.skipif(find_spec("dgl") is None, reason="DGL is not installed"))],
)
def test_factors_of_rows_and_columns_are_the_weights_of_entries(case: Case, name: str, weights: str) -> None:
    """Kernels that read factors multiply as those that read a value per entry, forward and backward."""
    for part in case.parts(3):
        plain, other = builder(part, weights), builder(part, weights, matrix_kind(name))
        kept, chosen = kept_of(part, 0.4), stream(2, "chosen", part.rank).random(part.boundary_nodes) < 0.5
        factor = stream(3, "factor", part.rank).uniform(1.0, 3.0, part.boundary_nodes)
        for wanted, found in (
            (plain.whole(), other.whole()),
            (plain.with_boundary(1, chosen, factor), other.with_boundary(1, chosen, factor)),
            (plain.thinned(2, kept, None), other.thinned(2, kept, None)),
        ):
            np.testing.assert_allclose(of_drawn(part, found), of_drawn(part, wanted), rtol=1e-13, atol=0)
            assert found.inner.rows.factors is not None
            g = torch.from_numpy(stream(4, "g").standard_normal((part.inner_nodes, 19)))
            for mine, theirs in ((found.inner, wanted.inner), (found.boundary, wanted.boundary)):
                if mine is None or theirs is None:
                    continue
                back, expected = (torch.empty(theirs.rows.width, 19, dtype=torch.float64) for _ in range(2))
                mine.multiply_transposed(g, back)
                theirs.multiply_transposed(g, expected)
                np.testing.assert_allclose(back.numpy(), expected.numpy(), rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("weights", WEIGHTS)
def test_the_pattern_joins_inner_and_boundary_columns(case: Case, weights: str) -> None:
    for part in case.parts(3):
        made = builder(part, weights)
        p = VarianceReduction(part).probabilities(0.3).p
        kept = draw_edges(part, p, stream(3, "pattern"))
        nothing = np.zeros(part.boundary_nodes, np.bool_)
        for sampled_graph in (
            made.whole(),
            made.thinned(0, kept, made.weights(1.0 / p.astype(np.float64))),
            made.with_boundary(0, nothing, np.ones(part.boundary_nodes)),
        ):
            rows = sampled_graph.pattern.rows
            assert rows.width == part.inner_nodes + sampled_graph.rows
            found = np.zeros((part.inner_nodes, rows.width))
            found[np.repeat(np.arange(part.inner_nodes), np.diff(rows.indptr)), rows.columns] = rows.values
            order = np.concatenate([np.arange(part.inner_nodes), part.inner_nodes + sampled_graph.needed])
            assert np.array_equal(found, of_drawn(part, sampled_graph)[:, order])
            assert rows.columns.size == np.count_nonzero(found), "no entry is stored twice"
