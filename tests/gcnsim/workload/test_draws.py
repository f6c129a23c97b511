from __future__ import annotations

import itertools

import numpy as np
import pytest

from gcnsim.core.ids import Int32Array
from gcnsim.core.streams import stream
from gcnsim.graph.parts import Part
from gcnsim.workload.draws import Draws, draw, draw_edges, inclusion
from gcnsim.workload.samplers import VarianceReduction
from tests.sampled import edge_probabilities


def two_boundary_nodes() -> Part:
    """Inner 0, 1, 2; boundary 0 has three cross edges, boundary 1 has one."""
    return Part(
        rank=0,
        parts=2,
        inner=np.arange(3),
        boundary=np.array([3, 4]),
        boundary_ptr=np.array([0, 0, 2]),
        indptr=np.array([0, 2, 5, 6]),
        columns=np.array([1, 3, 0, 3, 4, 3], np.int32),
        inner_degree=np.array([2, 3, 1]),
        boundary_degree=np.array([3, 1]),
    )


def test_inclusion_equals_enumeration_of_all_graphs() -> None:
    part = two_boundary_nodes()
    p = np.array([0.5, 0.1, 0.7, 0.25, 0.3, 0.9], np.float32)
    total = np.zeros(2)
    for kept in itertools.product([False, True], repeat=6):
        chance = float(np.prod(np.where(kept, p.astype(float), 1 - p.astype(float))))
        columns = part.columns[np.array(kept)]
        total += chance * np.array([(columns == 3).any(), (columns == 4).any()])
    assert inclusion(part, p) == pytest.approx(total, rel=1e-12)


def test_inclusion_is_one_where_an_edge_is_certain() -> None:
    part = two_boundary_nodes()
    p = np.array([0.5, 1.0, 0.7, 0.25, 0.3, 0.9], np.float32)
    assert inclusion(part, p)[0] == 1.0
    assert inclusion(part, np.ones(6, np.float32)).tolist() == [1.0, 1.0]


def test_draw_and_draw_edges_are_the_same_graph(parts: tuple[Part, ...]) -> None:
    for part in parts:
        p = VarianceReduction(part).probabilities(0.2).p
        needed, inner, boundary = draw(part, p, stream(4, "trace", part.rank, 0))
        edges = draw_edges(part, p, stream(4, "trace", part.rank, 0))
        columns = part.columns[edges]
        assert inner == np.count_nonzero(columns < part.inner_nodes)
        assert boundary == np.count_nonzero(columns >= part.inner_nodes)
        wanted = np.unique(columns[columns >= part.inner_nodes]) - part.inner_nodes
        assert np.array_equal(np.flatnonzero(needed), wanted)


def test_certain_edges_are_always_drawn(parts: tuple[Part, ...]) -> None:
    part = parts[0]
    needed, inner, boundary = draw(part, edge_probabilities("full", part, 1.0), stream(0, "any"))
    assert needed.all()
    assert inner + boundary == part.entries


def test_mean_rows_drawn_equal_the_sum_of_inclusion(parts: tuple[Part, ...]) -> None:
    part, draws = parts[1], 400
    p = VarianceReduction(part).probabilities(0.1).p
    chance = inclusion(part, p)
    rows = np.array([draw(part, p, stream(7, t))[0].sum() for t in range(draws)])
    # Draws of different boundary nodes are independent: the variance of a draw is the sum of p (1 - p).
    error = np.sqrt((chance * (1 - chance)).sum() / draws)
    assert abs(rows.mean() - chance.sum()) < 4 * error


def test_mean_edges_drawn_equal_the_budget(parts: tuple[Part, ...]) -> None:
    part, draws = parts[2], 400
    p = VarianceReduction(part).probabilities(0.3).p
    kept = np.array([sum(draw(part, p, stream(8, t))[1:]) for t in range(draws)])
    error = np.sqrt((p * (1.0 - p)).sum() / draws)
    assert abs(kept.mean() - 0.3 * part.entries) < 4 * error


@pytest.mark.parametrize("before", [0, 1, 2, 7])
@pytest.mark.parametrize("entries", [0, 1, 2, 3, (1 << 16) + 1, 150_001])
def test_many_draws_use_the_uniforms_of_the_generator_in_their_order(before: int, entries: int) -> None:
    """Also from the middle of a step of it, over several pieces, and what they leave to whoever draws next."""
    draw_p = stream(5, "p")
    part = one_row(draw_p.integers(0, 40, entries).astype(np.int32), inner=10, boundary=30)
    steps = draw_p.integers(0, 1 << 24, entries, endpoint=True)
    p = np.where(draw_p.random(entries) < 0.5, steps * 2.0**-24, draw_p.random(entries) ** 8).astype(np.float32)
    p[: entries // 5] = np.arange(entries // 5) % 2
    ready = Draws(part, p)
    for t in range(2):
        plain, generator = stream(6, t), stream(6, t)
        for item in (plain, generator):
            item.random(before, dtype=np.float32)
        kept = part.columns[plain.random(entries, dtype=np.float32) < p]
        needed, inner, boundary = ready.draw(generator)
        assert np.array_equal(np.flatnonzero(needed), np.unique(kept[kept >= 10]) - 10)
        assert inner == np.count_nonzero(kept < 10)
        assert boundary == np.count_nonzero(kept >= 10)
        assert generator.random(3, dtype=np.float32).tolist() == plain.random(3, dtype=np.float32).tolist()


def one_row(columns: Int32Array, inner: int, boundary: int) -> Part:
    """A part whose entries are all in its first row."""
    return Part(
        rank=0,
        parts=2,
        inner=np.arange(inner),
        boundary=np.arange(inner, inner + boundary),
        boundary_ptr=np.array([0, 0, boundary]),
        indptr=np.array([0, *[columns.size] * inner]),
        columns=columns,
        inner_degree=np.zeros(inner, np.int64),
        boundary_degree=np.zeros(boundary, np.int64),
    )
