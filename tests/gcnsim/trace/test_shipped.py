"""The profiles in the package: of today's surrogates, near the published counts, and what lies between them."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np
import pytest

from gcnsim.errors import ScenarioError
from gcnsim.graph.generate import surrogate_facts
from gcnsim.trace import left_out_error, profile_at, profiled_parts, shipped_parts, shipped_profile
from gcnsim.trace.shipped import FOLDER
from gcnsim.workload import dataset

DATASETS = ("ogbn-products", "reddit", "yelp")
PARTS = (2, 3, 4, 5, 6, 8, 10)
SHIPPED = [(name, parts) for name in DATASETS for parts in PARTS]


def test_all_are_shipped_and_small() -> None:
    assert all(shipped_parts(name) == PARTS for name in DATASETS)
    files = [FOLDER / f"{name}-{parts}.profile" for name, parts in SHIPPED]
    assert all(path.stat().st_size < 600_000 for path in files)


@pytest.mark.parametrize(("name", "parts"), SHIPPED)
def test_a_shipped_profile_is_of_the_surrogate_as_it_is_drawn_today(name: str, parts: int) -> None:
    found, facts, published = shipped_profile(name, parts), surrogate_facts(name), dataset(name)
    assert found.parts == parts
    assert found.origin.source == "surrogate"
    assert found.origin.partition_method == facts.partition
    assert found.origin.model == asdict(facts.model)
    assert found.origin.surrogate_seed == facts.seed
    assert found.inner_nodes.sum() == pytest.approx(published.nodes, rel=1e-3)
    assert found.entries.sum() == pytest.approx(published.entries, rel=1e-3)


@pytest.mark.parametrize(("name", "parts"), SHIPPED)
def test_the_counts_of_a_shipped_profile_agree_with_one_another(name: str, parts: int) -> None:
    found = shipped_profile(name, parts)
    assert not found.pairs.diagonal().any()
    assert (found.boundary_nodes > 0).all()
    assert (found.boundary_nodes <= found.inner_nodes.sum() - found.inner_nodes).all()
    for cells in found.cells.values():
        held = cells.nodes.sum(axis=1)
        assert np.array_equal(held.sum(axis=1), found.boundary_nodes)
        assert (cells.cross_edges[held > 0] >= 1.0).all()
        assert (held * cells.cross_edges).sum(axis=1) == pytest.approx(found.boundary_entries, rel=1e-3)
        assert (np.diff(cells.inner_kept, axis=1) > 0).all()
    low, high = found.origin.cross_range
    assert 0.0 < low <= 1.0 <= high


@pytest.mark.parametrize("name", DATASETS)
def test_shipped_boundaries_are_within_ten_percent_of_the_published(name: str) -> None:
    published = dataset(name).boundary
    assert [row.partitions for row in published] == [4, 6, 8]
    for row in published:
        found = shipped_profile(name, row.partitions)
        missed = float(found.boundary_nodes.mean()) / row.boundary - 1.0
        assert abs(missed) <= 0.1
        residuals = found.origin.residuals or {}
        assert residuals[str(row.partitions)] == pytest.approx(missed, abs=1e-4)
        fitted = {str(each.parts): each.residual for each in surrogate_facts(name).rows if each.parts != row.partitions}
        assert {parts: residuals[parts] for parts in fitted} == pytest.approx(fitted, abs=1e-4)


@pytest.mark.parametrize("name", DATASETS)
@pytest.mark.parametrize("parts", [7, 9])
def test_between_shipped_numbers_the_error_is_stated(name: str, parts: int) -> None:
    found, note = profile_at(name, parts)
    assert found.parts == parts
    error = left_out_error(name)
    assert error is not None
    assert note == f"interpolated between profiles at {parts - 1} and {parts + 1} partitions " + (
        f"(leave-one-out error {100 * error:.0f} %)"
    )
    assert found.inner_nodes.sum() == pytest.approx(dataset(name).nodes, rel=1e-3)
    assert (found.pairs >= 0).all()
    ends = [shipped_profile(name, count) for count in (parts - 1, parts + 1)]
    ratios = [float(end.boundary_nodes.sum() / end.inner_nodes.sum()) for end in ends]
    assert min(ratios) <= found.boundary_nodes.sum() / found.inner_nodes.sum() <= max(ratios)


def test_beyond_them_nothing_answers() -> None:
    assert profiled_parts("yelp") == range(2, 11)
    assert not profiled_parts("nothing")
    with pytest.raises(ScenarioError, match="gpus: yelp has no profile at 1000 parts; there are 2 to 10"):
        profile_at("yelp", 1000)
    with pytest.raises(ScenarioError, match="nothing has no profile at 4 parts; it has none at any number of parts"):
        profile_at("nothing", 4)
    with pytest.raises(ScenarioError, match="yelp has no profile at 7 parts; there are 2, 3, 4, 5, 6, 8, 10"):
        shipped_profile("yelp", 7)
