"""How much a partition depends on the seed of METIS: figures of the package, and what answers take of them."""

from __future__ import annotations

from math import exp, log

import pytest

from gcnsim.core.yaml_files import read_yaml
from gcnsim.graph.partition_facts import FIGURES, FILE, partition_scatter


def test_of_each_figure_the_largest_measure_is_taken() -> None:
    for name, entry in read_yaml(FILE)["datasets"].items():
        for row in entry["rows"]:
            scatter = partition_scatter(name, row["parts"])
            for figure in FIGURES:
                counted = entry.get("counted", {}).get(figure, 0.0)
                wanted = max(row[figure], entry["neighbours"][figure], counted)
                assert getattr(scatter, figure) == pytest.approx(wanted), (name, row["parts"], figure)
        assert f"{entry['seeds']} seeds at {100 * entry['scale']:g} % of {name}" in scatter.source


def test_between_measured_numbers_it_lies_between_and_beyond_it_stays() -> None:
    four, eight, six = (partition_scatter("ogbn-products", parts).boundary_largest for parts in (4, 8, 6))
    assert min(four, eight) <= six <= max(four, eight)
    assert partition_scatter("reddit", 100) == partition_scatter("reddit", 16)


def test_a_dataset_that_was_not_measured_has_the_widest() -> None:
    known = [partition_scatter(name, 8) for name in ("reddit", "yelp", "ogbn-products")]
    found = partition_scatter("ogbn-papers100M", 8)
    assert found.boundary_largest == max(scatter.boundary_largest for scatter in known)
    assert found.source.endswith("the widest of them")
    assert partition_scatter("reddit-train", 8) == partition_scatter("reddit", 8)


@pytest.mark.parametrize("dataset", ["reddit", "yelp", "ogbn-products"])
def test_the_interval_of_the_largest_boundary_holds_one_and_is_no_wider_than_a_half(dataset: str) -> None:
    for parts in (2, 4, 6, 8, 16, 32):
        low, high = partition_scatter(dataset, parts).factors("boundary_largest")
        assert 0.5 < low < 1.0 < high < 2.0
        assert log(low) == pytest.approx(-log(high))
        wide = 1.645 * 2**0.5 * partition_scatter(dataset, parts).boundary_largest
        assert high == pytest.approx(exp(wide), rel=1e-3)
