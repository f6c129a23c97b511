"""Laws of METIS parts by a graph's sizes: they fit what was counted, and what they were not fitted to."""

from __future__ import annotations

import pytest

from gcnsim.core.yaml_files import read_yaml
from gcnsim.workload import assumed_ratio, crossing_fraction, growth_between, largest_of, open_growth
from gcnsim.workload.cuts import ANCHOR, FILE, WEB
from studies import cuts

GRAPHS = cuts.counted()
REDDIT = 114_615_892 / 232_965


def test_the_laws_in_the_package_are_those_of_the_counts() -> None:
    assert read_yaml(FILE) == cuts.fitted(GRAPHS)


def test_graphs_left_out_are_within_the_ranges_of_the_others() -> None:
    boundary, growth = [], []
    for graph in GRAPHS:
        laws = cuts.without(GRAPHS, graph)
        low, _, high = laws["ratio"]["range"]
        missed = [2.718281828 ** cuts.log_missed(laws, graph, row) for row in graph.every]
        boundary.append(sum(low <= value <= high for value in missed) / len(missed))
        own = cuts.grown(laws, graph)
        growth.append(sum(abs(item) <= laws["growth"]["open"] for item in own) / len(own))
    held = [sum(boundary) / len(boundary), sum(growth) / len(growth), cuts.crossing_held(GRAPHS)]
    held += [cuts.largest_held(GRAPHS, figure) for figure in ("boundary", "entries")]
    assert all(0.8 <= share <= 0.97 for share in held), held


@pytest.mark.parametrize("graph", GRAPHS, ids=lambda graph: graph.name)
def test_the_package_says_what_the_study_does(graph: cuts.Counted) -> None:
    laws = read_yaml(FILE)
    entries = round(graph.degree * graph.nodes)
    for row in graph.every:
        low, likely, high = assumed_ratio(graph.nodes, entries, row.parts)
        assert low < likely < high
        wanted = 2.718281828 ** cuts.log_ratio(laws, graph, row.parts)
        assert likely == pytest.approx(min(wanted, row.parts - 1.0), rel=1e-3)


@pytest.mark.parametrize("degree", [1.0, 4.0, 30.0, REDDIT])
def test_more_parts_border_on_more(degree: float) -> None:
    places = [*range(2, 70), 100, 192, 500, 1024]
    grown = [growth_between(ANCHOR, parts, degree) for parts in places]
    assert grown == sorted(grown)
    assert growth_between(8, 16, degree) * growth_between(16, 100, degree) == pytest.approx(
        growth_between(8, 100, degree)
    )
    assert growth_between(5, 5, degree) == 1.0


def test_what_growth_leaves_open_is_a_power_of_the_parts() -> None:
    assert open_growth(4, 4) == (1.0, 1.0, 1.0)
    low, middle, high = open_growth(4, 16)
    assert middle == 1.0
    assert low * high == pytest.approx(1.0)
    assert open_growth(4, 1).high == pytest.approx(high), "fewer parts are as open"
    assert open_growth(4, 256).high == pytest.approx(high**3)


def test_no_node_borders_on_more_parts_than_it_has_neighbours() -> None:
    assert assumed_ratio(1_000, 1_500, 500).high == 1.5
    assert assumed_ratio(1_000, 900_000, 2).high == 1.0
    assert assumed_ratio(5, 0, 2) == assumed_ratio(5, 5, 2)


def test_graphs_of_the_web_border_on_little_unless_they_do_not() -> None:
    web, other = (assumed_ratio(77_741_046, 5_930_394_680, 8, kind) for kind in (WEB, ""))
    assert web.low < web.likely < 0.1 * other.likely
    assert web.high == pytest.approx(other.likely)


def test_few_entries_cross_where_few_nodes_border() -> None:
    assert crossing_fraction(0.0) == (0.0, 0.0, 0.0)
    few, many = crossing_fraction(0.1), crossing_fraction(20.0)
    assert few.low < few.likely < few.high < 0.05
    assert many.low < many.likely == many.high == 0.95


@pytest.mark.parametrize("figure", ["boundary", "entries"])
def test_the_largest_part_grows_with_their_number(figure: str) -> None:
    assert largest_of(figure, 1) == (1.0, 1.0, 1.0)
    ends = [largest_of(figure, parts) for parts in (4, 8, 64)]
    assert all(1.0 <= low < likely < high for low, likely, high in ends)
    assert [end.likely for end in ends] == sorted(end.likely for end in ends)
    assert largest_of(figure, 1024) == largest_of(figure, 64)
