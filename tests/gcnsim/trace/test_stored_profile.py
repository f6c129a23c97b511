from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gcnsim.core.errors import FileError
from gcnsim.trace.bins import RATES, Bins
from gcnsim.trace.counts import AccessCounts
from gcnsim.trace.rescale import between, means_of, rescaled_profile, with_counts, with_cross_edges, with_senders
from gcnsim.trace.sample_counts import draw_access, expected_access, node_counts
from gcnsim.trace.stored_profile import StoredProfile, enlarged, is_profile, read_profile, stored_profile, write_profile
from gcnsim.workload.caching import CacheSize
from gcnsim.workload.draws import inclusion
from studies.boundaries import profile_of
from tests.sampled import edge_probabilities


@pytest.fixture(scope="module")
def stored(small: Any) -> StoredProfile:
    return stored_profile(small.parts, small.owners)


def drawn(profile: StoredProfile, fraction: float = 0.3, **other: Any) -> AccessCounts:
    question: dict[str, Any] = {"sampler": "vr", "epsilon": 0.2, "iterations": 400, "seed": 3, "policy": "inclusion"}
    return draw_access(profile, cache=CacheSize(fraction=fraction), feature_width=8, **{**question, **other})


def test_sizes_are_those_of_the_partition(small: Any, stored: StoredProfile) -> None:
    exact = profile_of(small.parts)
    assert np.array_equal(stored.pairs, exact.nodes.sum(axis=2))
    for name in ("boundary_nodes", "inner_nodes", "inner_entries", "boundary_entries", "entries"):
        assert np.array_equal(getattr(stored, name), getattr(exact, name))
    cells = stored.cells["uniform"]
    crossing = (cells.nodes.sum(axis=1) * cells.cross_edges).sum(axis=1)
    assert crossing == pytest.approx(stored.boundary_entries)


@pytest.mark.parametrize("sampler", ["uniform", "vr"])
@pytest.mark.parametrize("epsilon", [*RATES, 1.0])
def test_expected_rows_at_stored_rates_are_the_inclusion_of_every_pair(
    small: Any, stored: StoredProfile, sampler: str, epsilon: float
) -> None:
    found = expected_access(
        stored, sampler=sampler, epsilon=epsilon, cache=CacheSize(), policy="inclusion", feature_width=8
    )
    for part in small.parts:
        p = edge_probabilities(sampler, part, epsilon)
        chance = np.concatenate([[0.0], np.cumsum(inclusion(part, p))])
        assert found.rows[part.rank] == pytest.approx(np.diff(chance[part.boundary_ptr]), rel=1e-4, abs=1e-3)
        kept = p[part.columns >= part.inner_nodes].sum(dtype=np.float64)
        assert found.boundary_edges[part.rank] == pytest.approx(kept, rel=1e-5)
    assert not found.hits.any()


def test_between_stored_rates_uniform_sampling_is_exact_to_a_percent(small: Any, stored: StoredProfile) -> None:
    found = expected_access(
        stored, sampler="uniform", epsilon=0.14, cache=CacheSize(), policy="degree", feature_width=8
    )
    for part in small.parts:
        true = inclusion(part, edge_probabilities("uniform", part, 0.14)).sum()
        assert found.rows[part.rank].sum() == pytest.approx(true, rel=0.01)


@pytest.mark.parametrize("epsilon", [0.95, 0.999])
def test_beyond_the_largest_stored_rate_kept_entries_go_to_all(
    small: Any, stored: StoredProfile, epsilon: float
) -> None:
    found = expected_access(
        stored, sampler="vr", epsilon=epsilon, cache=CacheSize(), policy="inclusion", feature_width=8
    )
    for part in small.parts:
        p = edge_probabilities("vr", part, epsilon)
        kept = p[part.columns >= part.inner_nodes].sum(dtype=np.float64)
        assert found.boundary_edges[part.rank] == pytest.approx(kept, rel=0.02)


@pytest.mark.parametrize("policy", ["inclusion", "random"])
def test_draws_have_the_expected_mean_and_never_more_than_there_is(stored: StoredProfile, policy: str) -> None:
    counts = drawn(stored, policy=policy)
    mean = expected_access(
        stored, sampler="vr", epsilon=0.2, cache=CacheSize(fraction=0.3), policy=policy, feature_width=8
    )
    assert (counts.rows <= stored.pairs).all()
    assert (counts.hits <= counts.rows).all()
    assert (counts.boundary_edges >= counts.rows.sum(axis=2)).all()
    assert (counts.inner_edges <= stored.inner_entries).all()
    error = np.sqrt(np.maximum(mean.rows, 1.0) / counts.iterations)
    assert (np.abs(counts.rows.mean(axis=0) - mean.rows) <= 5.0 * error).all()
    assert (np.abs(counts.hits.mean(axis=0) - mean.hits) <= 5.0 * error + 0.25).all()
    assert counts.boundary_edges.mean(axis=0) == pytest.approx(mean.boundary_edges, rel=0.02)
    spread = np.maximum(mean.rows - mean.rows_squares, 0.2)
    assert counts.rows.var(axis=0) == pytest.approx(spread, rel=0.5, abs=1.0)
    assert counts.cached_rows.tolist() == [int(0.3 * nodes + 1e-9) for nodes in stored.boundary_nodes]


def test_rows_and_edges_do_not_depend_on_the_cache_but_on_the_seed(stored: StoredProfile) -> None:
    one, other = drawn(stored, 0.0), drawn(stored, 0.5, policy="degree")
    assert np.array_equal(one.rows, other.rows)
    assert np.array_equal(one.boundary_edges, other.boundary_edges)
    assert not one.hits.any()
    assert other.hits.any()
    assert not np.array_equal(one.rows, drawn(stored, seed=4).rows)


def test_every_edge_needs_the_whole_boundary(stored: StoredProfile) -> None:
    counts = drawn(stored, 1.0, sampler="full", epsilon=0.1, iterations=1)
    assert np.array_equal(counts.rows[0], stored.pairs)
    assert np.array_equal(counts.hits, counts.rows)
    assert np.array_equal(counts.boundary_edges[0], stored.boundary_entries)


def test_drawn_nodes_are_a_share_of_every_pair(stored: StoredProfile) -> None:
    counts = node_counts(stored, 0.5)
    assert np.array_equal(counts.rows[0], np.rint(0.5 * stored.pairs))
    assert np.array_equal(counts.inner_edges[0], stored.inner_entries)


def test_a_part_without_boundary_towards_some_owners_is_kept(line: Any, tmp_path: Path) -> None:
    write_profile(tmp_path / "p", stored_profile(line.parts, line.owners))
    counts = drawn(read_profile(tmp_path / "p"), epsilon=0.5, iterations=50)
    assert counts.rows[:, 0, 2:].sum() == 0
    assert 0 < counts.rows[:, 0, 1].sum() < 50


def test_a_profile_comes_back_as_it_was(stored: StoredProfile, tmp_path: Path) -> None:
    first = write_profile(tmp_path / "a", stored)
    back = read_profile(tmp_path / "a")
    assert back.origin == stored.origin
    assert np.array_equal(back.pairs, stored.pairs)
    for name, cells in stored.cells.items():
        for field in fields(Bins):
            assert getattr(back.cells[name], field.name) == pytest.approx(getattr(cells, field.name), rel=1e-6)
    assert write_profile(tmp_path / "b", back) == first
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_truncated_and_altered_profiles_are_refused(stored: StoredProfile, tmp_path: Path) -> None:
    path = tmp_path / "p"
    write_profile(path, stored)
    whole = path.read_bytes()
    for size in (0, 100, len(whole) // 2, len(whole) - 64):
        path.write_bytes(whole[:size])
        with pytest.raises(FileError, match=str(path)):
            read_profile(path)
    for position in (100, len(whole) // 2, len(whole) - 200):
        path.write_bytes(whole[:position] + bytes([whole[position] ^ 1]) + whole[position + 1 :])
        with pytest.raises(FileError, match="altered"):
            read_profile(path)


def test_a_profile_that_contradicts_itself_is_refused(stored: StoredProfile, tmp_path: Path) -> None:
    vr = stored.cells["vr"]
    more = vr.nodes.copy()
    more[0, 1, 0] += 1
    fewer = np.zeros_like(stored.boundary_entries)
    wrong = {
        "other boundary nodes": replace(stored, cells={**stored.cells, "vr": replace(vr, nodes=more)}),
        "fewer cross edges": replace(stored, boundary_entries=fewer),
        r"inner_kept'\[0\]\[\d+\] is .*; allowed: a number of at least 0 and at most 1": replace(
            stored, cells={**stored.cells, "vr": replace(vr, inner_kept=vr.inner_kept + 2.0)}
        ),
        r"'inner_nodes'\[0\] is 0; allowed: a whole number of at least 1": replace(
            stored, inner_nodes=np.zeros_like(stored.inner_nodes)
        ),
        r"'inner_entries'\[0\] is -1; allowed": replace(stored, inner_entries=np.full_like(stored.inner_entries, -1)),
        r"'vr.nodes' has|'boundary_entries'\[0\] is 4.6": replace(stored, boundary_entries=fewer + 2**62),
        "cross_range": replace(stored, origin=replace(stored.origin, cross_range=(2.0, 3.0))),
    }
    for complaint, profile in wrong.items():
        write_profile(tmp_path / "p", profile)
        with pytest.raises(FileError, match=complaint):
            read_profile(tmp_path / "p")


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("source", "moon", "origin.source is 'moon'; allowed: graph, surrogate, interpolated, outline"),
        ("scale", -3.0, "origin.scale is -3.0; allowed: above 0, at most 1"),
        ("cross_range", ["a", "b"], "origin.cross_range is ['a', 'b'], wanted a factor to 1, one from 1"),
        ("residuals", {"4": "bad"}, "origin.residuals has 'bad' at '4'"),
        ("residuals", {"four": 0.1}, "origin.residuals has 0.1 at 'four'"),
    ],
)
def test_an_origin_that_cannot_be_is_refused(
    stored: StoredProfile, tmp_path: Path, field: str, value: Any, message: str
) -> None:
    write_profile(tmp_path / "p", replace(stored, origin=replace(stored.origin, **{field: value})))
    with pytest.raises(FileError) as caught:
        read_profile(tmp_path / "p")
    assert str(caught.value).startswith(f"{tmp_path / 'p'}: {message}")


def test_scaled_back_counts_are_multiples(stored: StoredProfile) -> None:
    profile = enlarged(stored, 0.25)
    assert np.array_equal(profile.pairs, 4 * stored.pairs)
    assert np.array_equal(profile.entries, 4 * stored.entries)
    assert profile.cross_edges_mean == pytest.approx(stored.cross_edges_mean)


@pytest.mark.parametrize("scale", [0.4, 1 / 3])
def test_counts_scaled_back_by_no_whole_number_are_read_again(
    stored: StoredProfile, tmp_path: Path, scale: float
) -> None:
    # Cells rounded one by one gave a pair other boundary nodes under each sampler, and the file was refused.
    profile = enlarged(stored, scale)
    write_profile(tmp_path / "p", profile)
    again = read_profile(tmp_path / "p")
    assert np.array_equal(again.pairs, np.rint(stored.pairs / scale))
    assert np.abs(profile.cells["vr"].nodes - stored.cells["vr"].nodes / scale).max() <= 1.0


def test_a_boundary_node_scaled_back_keeps_a_cross_edge(stored: StoredProfile, tmp_path: Path) -> None:
    # Every boundary node with one cross edge: rounded pairs may together have more nodes than rounded entries.
    bare = replace(stored, boundary_entries=stored.boundary_nodes)
    for scale in (0.4, 0.55, 0.7, 0.9):
        profile = enlarged(bare, scale)
        assert (profile.boundary_nodes <= profile.boundary_entries).all()
        write_profile(tmp_path / "p", profile)
        read_profile(tmp_path / "p")


def test_more_cross_edges_need_more_rows_and_keep_all_entries(stored: StoredProfile) -> None:
    rows = []
    for factor in (0.5, 1.0, 2.0):
        profile = with_cross_edges(stored, factor)
        assert np.array_equal(profile.entries, stored.entries)
        assert np.array_equal(profile.pairs, stored.pairs)
        assert (profile.boundary_entries >= profile.boundary_nodes).all()
        rows.append(drawn(profile, 0.0).rows.sum())
    assert rows == sorted(rows)
    assert len(set(rows)) == 3


@pytest.mark.parametrize("largest", [1.05, 1.2])
def test_the_busiest_sender_has_what_is_asked_and_boundaries_stay(stored: StoredProfile, largest: float) -> None:
    wide = rescaled_profile(stored, 6, means_of(stored))
    profile = with_senders(wide, largest)
    sent = profile.pairs.sum(axis=0)
    assert sent.max() / sent.mean() == pytest.approx(largest, rel=0.02)
    assert profile.boundary_nodes == pytest.approx(wide.boundary_nodes, rel=0.01)
    assert np.array_equal(profile.entries, wide.entries)
    assert (profile.pairs <= profile.inner_nodes[None, :]).all()
    assert np.array_equal(profile.pairs, profile.cells["vr"].nodes.sum(axis=2))


def test_a_profile_with_other_counts_has_them_and_keeps_as_large_a_share_of_entries(stored: StoredProfile) -> None:
    inner = stored.inner_nodes[::-1].copy()
    requested = {
        "inner_nodes": inner,
        "entries": stored.entries[::-1].copy(),
        "boundary_nodes": np.rint(0.9 * stored.boundary_nodes).astype(np.int64),
        "boundary_entries": np.rint(0.6 * stored.boundary_entries).astype(np.int64),
    }
    profile = with_counts(stored, requested)
    for name, counts in requested.items():
        assert getattr(profile, name) == pytest.approx(counts, rel=0.02), name
    for sampler, cells in profile.cells.items():
        own = stored.cells[sampler]
        kept = (
            cells.inner_kept * profile.inner_entries[:, None] + cells.boundary_kept * profile.boundary_entries[:, None]
        )
        was = own.inner_kept * stored.inner_entries[:, None] + own.boundary_kept * stored.boundary_entries[:, None]
        share = kept / profile.entries[:, None]
        assert share == pytest.approx(was / stored.entries[:, None], rel=1e-6)


@pytest.mark.parametrize("parts", [3, 6])
def test_a_resized_profile_has_the_asked_means(stored: StoredProfile, parts: int) -> None:
    own = means_of(stored)
    inner, entries, nodes, crossing = own.largest
    largest = (inner, entries, 1.0 + 1.2 * (nodes - 1.0), 1.0 + 1.2 * (crossing - 1.0))
    wanted = replace(own, boundary=1.1 * own.boundary, cross=1.05 * own.cross, largest=largest)
    profile = rescaled_profile(stored, parts, wanted)
    assert profile.parts == parts
    assert profile.inner_nodes.sum() == stored.inner_nodes.sum()
    assert profile.entries.sum() == stored.entries.sum()
    assert not profile.pairs.diagonal().any()
    assert np.array_equal(profile.pairs, profile.cells["vr"].nodes.sum(axis=2))
    got = means_of(profile)
    assert got.boundary == pytest.approx(min(wanted.boundary, parts - 1.0), rel=0.01), "all other nodes at most"
    assert got.cross == pytest.approx(wanted.cross, rel=0.01)
    if wanted.boundary * largest[2] < parts - 1.0:
        assert got.largest == pytest.approx(wanted.largest, rel=0.02)
    assert (profile.pairs <= profile.inner_nodes[None, :]).all()
    for cells in profile.cells.values():
        held = (cells.nodes.sum(axis=1) * cells.cross_edges).sum(axis=1)
        assert held == pytest.approx(profile.boundary_entries, abs=1.0)
    assert (drawn(profile).rows <= profile.pairs).all()


def test_means_between_two_profiles_follow_a_power_law(stored: StoredProfile) -> None:
    low, high = means_of(stored), replace(means_of(stored), boundary=4.0 * means_of(stored).boundary)
    middle = between((2, low), (8, high), 4)
    assert middle.boundary == pytest.approx(2.0 * low.boundary)
    assert middle.cross == pytest.approx(low.cross)
    least = between((2, low), (8, high), 2)
    assert least.boundary == pytest.approx(low.boundary)
    assert least.cross == pytest.approx(low.cross)
    assert least.largest == pytest.approx(low.largest)


@pytest.mark.parametrize("sampler", ["vr"])
def test_a_profile_answers_as_its_graph_does(real: Callable[[str], Any], sampler: str) -> None:
    from gcnsim.trace import prepared_sampling, record_prepared
    from studies.profiles import missed_rows, rows_errors, scenarios

    case = real("amazon_cs")
    profile = stored_profile(case.parts, case.owners)
    prepared = prepared_sampling(sampler, case.parts)
    for scenario in scenarios(4, sampler):
        method = scenario.method
        trace = record_prepared(prepared, case.owners, epsilon=method.epsilon, iterations=1, seed=0)
        many, few = rows_errors(trace, profile, sampler, method)
        assert many <= 0.02, method
        assert few <= 3.0, method
        assert missed_rows(trace, method, 64).sum() > 0.0


def test_only_a_profile_is_one(stored: StoredProfile, tmp_path: Path) -> None:
    write_profile(tmp_path / "a.profile", stored)
    (tmp_path / "b.profile").write_text("no profile")
    assert is_profile(tmp_path / "a.profile") is True
    assert is_profile(tmp_path / "b.profile") is False
    assert is_profile(tmp_path / "missing.profile") is False
