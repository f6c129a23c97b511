from __future__ import annotations

from dataclasses import replace

import pytest

from gcnsim.core.errors import ScenarioError
from gcnsim.workload import BoundaryRow, boundary_at, dataset, datasets, growth_between, left_open
from gcnsim.workload.cuts import leave_one_out

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
    for gpus in {2, 3, 5, 7, 16, 64, 90, 1000}.difference(counts):
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


def test_between_counts_an_exact_power_law_is_recovered() -> None:
    rows = tuple(BoundaryRow(p, 1e6 / p, 0.3 * p**0.7 * 1e6 / p) for p in (2, 9))
    facts = replace(dataset("reddit"), nodes=1_000_000, boundary=rows)
    for gpus in (3, 5, 8):
        assert boundary_at(facts, gpus)[1] == pytest.approx(0.3 * gpus**0.7 * 1e6 / gpus)


def test_beyond_counts_the_boundary_grows_as_that_of_other_graphs() -> None:
    facts = dataset("yelp")
    degree, last = facts.entries / facts.nodes, facts.boundary[-1]
    inner, boundary, _ = boundary_at(facts, 32)
    assert boundary / inner == pytest.approx(last.boundary / last.inner * growth_between(8, 32, degree))
    assert boundary_at(facts, 2)[1] / 358_000 == pytest.approx(120_600 / 179_200 * growth_between(4, 2, degree))


@pytest.mark.parametrize("name", [name for name in COUNTED if len(dataset(name).boundary) > 2])
def test_counts_left_out_are_met(name: str) -> None:
    assert 0.01 < leave_one_out(dataset(name)) < 0.25


@pytest.mark.parametrize("name", COUNTED)
def test_beyond_published_counts_the_growth_is_a_range(name: str) -> None:
    rows = dataset(name).boundary
    first, last = rows[0].partitions, rows[-1].partitions
    assert left_open(rows, first) == left_open(rows, last) == (1.0, 1.0)
    low, high = left_open(rows, 4 * last)
    assert low * high == pytest.approx(1.0)
    assert 1.2 < high < 1.6
    assert left_open(rows, 16 * last)[1] == pytest.approx(high**2)
    assert left_open(rows, 2 * last) == left_open(rows, last + 1), "METIS scatters between any two numbers of parts"


@pytest.mark.parametrize("gpus", [0, -1, 232_966])
def test_impossible_counts_are_refused(gpus: int) -> None:
    with pytest.raises(ScenarioError, match=r"cluster.gpus: .* is not allowed"):
        boundary_at(dataset("reddit"), gpus)


def test_without_any_published_count_only_one_partition_is_answered() -> None:
    facts = dataset("ogbn-papers100M")
    assert boundary_at(facts, 1) == (111_059_956.0, 0.0, "one partition: no boundary")
    with pytest.raises(ScenarioError, match=r"cluster\.gpus: 32 is not allowed; no boundary of .* is published"):
        boundary_at(facts, 32)
