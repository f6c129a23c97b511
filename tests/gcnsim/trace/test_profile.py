"""Boundary profiles: summaries, expectations, published ones."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

from gcnsim.core.errors import ScenarioError
from gcnsim.core.ids import IntArray
from gcnsim.graph.generate import outline
from gcnsim.trace import record_trace, summarise
from gcnsim.trace.bins import MANY_PARTS
from gcnsim.trace.counts import AccessCounts, BoundaryProfile, class_inclusion
from gcnsim.trace.sample_counts import draw_access, draw_counts
from gcnsim.trace.sizes_only import distribute, likely_cross_fraction, published_profile, size_only_profile
from gcnsim.workload.caching import CacheSize
from gcnsim.workload.draws import inclusion
from studies.boundaries import expected_rows, profile_of
from tests.sampled import edge_probabilities


def test_profile_counts_every_boundary_node_and_cross_edge(small: Any) -> None:
    profile = profile_of(small.parts)
    owner = small.owners.owner
    for part in small.parts:
        row = np.repeat(np.arange(part.inner_nodes), np.diff(part.indptr))
        assert profile.inner_nodes[part.rank] == part.inner_nodes
        for k, node in enumerate(part.boundary):
            m = np.unique(row[part.columns == part.inner_nodes + k]).size
            assert m in profile.cross_edges
            if k == 0:
                of_owner = part.boundary[owner[part.boundary] == owner[node]]
                assert profile.nodes[part.rank, owner[node]].sum() == of_owner.size
    assert np.array_equal(profile.boundary_nodes, [part.boundary_nodes for part in small.parts])
    assert np.array_equal(profile.entries, [part.entries for part in small.parts])
    assert np.array_equal((profile.nodes * profile.cross_edges).sum(axis=(1, 2)), profile.boundary_entries)
    crossing = owner[np.repeat(np.arange(300), small.graph.degrees)] != owner[small.graph.indices]
    assert profile.cross_fraction == pytest.approx(crossing.mean())


@pytest.mark.parametrize("epsilon", [0.01, 0.3, 1.0])
def test_expected_rows_equal_the_inclusion_of_uniform_sampling(small: Any, epsilon: float) -> None:
    rows = expected_rows(profile_of(small.parts), epsilon)
    for part in small.parts:
        chance = inclusion(part, edge_probabilities("uniform", part, epsilon))
        for m in range(part.parts):
            owned = chance[part.boundary_ptr[m] : part.boundary_ptr[m + 1]]
            assert rows[part.rank, m] == pytest.approx(owned.sum(), rel=1e-6)


def test_class_inclusion_is_the_closed_form(small: Any) -> None:
    profile = profile_of(small.parts)
    assert class_inclusion(profile, 0.1) == pytest.approx(1 - 0.9 ** profile.cross_edges.astype(float))
    assert (class_inclusion(profile, 1.0) == 1.0).all()


def test_summary_of_every_worker(small: Any) -> None:
    trace = record_trace(small.parts, small.owners, sampler="uniform", epsilon=0.3, iterations=50, seed=0)
    found = summarise(trace)
    assert [worker.rank for worker in found] == [0, 1, 2, 3]
    for worker, access in zip(found, trace.workers, strict=True):
        assert worker.boundary_nodes == access.boundary_nodes
        assert worker.rows == pytest.approx(access.needed().sum(axis=1).mean())
        assert worker.rows == pytest.approx(sum(worker.rows_by_owner))
        assert worker.rows == pytest.approx(worker.expected_rows, rel=0.1)
        assert worker.inclusion_low <= worker.inclusion_median <= worker.inclusion_high
        assert worker.inclusion_median == pytest.approx(float(np.median(access.inclusion)))
        assert worker.inner_edges + worker.boundary_edges == pytest.approx(0.3 * worker.entries, rel=0.1)
    assert trace.expected_rows == pytest.approx(sum(worker.expected_rows for worker in found))


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
@pytest.mark.parametrize("epsilon", [0.4])
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


def reddit(cross_fraction: float = 0.5, dispersion: float = 1.4) -> BoundaryProfile:
    """Reddit on 6 workers, the published mean counts."""
    entries = np.full(6, 114_600_000 // 6)
    return published_profile(np.full(6, 38_800), np.full(6, 89_400), entries, cross_fraction, dispersion)


@pytest.mark.parametrize("dispersion", [0.8, 1.8])
@pytest.mark.parametrize("cross_fraction", [0.35, 0.74])
def test_published_counts_and_the_assumed_mean_are_kept(cross_fraction: float, dispersion: float) -> None:
    profile = reddit(cross_fraction, dispersion)
    assert profile.boundary_nodes.tolist() == [89_400] * 6
    assert profile.cross_fraction == pytest.approx(cross_fraction, rel=2e-3)
    assert profile.entries.tolist() == [19_100_000] * 6
    assert np.array_equal((profile.nodes * profile.cross_edges).sum(axis=(1, 2)), profile.boundary_entries)
    assert profile.cross_edges.size <= 64
    assert profile.cross_edges[0] == 1


@pytest.mark.parametrize("weights", [[1.0, 1.0, 1.0, 1.0], [1.0, 2.5, 1.0, 7.0], [0.3, 0.3, 0.9, 0.31]])
def test_nodes_are_dealt_in_turns_of_which_an_owner_has_as_many_as_it_weighs(weights: list[float]) -> None:
    found = distribute(np.array([0.2, 0.27, 0.9, 1.0]), 1003, np.array(weights))
    slots = [max(1, round(weight / min(weights) * (1 if len(set(weights)) == 1 else 16))) for weight in weights]
    turns = sorted(((i + 0.5) / count, owner, i) for owner, count in enumerate(slots) for i in range(count))
    owners = [turns[node % len(turns)][1] for node in range(1003)]
    ends = [round(0.2 * 1003), round(0.27 * 1003), round(0.9 * 1003), 1003]
    for k, (first, last) in enumerate(zip([0, *ends], ends, strict=False)):
        assert found[:, k].tolist() == [owners[first:last].count(owner) for owner in range(4)]


@pytest.mark.parametrize("parts", [150])
def test_nodes_are_dealt_when_they_are_asked_for(parts: int) -> None:
    inner = np.full(parts, 700)
    boundary = np.where(np.arange(parts) > 0, 100 + 9 * np.arange(parts), 0)
    profile = published_profile(inner, boundary, 90 * inner, 0.4, 1.2)
    nodes = profile.nodes
    assert nodes.shape == (parts, parts, profile.cross_edges.size)
    assert np.array_equal(nodes.sum(axis=2), profile.pairs)
    assert np.array_equal(profile.boundary_nodes, boundary)
    assert np.array_equal((nodes @ profile.cross_edges).sum(axis=1), profile.boundary_entries)
    assert np.array_equal(profile.of_worker(parts - 1), nodes[-1])


def test_dispersion_is_the_spread_of_the_logarithms() -> None:
    profile = reddit(dispersion=1.0)
    weights, logs = profile.nodes.sum(axis=(0, 1)), np.log(profile.cross_edges)
    mean = np.average(logs, weights=weights)
    assert np.sqrt(np.average((logs - mean) ** 2, weights=weights)) == pytest.approx(1.0, rel=0.02)


def test_uneven_workers_and_workers_without_a_boundary() -> None:
    profile = published_profile(np.array([100, 200, 50]), np.array([30, 0, 40]), np.array([2000, 4000, 1000]), 0.1, 1.0)
    assert profile.boundary_nodes.tolist() == [30, 0, 40]
    assert profile.entries.tolist() == [2000, 4000, 1000]
    assert profile.boundary_entries[1] == 0
    assert profile.boundary_entries[0] == pytest.approx(200, rel=0.1)


def test_one_worker_has_no_boundary() -> None:
    profile = published_profile(np.array([1000]), np.array([0]), np.array([5000]), 0.3, 1.0)
    assert profile.nodes.sum() == 0
    assert profile.inner_entries.tolist() == [5000]
    with pytest.raises(ScenarioError, match="with one worker"):
        published_profile(np.array([1000]), np.array([5]), np.array([5000]), 0.3, 1.0)


def test_the_likely_fraction_follows_the_boundary() -> None:
    low, likely, high = likely_cross_fraction(38_800, 89_400, 492.0)
    assert (low, likely, high) == pytest.approx((0.215, 0.400, 0.661), abs=1e-3)
    assert likely_cross_fraction(10, 1000, 492.0) == (0.95, 0.95, 0.95)


@pytest.mark.parametrize(("name", "dispersion"), [("tolokers", 1.5), ("amazon_cs", 1.5), ("coauthor_phy", 1.0)])
def test_stated_accuracy_on_real_graphs(real: Callable[[str], Any], name: str, dispersion: float) -> None:
    true = profile_of(real(name).parts)
    inner, boundary = int(true.inner_nodes.mean()), int(true.boundary_nodes.mean())
    low, _, high = likely_cross_fraction(inner, boundary, float(true.entries.sum() / true.inner_nodes.sum()))
    assert low <= true.cross_fraction <= high
    for spread, below, above in ((dispersion, 0.95, 1.05), (1.3, 0.91, 1.16)):
        guess = published_profile(
            np.full(4, inner), np.full(4, boundary), np.full(4, true.entries.sum() // 4), true.cross_fraction, spread
        )
        for epsilon in (0.5, 0.1, 0.01):
            ratio = expected_rows(guess, epsilon).sum() / expected_rows(true, epsilon).sum()
            assert below - 0.005 < ratio < above + 0.005


def test_impossible_cross_fractions_are_refused() -> None:
    with pytest.raises(ScenarioError, match=r"cross fraction: 0 is outside \(0, 1\]"):
        reddit(0.0)
    with pytest.raises(ScenarioError, match=r"cross fraction: 0\.001 gives worker 0 0\.214 edges per boundary node"):
        reddit(0.001)
    with pytest.raises(ScenarioError, match="allowed: 1 to its 10 inner nodes"):
        published_profile(np.array([10, 10]), np.array([1, 1]), np.array([500, 500]), 0.9, 1.0)
