"""Counts of samples, with their sizes alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gcnsim.core.errors import ScenarioError
from gcnsim.core.streams import stream
from gcnsim.graph.generate import outline
from gcnsim.trace import record_trace
from gcnsim.trace.access import counts
from gcnsim.trace.counts import AccessCounts, BoundaryProfile, class_inclusion
from gcnsim.trace.packaged_profiles import outline_named, profile_at, profile_end
from gcnsim.trace.rescale import with_cross_edges
from gcnsim.trace.sample_counts import cached_nodes, draw_access, draw_counts, expected_access
from gcnsim.trace.sizes_only import mean_ratio, published_profile, size_only_profile
from gcnsim.workload import FAR, crossing_fraction, growth_between, open_growth
from gcnsim.workload.caching import CacheSize
from gcnsim.workload.draws import inclusion
from gcnsim.workload.samplers import VarianceReduction
from studies.boundaries import expected_rows, profile_of


def drawn(profile: BoundaryProfile, **changes: Any) -> AccessCounts:
    settings: dict[str, Any] = {
        "sampler": "uniform",
        "epsilon": 0.1,
        "iterations": 40,
        "seed": 2,
        "cache": CacheSize.none(),
        "policy": "inclusion",
        "feature_width": 8,
    }
    return draw_counts(profile, **(settings | changes))


@pytest.mark.parametrize("policy", ["inclusion", "degree", "random"])
def test_laws(small: Any, policy: str) -> None:
    found = drawn(profile_of(small.parts), cache=CacheSize(fraction=0.4), policy=policy)
    assert (found.hits <= found.rows).all()
    assert (found.hits.sum(axis=2) <= found.cached_rows).all()
    assert (found.rows.sum(axis=2) <= found.boundary_nodes).all()
    assert (found.rows.sum(axis=2) <= found.boundary_edges).all()
    assert (found.inner_edges + found.boundary_edges <= found.entries).all()
    assert not np.diagonal(found.rows, axis1=1, axis2=2).any()
    assert np.array_equal(found.cached_rows, (0.4 * found.boundary_nodes).astype(int))


@pytest.mark.parametrize("changes", [{"sampler": "full"}])
def test_a_full_rate_is_the_whole_partition(small: Any, changes: dict[str, Any]) -> None:
    profile = profile_of(small.parts)
    found = drawn(profile, cache=CacheSize(fraction=0.5), **changes)
    assert (found.rows == profile.nodes.sum(axis=2)).all()
    assert (found.boundary_edges == profile.boundary_entries).all()
    assert (found.inner_edges == profile.inner_entries).all()
    assert (found.hits.sum(axis=2) == found.cached_rows).all()


@pytest.mark.parametrize("policy", ["inclusion", "random"])
@pytest.mark.parametrize(("sampler", "epsilon"), [("vr", 0.3), ("uniform", 0.97), ("full", 1.0)])
def test_draws_are_those_of_every_class_of_every_pair(policy: str, sampler: str, epsilon: float) -> None:
    # Classes without nodes, and what cannot be hit, take no numbers from the generators, so leaving them out is free.
    inner = np.array([500, 400, 300, 600])
    profile = published_profile(inner, np.array([900, 40, 70, 400]), 40 * inner, 0.3, 1.3)
    size = CacheSize(fraction=0.3)
    found = drawn(profile, cache=size, policy=policy, sampler=sampler, epsilon=epsilon, iterations=3)
    rate = 1.0 if sampler == "full" else epsilon
    chance, m, nodes = class_inclusion(profile, rate), profile.cross_edges, profile.nodes
    extra = np.clip((m * rate / chance - 1.0) / np.maximum(m - 1, 1), 0.0, 1.0)
    cached = cached_nodes(profile, size, policy, 8, 2)
    for t in range(3):
        generator = stream(2, "profile", t)
        needed = generator.binomial(nodes, chance)
        per_class = needed.sum(axis=1)
        more = generator.binomial(per_class * (m - 1), extra)
        hits = stream(2, "hits", t).hypergeometric(cached, nodes - cached, needed)
        assert np.array_equal(found.rows[t], needed.sum(axis=2))
        assert np.array_equal(found.hits[t], hits.sum(axis=2))
        assert np.array_equal(found.boundary_edges[t], (per_class + more).sum(axis=1))
        assert np.array_equal(found.inner_edges[t], generator.binomial(profile.inner_entries, rate))


def test_the_most_connected_classes_are_cached_first(small: Any) -> None:
    profile = profile_of(small.parts)
    cached = cached_nodes(profile, CacheSize(fraction=0.3), "inclusion", 8, 0)
    for rank in range(4):
        held, total = cached[rank].sum(axis=0), profile.nodes[rank].sum(axis=0)
        partial = np.flatnonzero((held > 0) & (held < total))
        assert partial.size <= 1
        lowest = np.flatnonzero(held)[0]
        assert np.array_equal(held[lowest + 1 :], total[lowest + 1 :])
    assert (cached <= profile.nodes).all()


def test_seeds_and_prefixes(small: Any) -> None:
    profile = profile_of(small.parts)
    assert np.array_equal(drawn(profile).rows, drawn(profile).rows)
    assert np.array_equal(drawn(profile).rows[:5], drawn(profile, iterations=5).rows)
    assert not np.array_equal(drawn(profile).rows, drawn(profile, seed=3).rows)


def test_drawn_counts_agree_with_recorded_ones_on_a_real_graph(real: Callable[[str], Any]) -> None:
    case, size = real("amazon_cs"), CacheSize(fraction=0.2)
    trace = record_trace(case.parts, case.owners, sampler="uniform", epsilon=0.1, iterations=40, seed=1)
    true, guess = counts(trace, size, "inclusion", 8, 0), drawn(profile_of(case.parts), cache=size)
    for name in ("rows", "hits"):
        left, right = getattr(true, name).sum(axis=(1, 2)), getattr(guess, name).sum(axis=(1, 2))
        error = np.sqrt((left.var() + right.var()) / 40)
        assert abs(left.mean() - right.mean()) < 4 * error
        assert 0.5 < left.std() / right.std() < 2.0
    for name in ("inner_edges", "boundary_edges"):
        left, right = getattr(true, name).sum(axis=1), getattr(guess, name).sum(axis=1)
        assert abs(left.mean() - right.mean()) < 4 * np.sqrt((left.var() + right.var()) / 40)
        assert 0.5 < left.std() / right.std() < 2.0


@pytest.mark.parametrize("name", ["tolokers", "amazon_cs"])
def test_the_first_order_rule_for_vr_is_as_far_off_as_it_says(real: Callable[[str], Any], name: str) -> None:
    case = real(name)
    for epsilon in (0.1, 0.01):
        exact = sum(inclusion(part, VarianceReduction(part).probabilities(epsilon).p).sum() for part in case.parts)
        ratio = expected_rows(profile_of(case.parts), epsilon).sum() / exact
        assert 0.77 < ratio < 1.06


PAPERS = "ogbn-papers100M"


@pytest.mark.parametrize("parts", [32, 50, 192])
def test_sizes_are_published_and_the_mean_ratio_is_that_of_the_outline(parts: int) -> None:
    facts, (found, note) = outline(PAPERS), profile_at(PAPERS, parts)
    assert note == "by assumption"
    assert (found.parts, found.origin.source) == (parts, "outline")
    assert found.inner_nodes.sum() == facts.nodes
    assert found.entries.sum() == facts.entries
    ratios = found.boundary_nodes / found.inner_nodes
    assert ratios.mean() == pytest.approx(mean_ratio(facts, parts), rel=1e-5)
    assert ratios / ratios.mean() == pytest.approx(np.array(facts.boundary.uneven(parts)), rel=1e-5)
    assert mean_ratio(facts, parts) == pytest.approx(0.4 * (parts / 32) ** 0.94)


def test_the_boundary_has_a_range_that_a_published_time_allows() -> None:
    ends = [profile_end(PAPERS, 32, end, 1) for end in range(3)]
    ratios = [float(end.boundary_nodes.sum() / end.inner_nodes.sum()) for end in ends]
    assert ratios == pytest.approx([0.25, 0.4, 0.47], rel=1e-5)
    assert ends[1].boundary_nodes.tolist() == profile_at(PAPERS, 32)[0].boundary_nodes.tolist()


@pytest.mark.parametrize("name", [PAPERS, "orkut", "igb-medium"])
def test_entries_cross_by_the_law_and_the_ends_are_its_range(name: str) -> None:
    facts, profile = outline_named(name), profile_at(name, 32)[0]
    assert facts is not None
    share = crossing_fraction(mean_ratio(facts, 32), facts.entries / facts.nodes)
    assert profile.boundary_entries.sum() / profile.entries.sum() == pytest.approx(share.likely, rel=0.05)
    low, high = profile.origin.cross_range
    assert low * share.likely == pytest.approx(share.low)
    assert high * share.likely == pytest.approx(share.high, rel=0.05)
    ends = [with_cross_edges(profile, factor).cross_edges_mean for factor in (low, 1.0, high)]
    assert ends == sorted(ends)


@pytest.mark.parametrize("name", ["orkut", "igb-tiny"])
def test_by_sizes_the_boundary_grows_as_that_of_other_graphs(name: str) -> None:
    facts = outline_named(name)
    assert facts is not None
    degree = facts.entries / facts.nodes
    low, likely, high = (mean_ratio(facts, 16, end) for end in range(3))
    assert likely == pytest.approx(facts.boundary.likely * growth_between(4, 16, degree))
    assert low == pytest.approx(facts.boundary.low * growth_between(4, 16, degree) * open_growth(4, 16).low)
    assert high == pytest.approx(facts.boundary.high * growth_between(4, 16, degree) * open_growth(4, 16).high)


def test_rows_are_those_of_the_uniform_rule() -> None:
    profile = profile_at(PAPERS, 32)[0]
    cells = profile.cells["uniform"]
    requested = expected_access(
        profile, sampler="uniform", epsilon=0.25, cache=CacheSize(), policy="inclusion", feature_width=128
    )
    chance = 1.0 - 0.75**cells.cross_edges
    assert requested.rows == pytest.approx((cells.nodes * chance[:, None, :]).sum(axis=2), rel=1e-9)
    assert requested.inner_edges == pytest.approx(0.25 * profile.inner_entries)


def test_counts_are_drawn_even_of_192_parts() -> None:
    profile = profile_at(PAPERS, 192)[0]
    counts = draw_access(
        profile,
        sampler="vr",
        epsilon=0.1,
        iterations=2,
        seed=0,
        cache=CacheSize(fraction=0.1),
        policy="inclusion",
        feature_width=128,
    )
    assert counts.rows.shape == (2, 192, 192)
    assert 0.1 < counts.hit_rate < 1.0


@pytest.mark.parametrize("end", range(3))
@pytest.mark.parametrize("name", [PAPERS, "pubmed", "uk-2006"])
def test_a_boundary_is_no_more_than_all_other_nodes(name: str, end: int) -> None:
    facts = outline_named(name)
    assert facts is not None
    profile = size_only_profile(facts, 2, end)
    assert (profile.boundary_nodes <= profile.inner_nodes[::-1]).all()
    assert (profile.inner_entries > 0).all()


def test_beyond_any_published_run_the_growth_of_the_boundary_is_open() -> None:
    facts = outline(PAPERS)
    assert [mean_ratio(facts, 32, end) for end in range(3)] == [0.25, 0.4, 0.47]
    assert mean_ratio(facts, FAR, 2) / mean_ratio(facts, FAR) == pytest.approx(0.47 / 0.4)
    low, likely, high = (mean_ratio(facts, 1024, end) for end in range(3))
    assert low / likely == pytest.approx(0.25 / 0.4 * open_growth(FAR, 1024).low)
    assert high / likely == pytest.approx(0.47 / 0.4 * open_growth(FAR, 1024).high)
    ends = [profile_end(PAPERS, 400, end, 1) for end in range(3)]
    ratios = [float(end.boundary_nodes.sum() / end.inner_nodes.sum()) for end in ends]
    assert ratios == pytest.approx([mean_ratio(facts, 400, end) for end in range(3)], rel=1e-4)


@pytest.mark.parametrize(("parts", "end"), [(400, 1), (1024, 1), (1024, 2)])
def test_many_parts_ask_for_no_more_edges_than_there_are(parts: int, end: int) -> None:
    facts = outline(PAPERS)
    profile = size_only_profile(facts, parts, end)
    cells = profile.cells["vr"]
    assert cells.nodes.nbytes <= 4 * 16 * parts**2
    assert profile.inner_nodes.sum() == facts.nodes
    assert profile.entries.sum() == facts.entries
    edges = (cells.nodes.sum(axis=1) * cells.cross_edges).sum(axis=1)
    assert (edges <= 0.96 * profile.entries).all()
    assert edges == pytest.approx(profile.boundary_entries, rel=0.01)
    low, high = profile.origin.cross_range
    assert low < 1.0 <= high
    assert high * profile.boundary_entries.sum() <= max(1.0, 0.951 / 0.95) * 0.951 * profile.entries.sum()


def test_fewer_classes_of_cross_edges_ask_for_as_many_rows() -> None:
    facts = outline(PAPERS)
    question: dict[str, Any] = {
        "sampler": "vr",
        "cache": CacheSize(fraction=0.2),
        "policy": "inclusion",
        "feature_width": 128,
    }
    coarse, fine = (size_only_profile(facts, parts) for parts in (FAR + 1, FAR))
    assert coarse.cells["vr"].nodes.shape[2] < 20 < fine.cells["vr"].nodes.shape[2]
    for epsilon in (0.01, 0.1, 0.3):
        found, wanted = (expected_access(item, epsilon=epsilon, **question) for item in (coarse, fine))
        # A part more has a little more boundary in all.
        more = coarse.boundary_nodes.sum() / fine.boundary_nodes.sum()
        assert found.rows.sum() / wanted.rows.sum() == pytest.approx(more, rel=0.006)
        assert found.hits.sum() / wanted.hits.sum() == pytest.approx(more, rel=0.01)


def test_unknown_names_and_rates_are_refused(small: Any) -> None:
    profile = profile_of(small.parts)
    with pytest.raises(ScenarioError, match="sampler: unknown"):
        drawn(profile, sampler="half")
    with pytest.raises(ScenarioError, match="cache policy: unknown"):
        drawn(profile, policy="lru")
    with pytest.raises(ScenarioError, match="epsilon: 0 is outside"):
        drawn(profile, epsilon=0.0)
