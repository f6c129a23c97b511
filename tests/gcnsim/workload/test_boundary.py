from __future__ import annotations

import pytest

from gcnsim.errors import ScenarioError
from gcnsim.workload import FAR, BoundaryRow, boundary_at, dataset, datasets, growth_of, leave_one_out, left_open

COUNTED = [name for name in datasets() if dataset(name).boundary]


@pytest.mark.parametrize("name", COUNTED)
def test_published_counts_are_returned_as_printed(name: str) -> None:
    facts = dataset(name)
    for row in facts.boundary:
        inner, boundary, note = boundary_at(facts, row.partitions)
        assert (inner, boundary) == (row.inner, row.boundary)
        assert "published" in note


@pytest.mark.parametrize("name", COUNTED)
def test_other_counts_are_labelled_and_possible(name: str) -> None:
    facts = dataset(name)
    counts = [row.partitions for row in facts.boundary]
    for gpus in {2, 3, 5, 7, 16, 64, 1000}.difference(counts):
        inner, boundary, note = boundary_at(facts, gpus)
        assert inner == pytest.approx(facts.nodes / gpus)
        assert 0 < boundary <= facts.nodes - inner
        assert ("interpolated" if counts[0] < gpus < counts[-1] else "extrapolated") in note
        assert "leave-one-out error" in note


def test_one_partition_has_no_boundary() -> None:
    assert boundary_at(dataset("reddit"), 1) == (232_965.0, 0.0, "one partition: no boundary")


def test_the_cap_holds_where_the_law_would_exceed_it() -> None:
    facts = dataset("reddit")
    inner, boundary, _ = boundary_at(facts, facts.nodes)
    assert inner == 1.0
    assert boundary == facts.entries / facts.nodes


def test_an_exact_power_law_is_recovered() -> None:
    rows = [BoundaryRow(p, 100.0 / p, 3.0 * p**0.7 * 100.0 / p) for p in (2, 4, 9)]
    assert leave_one_out(rows) == pytest.approx(0.0, abs=1e-12)
    assert 0.05 < leave_one_out(dataset("reddit").boundary) < 0.12


@pytest.mark.parametrize("name", COUNTED)
def test_beyond_any_published_run_the_growth_is_a_range(name: str) -> None:
    growth = growth_of(dataset(name).boundary)
    assert left_open(FAR, growth) == (1.0, 1.0)
    low, high = left_open(4 * FAR, growth)
    assert low == pytest.approx(4.0 ** (0.39 - growth))
    assert high == pytest.approx(max(1.0, 4.0 ** (1.0 - growth)))


def test_a_growth_outside_the_range_is_its_own_end() -> None:
    assert left_open(2 * FAR, 1.2) == pytest.approx((2.0**-0.81, 1.0))
    assert left_open(2 * FAR, 0.2) == pytest.approx((1.0, 2.0**0.8))


@pytest.mark.parametrize("gpus", [0, -1, 232_966])
def test_impossible_counts_are_refused(gpus: int) -> None:
    with pytest.raises(ScenarioError, match=r"cluster.gpus: .* is not allowed"):
        boundary_at(dataset("reddit"), gpus)


def test_without_any_published_count_only_one_partition_is_answered() -> None:
    facts = dataset("ogbn-papers100M")
    assert boundary_at(facts, 1) == (111_059_956.0, 0.0, "one partition: no boundary")
    with pytest.raises(ScenarioError, match=r"cluster\.gpus: 32 is not allowed; no boundary of .* is published"):
        boundary_at(facts, 32)
