"""Counts of pairs of workers: the same law as node by node, drawn a graph at a time where there are many parts."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from gcnsim.core.ids import IntArray
from gcnsim.graph.generate import outline
from gcnsim.trace.bins import MANY_PARTS
from gcnsim.trace.counts import AccessCounts, BoundaryProfile
from gcnsim.trace.sample_counts import draw_access, draw_counts
from gcnsim.trace.sizes_only import published_profile, size_only_profile
from gcnsim.workload.caching import CacheSize

MANY = MANY_PARTS + 8
SETTINGS: dict[str, Any] = {"sampler": "vr", "epsilon": 0.1, "policy": "inclusion", "feature_width": 8, "seed": 4}


@cache
def profile(parts: int) -> BoundaryProfile:
    inner = np.full(parts, 1_000)
    return published_profile(inner, np.linspace(4_000, 9_000, parts).astype(np.int64), inner * 80, 0.5, 1.3)


def drawn(parts: int = MANY, **changes: Any) -> AccessCounts:
    settings = SETTINGS | {"iterations": 3, "cache": CacheSize(fraction=0.3)} | changes
    return draw_counts(profile(parts), **settings)


def reference(parts: int, iterations: int) -> tuple[IntArray, IntArray]:
    """Rows and hits of every worker, int64[T, P], drawn node by node as the law says."""
    known, size = profile(parts), CacheSize(fraction=0.3)
    assert size.fraction is not None
    generator = np.random.default_rng(1)
    rows, hits = np.zeros((iterations, parts), np.int64), np.zeros((iterations, parts), np.int64)
    for rank in range(parts):
        edges = np.repeat(known.cross_edges, known.of_worker(rank).sum(axis=0))
        cached = np.arange(edges.size) >= edges.size - int(size.fraction * edges.size + 1e-9)
        needed = generator.random((iterations, edges.size)) < 1.0 - 0.9**edges
        rows[:, rank], hits[:, rank] = needed.sum(axis=1), (needed & cached).sum(axis=1)
    return rows, hits


@pytest.mark.parametrize("policy", ["inclusion", "degree", "random"])
@pytest.mark.parametrize("epsilon", [0.02, 0.4, 1.0])
def test_laws(policy: str, epsilon: float) -> None:
    counts, known = drawn(policy=policy, epsilon=epsilon), profile(MANY)
    assert (counts.hits <= counts.rows).all()
    assert (counts.rows <= known.pairs).all()
    assert (counts.hits.sum(axis=2) <= counts.cached_rows).all() or policy == "random"
    assert (counts.rows.sum(axis=2) <= counts.boundary_edges).all()
    assert (counts.boundary_edges <= known.boundary_entries).all()
    assert (counts.inner_edges <= known.inner_entries).all()
    assert not np.diagonal(counts.rows, axis1=1, axis2=2).any()
    assert np.array_equal(counts.cached_rows, (0.3 * known.boundary_nodes + 1e-9).astype(int))


def test_a_full_rate_is_the_whole_partition() -> None:
    counts, known = drawn(sampler="full", iterations=1), profile(MANY)
    assert np.array_equal(counts.rows[0], known.pairs)
    assert np.array_equal(counts.boundary_edges[0], known.boundary_entries)
    assert np.array_equal(counts.hits[0].sum(axis=1), counts.cached_rows)


def test_mean_and_spread_are_those_of_drawn_nodes() -> None:
    counts, (rows, hits) = drawn(iterations=40), reference(MANY, 40)
    for mine, theirs in ((counts.rows.sum(axis=2), rows), (counts.hits.sum(axis=2), hits)):
        error = np.hypot(mine.std(axis=0), theirs.std(axis=0)) / np.sqrt(40)
        off = (mine.mean(axis=0) - theirs.mean(axis=0)) / error
        assert np.abs(off).max() < 5.0
        assert abs(off.mean()) < 0.5
        assert float(mine.std(axis=0).mean() / theirs.std(axis=0).mean()) == pytest.approx(1.0, abs=0.08)
    kept = counts.boundary_edges.mean(axis=0) / profile(MANY).boundary_entries
    assert float(kept.mean()) == pytest.approx(0.1, rel=5e-3)


def test_few_and_many_parts_are_drawn_alike() -> None:
    # One part more changes the law of drawing, and next to nothing of what is asked.
    few, many = (drawn(parts, iterations=20) for parts in (MANY_PARTS, MANY_PARTS + 1))
    for name in ("rows", "hits"):
        of_worker = [getattr(item, name).sum(axis=2).mean() for item in (few, many)]
        assert of_worker[1] == pytest.approx(of_worker[0], rel=3e-3)
    assert many.hit_rate == pytest.approx(few.hit_rate, rel=3e-3)


def test_a_graph_is_the_same_however_many_are_drawn_and_whatever_is_cached() -> None:
    three, one = drawn(), drawn(iterations=1, cache=CacheSize.none())
    assert np.array_equal(three.rows[:1], one.rows)
    assert np.array_equal(three.boundary_edges[:1], one.boundary_edges)
    assert not one.hits.any()
    assert np.array_equal(three.rows, drawn().rows)
    assert not np.array_equal(three.rows[0], three.rows[1])
    assert not np.array_equal(three.rows, drawn(seed=5).rows)


def test_many_parts_of_a_stored_profile_are_drawn_a_graph_at_a_time() -> None:
    found = size_only_profile(outline("ogbn-papers100M"), MANY)
    question = SETTINGS | {"cache": CacheSize(fraction=0.1)}
    one, two = (draw_access(found, iterations=count, **question) for count in (1, 2))
    assert np.array_equal(one.rows, two.rows[:1])
    assert np.array_equal(one.hits, two.hits[:1])
