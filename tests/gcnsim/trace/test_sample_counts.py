from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gcnsim.core.errors import ScenarioError
from gcnsim.core.streams import stream
from gcnsim.trace import record_trace
from gcnsim.trace.access import counts
from gcnsim.trace.counts import AccessCounts, BoundaryProfile, class_inclusion, expected_rows, profile_of
from gcnsim.trace.sample_counts import cached_nodes, draw_counts
from gcnsim.trace.sizes_only import published_profile
from gcnsim.workload.caching import CacheSize
from gcnsim.workload.draws import inclusion
from gcnsim.workload.samplers import VarianceReduction


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


def test_rows_and_edges_do_not_depend_on_the_cache(small: Any) -> None:
    profile = profile_of(small.parts)
    bare, cached = drawn(profile), drawn(profile, cache=CacheSize(fraction=0.4), policy="random")
    for name in ("rows", "inner_edges", "boundary_edges"):
        assert np.array_equal(getattr(bare, name), getattr(cached, name))
    assert not bare.hits.any()
    assert cached.hits.any()


@pytest.mark.parametrize("changes", [{"sampler": "full"}, {"epsilon": 1.0}])
def test_a_full_rate_is_the_whole_partition(small: Any, changes: dict[str, Any]) -> None:
    profile = profile_of(small.parts)
    found = drawn(profile, cache=CacheSize(fraction=0.5), **changes)
    assert (found.rows == profile.nodes.sum(axis=2)).all()
    assert (found.boundary_edges == profile.boundary_entries).all()
    assert (found.inner_edges == profile.inner_entries).all()
    assert (found.hits.sum(axis=2) == found.cached_rows).all()


@pytest.mark.parametrize("policy", ["inclusion", "degree", "random"])
@pytest.mark.parametrize(("sampler", "epsilon"), [("uniform", 0.02), ("vr", 0.3), ("uniform", 0.97), ("full", 1.0)])
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


def test_unknown_names_and_rates_are_refused(small: Any) -> None:
    profile = profile_of(small.parts)
    with pytest.raises(ScenarioError, match="sampler: unknown"):
        drawn(profile, sampler="half")
    with pytest.raises(ScenarioError, match="cache policy: unknown"):
        drawn(profile, policy="lru")
    with pytest.raises(ScenarioError, match="epsilon: 0 is outside"):
        drawn(profile, epsilon=0.0)


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
