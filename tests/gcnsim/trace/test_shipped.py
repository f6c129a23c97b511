"""The profiles in the package: of today's surrogates, near the published counts, and what lies between them."""

from __future__ import annotations

from dataclasses import asdict

import pytest

from gcnsim.errors import ScenarioError
from gcnsim.graph.generate import surrogate_facts
from gcnsim.trace import covers, left_out_error, profile_at, shipped_parts, shipped_profile
from gcnsim.trace.shipped import FOLDER
from gcnsim.workload import dataset, datasets

SHIPPED = [(name, parts) for name in datasets() for parts in shipped_parts(name)]


def test_some_are_shipped_and_small() -> None:
    assert {4, 6} <= set(shipped_parts("yelp"))
    assert all(path.stat().st_size < 600_000 for path in FOLDER.glob("*.profile"))


@pytest.mark.parametrize(("name", "parts"), SHIPPED)
def test_a_shipped_profile_is_of_the_surrogate_as_it_is_drawn_today(name: str, parts: int) -> None:
    found, facts, published = shipped_profile(name, parts), surrogate_facts(name), dataset(name)
    assert found.parts == parts
    assert found.origin.source == "surrogate"
    assert found.origin.model == asdict(facts.model)
    assert found.origin.surrogate_seed == facts.seed
    assert found.inner_nodes.sum() == pytest.approx(published.nodes, rel=1e-3)
    assert found.entries.sum() == pytest.approx(published.entries, rel=1e-3)
    for row in published.boundary:
        if row.partitions == parts:
            assert found.boundary_nodes.mean() == pytest.approx(row.boundary, rel=0.15)


def test_between_shipped_numbers_the_error_is_stated() -> None:
    known = shipped_parts("yelp")
    missing = [parts for parts in range(known[0], known[-1]) if parts not in known]
    for parts in missing:
        found, note = profile_at("yelp", parts)
        assert found.parts == parts
        assert note.startswith("interpolated between profiles at ")
        assert "error" in note
        assert found.inner_nodes.sum() == pytest.approx(dataset("yelp").nodes, rel=1e-3)
        assert (found.pairs >= 0).all()
    assert missing or left_out_error("yelp") is not None


def test_beyond_them_nothing_answers() -> None:
    assert not covers("yelp", 1000)
    assert not covers("nothing", 4)
    with pytest.raises(ScenarioError, match="gpus: yelp has no profile at 1000 parts; there are "):
        profile_at("yelp", 1000)
    with pytest.raises(ScenarioError, match="nothing has no profile at 4 parts; it has none at any number of parts"):
        shipped_profile("nothing", 4)
