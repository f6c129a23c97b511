"""Points of a sweep as parallel coordinates, by value."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import pytest

from gcnsim.report.figures.parallel import MOST_DRAWN, _apart, parallel_data, parallel_figure
from gcnsim.report.palette import DARK, LIGHT

AXES = ("cluster.bandwidth", "method.name", "method.tau", "run.seed")


def point(index: int, bandwidth: str, name: str, tau: int | None, seconds: float) -> dict[str, Any]:
    content = {"point": index, "cluster.bandwidth": bandwidth, "method.name": name, "method.tau": tau}
    return content | {"run.seed": 0, "iteration_s": seconds}


POINTS = [
    point(3, "100Gbps", "psc-gcn", 2, 0.1),
    point(1, "10Gbps", "psc-gcn", 0, 0.2),
    point(0, "1Gbps", "a<b", None, 0.4),
]


def test_values_are_placed_by_size_and_names_evenly() -> None:
    data = parallel_data(POINTS, AXES, "iteration_s")
    assert [row.name for row in data.rows] == ["cluster.bandwidth", "method.name", "method.tau", "iteration_s (ms)"]
    places = [line.places for line in data.lines]
    assert [place[0] for place in places] == pytest.approx([1.0, 0.5, 0.0])  # logarithmic: 1 to 100
    assert [place[1] for place in places] == [1.0, 1.0, 0.0]
    assert [place[2] for place in places] == pytest.approx([0.86, 0.0, 1.0])  # nothing lies right of all values
    assert [place[3] for place in places] == pytest.approx([0.0, 1 / 3, 1.0])  # 0.1 to 0.4 is within a factor of six
    assert data.lines[0].hover_text == (
        "cluster.bandwidth: 100Gbps",
        "method.name: psc-gcn",
        "method.tau: 2",
        "iteration_s (ms): 100",
    )
    assert [tick.text for tick in data.rows[2].ticks] == ["0", "2", "none"]
    assert [(line.point, line.fast) for line in data.lines] == [(3, True), (1, False), (0, False)]
    assert [name for name, _, _ in data.legend] == ["the first", "others"]


def test_of_many_points_the_first_and_evenly_spread_others_are_drawn() -> None:
    many = [point(index, f"{index + 1}Gbps", "x", 0, 1.0 + index) for index in range(1000)]
    data = parallel_data(many, AXES, "iteration_s")
    assert len(data.lines) == MOST_DRAWN
    assert data.left_out == 600
    assert [data.lines[0].point, data.lines[-1].point] == [0, 999]
    assert sum(line.fast for line in data.lines) == math.ceil(MOST_DRAWN / 10)


def test_marks_keep_apart() -> None:
    ticks = parallel_data([point(k, f"{k}Gbps", f"method-{k:02}", k, 1.0) for k in range(1, 30)], AXES, "point").rows
    for row in ticks:
        kept = [tick.place for tick in row.ticks]
        assert kept[0] == 0.0
        assert kept[-1] == 1.0
        assert all(later - earlier >= 1 / 8 for earlier, later in pairwise(kept))
    assert _apart([]) == []


def test_a_column_of_names_decides_by_name() -> None:
    data = parallel_data(POINTS, (), "method.name")
    assert [tick.text for tick in data.rows[0].ticks] == ["a<b", "psc-gcn"]


def test_the_figure_has_a_line_per_point_and_reads_no_tags() -> None:
    data = parallel_data(POINTS, AXES, "iteration_s")
    figure = parallel_figure(data, LIGHT)
    others, fast, first = figure.data
    assert [len(trace.x) for trace in (others, fast, first)] == [10, 0, 5]
    assert list(first.y) == [0, 1, 2, 3, None]
    assert first.line.color == LIGHT.recommended
    assert "a<b" not in str(figure.to_plotly_json())
    assert "a&lt;b" in str(figure.to_plotly_json())
    dark = parallel_figure(data, DARK)
    assert dark.data[2].line.color == DARK.recommended
    assert dark.layout.height == figure.layout.height
