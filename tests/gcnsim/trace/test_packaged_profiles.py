"""The profiles in the package: of today's surrogates, near the published counts, and what lies between them."""

from __future__ import annotations

import shutil
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from gcnsim.core.errors import FileError, ScenarioError
from gcnsim.graph.generate import surrogate_facts, surrogates
from gcnsim.trace import packaged_profiles as packaged
from gcnsim.trace.packaged_profiles import (
    FOLDER,
    bundled_parts,
    bundled_profile,
    interpolation,
    left_out_error,
    profile_at,
    profile_end,
    profile_without,
    profiled_parts,
)
from gcnsim.trace.rescale import means_of
from gcnsim.trace.sample_counts import expected_access
from gcnsim.trace.stored_profile import SAMPLERS, StoredProfile
from gcnsim.workload import boundary_at, dataset, growth_between, left_open, open_growth
from gcnsim.workload.caching import CacheSize

DATASETS = ("ogbn-products", "reddit", "yelp")
PARTS = (2, 3, 4, 5, 6, 8, 10, 16, 32)
SHIPPED = [(name, parts) for name in DATASETS for parts in PARTS]


def test_all_are_shipped_and_small() -> None:
    assert all(bundled_parts(name) == PARTS for name in DATASETS)
    files = [FOLDER / f"{name}-{parts}.profile" for name in DATASETS for parts in bundled_parts(name)]
    assert all(path.stat().st_size < 700_000 for path in files)


@pytest.mark.parametrize("name", surrogates())
def test_every_profile_of_a_dataset_tells_the_same_residuals(name: str) -> None:
    printed: dict[int, float] = {}
    for row in dataset(name).boundary if bundled_parts(name) else ():
        printed |= {row.partitions: row.boundary} if row.partitions in bundled_parts(name) else {}
    for parts in bundled_parts(name):
        content = dict(bundled_profile(name, parts).origin.residuals or {})
        assert content.keys() == {str(count) for count in printed}
        for count, boundary in printed.items():
            missed = float(bundled_profile(name, count).boundary_nodes.mean()) / boundary - 1.0
            assert content[str(count)] == pytest.approx(missed, abs=1e-5)


def test_a_profile_under_another_name_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packaged, "FOLDER", tmp_path)
    shutil.copy(FOLDER / "reddit-6.profile", tmp_path / "yelp-4.profile")
    shutil.copy(FOLDER / "reddit-6.profile", tmp_path / "reddit-4.profile")
    for item in (bundled_parts, bundled_profile):
        item.cache_clear()
    try:
        with pytest.raises(FileError, match=r"yelp-4\.profile: holds reddit at 6 parts; wanted yelp at 4"):
            bundled_profile("yelp", 4)
        with pytest.raises(FileError, match=r"reddit-4\.profile: holds reddit at 6 parts; wanted reddit at 4"):
            bundled_profile("reddit", 4)
    finally:
        for item in (bundled_parts, bundled_profile):
            item.cache_clear()


@pytest.mark.parametrize(("name", "parts"), SHIPPED)
def test_a_shipped_profile_is_of_the_surrogate_as_it_is_drawn_today(name: str, parts: int) -> None:
    profile, facts, published = bundled_profile(name, parts), surrogate_facts(name), dataset(name)
    assert profile.parts == parts
    assert profile.origin.source == "surrogate"
    assert profile.origin.partition_method == facts.partition
    assert profile.origin.model == asdict(facts.model)
    assert profile.origin.surrogate_seed == facts.seed
    assert profile.inner_nodes.sum() == pytest.approx(published.nodes, rel=1e-3)
    assert profile.entries.sum() == pytest.approx(published.entries, rel=1e-3)


@pytest.mark.parametrize(("name", "parts"), SHIPPED)
def test_the_counts_of_a_shipped_profile_agree_with_one_another_and_with_its_dataset(name: str, parts: int) -> None:
    profile = bundled_profile(name, parts)
    assert not profile.pairs.diagonal().any()
    assert (profile.boundary_nodes > 0).all()
    assert (profile.boundary_nodes <= profile.inner_nodes.sum() - profile.inner_nodes).all()
    for cells in profile.cells.values():
        held = cells.nodes.sum(axis=1)
        assert np.array_equal(held.sum(axis=1), profile.boundary_nodes)
        assert (cells.cross_edges[held > 0] >= 1.0).all()
        assert (held * cells.cross_edges).sum(axis=1) == pytest.approx(profile.boundary_entries, rel=1e-3)
        assert (np.diff(cells.inner_kept, axis=1) > 0).all()
    share, (_, boundary, _) = surrogate_facts(name).cross_edges, boundary_at(dataset(name), parts)
    assert profile.boundary_nodes.mean() == pytest.approx(boundary, rel=2e-3)
    ratio = float(profile.boundary_nodes.sum() / profile.inner_nodes.sum())
    assert profile.boundary_entries.sum() / profile.entries.sum() == pytest.approx(share.crossing(ratio), rel=0.02)
    assert profile.origin.cross_range == pytest.approx((share.low / share.likely, share.high / share.likely))


def test_reddits_parts_are_as_counted() -> None:
    four = bundled_profile("reddit", 4)
    assert sorted(four.inner_nodes) == [56_546, 57_007, 59_421, 59_991]
    assert sorted(four.boundary_nodes / four.boundary_nodes.mean()) == pytest.approx(
        [0.603, 0.865, 1.071, 1.462], abs=2e-3
    )
    crossing = dict(zip(four.inner_nodes.tolist(), (four.boundary_entries / four.entries).tolist(), strict=True))
    assert [crossing[inner] for inner in (56_546, 59_991)] == pytest.approx([0.174, 0.255], abs=2e-3)
    assert four.cross_edges_mean == pytest.approx(56.1, rel=0.01)
    counted = {2: (83_956, 1.046), 4: (100_880, 1.052), 8: (98_666, 1.296), 16: (83_826, 1.410), 32: (72_569, 1.448)}
    for parts, (rows, largest) in counted.items():
        sent = bundled_profile("reddit", parts).pairs.sum(axis=0)
        assert sent.mean() == pytest.approx(rows, rel=2e-3)
        assert sent.max() / sent.mean() == pytest.approx(largest, rel=5e-3)


BETWEEN = (("yelp", 7), ("reddit", 9), ("ogbn-products", 12), ("reddit", 24))
"""One number of parts in each gap between those shipped."""


@pytest.mark.parametrize(("name", "parts"), [("reddit", 7), ("yelp", 9)])
def test_between_shipped_numbers_the_error_is_stated(name: str, parts: int) -> None:
    profile, note = profile_at(name, parts)
    between = interpolation(name, parts)
    assert between is not None
    assert between.missed is not None
    assert (between.low, between.high) == (parts - 1, parts + 1)
    made = [error for count in (parts - 1, parts + 1) if (error := left_out_error(name, count)) is not None]
    assert made
    assert between.missed.largest == max(error.largest for error in made)
    assert note == f"interpolated between profiles at {parts - 1} and {parts + 1} partitions (leave-one-out error: " + (
        f"boundary nodes {100 * between.missed.boundary:.0f} %, of the largest worker "
        f"{100 * between.missed.largest:.0f} %, entries that cross {100 * between.missed.cross_entries:.0f} %, "
        f"rows needed at rate 0.1 {100 * between.missed.rows:.0f} %)"
    )
    assert profile.inner_nodes.sum() == pytest.approx(dataset(name).nodes, rel=1e-3)


@pytest.mark.parametrize(("name", "parts"), BETWEEN)
def test_what_is_interpolated_lies_between_its_neighbours(name: str, parts: int) -> None:
    between, (found, _) = interpolation(name, parts), profile_at(name, parts)
    assert between is not None
    assert found.parts == parts
    low, high = (means_of(bundled_profile(name, count)) for count in (between.low, between.high))
    here = means_of(found)
    for mine, one, other in (
        (here.boundary, low.boundary, high.boundary),
        (here.cross, low.cross, high.cross),
        *zip(here.largest, low.largest, high.largest, strict=True),
    ):
        assert min(one, other) * 0.999 <= mine <= max(one, other) * 1.001
    requested = [expected_rows_most(profile_at(name, count)[0]) for count in (between.low, parts, between.high)]
    assert min(requested[0], requested[2]) * 0.93 <= requested[1] <= max(requested[0], requested[2]) * 1.07


@pytest.mark.parametrize(("name", "parts"), BETWEEN)
def test_the_counts_of_an_interpolated_profile_agree_with_one_another(name: str, parts: int) -> None:
    profile, _ = profile_at(name, parts)
    assert not profile.pairs.diagonal().any()
    assert (profile.pairs <= profile.inner_nodes[None, :]).all(), "no owner sends more nodes than it has"
    for cells in profile.cells.values():
        assert np.array_equal(cells.nodes.sum(axis=2), profile.pairs)
        held = cells.nodes.sum(axis=1)
        assert (cells.cross_edges[held > 0] >= 1.0).all()
        assert (held * cells.cross_edges).sum(axis=1) == pytest.approx(profile.boundary_entries, rel=1e-3)
    low, high = profile.origin.cross_range
    assert 0.0 < low <= 1.0 <= high
    assert (profile.origin.source, profile.origin.graph_hash) == ("interpolated", "")


@pytest.mark.parametrize(("name", "parts"), [("reddit", 3), ("yelp", 6), ("ogbn-products", 16)])
def test_the_stated_error_is_that_of_what_is_delivered(name: str, parts: int) -> None:
    blind, true, error = profile_without(name, parts), bundled_profile(name, parts), left_out_error(name, parts)
    assert blind is not None
    assert error is not None
    assert error.boundary == pytest.approx(abs(blind.boundary_nodes.mean() / true.boundary_nodes.mean() - 1.0))
    assert error.largest == pytest.approx(abs(blind.boundary_nodes.max() / true.boundary_nodes.max() - 1.0))
    crossing = blind.boundary_entries.sum() / true.boundary_entries.sum()
    assert error.cross_entries == pytest.approx(abs(crossing - 1.0))


@pytest.mark.parametrize(("name", "parts"), BETWEEN)
def test_the_ends_reach_as_far_as_the_stated_error(name: str, parts: int) -> None:
    between, likely = interpolation(name, parts), profile_end(name, parts, 1, 1)
    assert between is not None
    missed = between.missed
    assert missed is not None
    least, most = (profile_end(name, parts, end, 1).boundary_nodes for end in (0, 2))
    nodes = likely.boundary_nodes
    # Whichever reaches further: the error between profiles, or that between counts.
    low, high = left_open(dataset(name).boundary, parts)
    assert least.mean() == pytest.approx(nodes.mean() * min(1.0 / (1.0 + missed.boundary), low), rel=1e-3)
    assert most.mean() == pytest.approx(nodes.mean() * max(1.0 / (1.0 - missed.boundary), high), rel=1e-3)
    by = max(1.0 / (1.0 - missed.largest), high), min(1.0 / (1.0 + missed.largest), low)
    assert most.max() == pytest.approx(max(nodes.max() * by[0], most.mean()), rel=2e-2)
    assert least.max() == pytest.approx(max(nodes.max() * by[1], least.mean()), rel=2e-2)
    crossing = [int(profile_end(name, parts, 1, end).boundary_entries.sum()) for end in range(3)]
    assert crossing == sorted(crossing)


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize(("name", "parts"), [("reddit", 2), ("yelp", 8), ("ogbn-products", 32)])
def test_rates_towards_one_lead_to_every_row_and_entry(name: str, parts: int, sampler: str) -> None:
    profile = bundled_profile(name, parts)
    rates = (0.9, 0.95, 0.99, 0.999, 1.0 - 1e-6, 1.0)
    expected_accesses = [
        expected_access(
            profile, sampler=sampler, epsilon=rate, cache=CacheSize(fraction=0.3), policy="inclusion", feature_width=1
        )
        for rate in rates
    ]
    for field in ("rows", "boundary_edges", "inner_edges"):
        whole = np.array([getattr(item, field).sum() for item in expected_accesses])
        assert (np.diff(whole) >= -1e-9 * whole[-1]).all(), f"{field} never fall"
        assert whole[-2] == pytest.approx(whole[-1], rel=3e-4)
    assert expected_accesses[-2].hits.sum() == pytest.approx(expected_accesses[-1].hits.sum(), rel=3e-4)
    for rate, item in zip(rates, expected_accesses, strict=True):
        kept = item.boundary_edges.sum() + item.inner_edges.sum()
        assert kept == pytest.approx(rate * profile.entries.sum(), rel=2e-3)


def expected_rows_most(profile: StoredProfile) -> float:
    requested = expected_access(
        profile, sampler="vr", epsilon=0.1, cache=CacheSize(), policy="inclusion", feature_width=1
    )
    return float(requested.rows.sum(axis=1).max())


EVERY = (*range(2, 36), 47, 48, 64, 65, 96, 97, 128, 129, 192, 193, 256, 257, 1024)
"""Numbers of parts: all where something changes (8 to 33), then neighbours."""

COUNTED_APART = {("reddit-train", 9), ("reddit-train", 10)}
"""Between 8 and 10 parts one source counts 57,500 and 51,200 boundary nodes, 5.5 % a part."""


@pytest.mark.parametrize("name", ["reddit", "ogbn-products", "yelp", "reddit-train", "yelp-train"])
def test_no_number_of_parts_is_a_cliff(name: str) -> None:
    facts, before = dataset(name), None
    for parts in (count for count in EVERY if count in profiled_parts(name) and (count <= 129 or name == "reddit")):
        profile, _ = profile_at(name, parts)
        nodes = profile.boundary_nodes
        assert (nodes <= profile.inner_nodes.sum() - profile.inner_nodes).all(), "no more than other parts have"
        assert (nodes <= profile.boundary_entries).all(), "each has a cross edge"
        assert (profile.boundary_entries <= profile.entries).all()
        assert (profile.pairs <= profile.inner_nodes[None, :]).all()
        now = parts, float(nodes.mean()), float(nodes.max())
        if before is not None and parts == before[0] + 1 and parts > 8:
            most = 0.065 if (name, parts) in COUNTED_APART else 0.05
            changes = now[1] / before[1] - 1.0, now[2] / before[2] - 1.0
            assert all(abs(change) < most for change in changes), (parts, changes)
        if before is not None and parts == before[0] + 1 and parts <= 8:
            # The law of the counted graphs, at the degree of this one, with its range.
            grown = growth_between(before[0], parts, facts.entries / facts.nodes) * before[0] / parts
            low, _, high = open_growth(before[0], parts)
            assert grown * low < now[1] / before[1] < grown * high
        before = now


def test_beyond_the_last_profile_its_shape_is_carried_on_in_a_growing_range() -> None:
    last, found = bundled_profile("yelp", 32), profile_at("yelp", 64)[0]
    facts = dataset("yelp")
    grown = growth_between(32, 64, facts.entries / facts.nodes)
    assert means_of(found).boundary == pytest.approx(means_of(last).boundary * grown, rel=1e-3)
    assert means_of(found).largest[2] == pytest.approx(means_of(last).largest[2], rel=1e-2)
    ranges = []
    for parts in (8, 16, 32, 64, 128):
        least, likely, most = (profile_end("yelp", parts, end, 1).boundary_nodes.mean() for end in range(3))
        ranges.append(most / least)
        assert parts == 8 or least < likely < most
    assert ranges[0] == pytest.approx(1.0), "as counted"
    assert ranges == sorted(ranges)
    assert profile_at("yelp", 48)[1] == "extrapolated from the profile at 32 partitions"


def test_beyond_them_nothing_answers() -> None:
    known = bundled_parts("yelp")
    assert profiled_parts("yelp") == range(2, 1025)
    assert not profiled_parts("nothing")
    with pytest.raises(ScenarioError, match="gpus: yelp has no profile at 1025 parts; there are 2 to 1024"):
        profile_at("yelp", 1025)
    with pytest.raises(ScenarioError, match="nothing has no profile at 4 parts; it has none at any number of parts"):
        profile_at("nothing", 4)
    with pytest.raises(ScenarioError, match=f"yelp has no profile at 7 parts; there are {', '.join(map(str, known))}"):
        bundled_profile("yelp", 7)
