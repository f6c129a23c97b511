"""Where the difference of two iterations goes, by value."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from gcnsim.report.comparison import write_parts_csv
from gcnsim.report.figures.difference import difference_data, difference_figure
from gcnsim.report.palette import LIGHT
from tests.gcnsim.report.test_comparison import part, payload

PARTS = [
    part("compute_s", None, 0.4, 0.3),
    part("exposed_comm_s", None, 0.6, 0.2),
    part("network_s", "exposed_comm_s", 0.5, 0.05),
    part("waiting_s", "exposed_comm_s", 0.1, 0.15),
    part("optimizer_s", None, 0.01, 0.0102),
]


def test_the_finest_parts_are_drawn_by_what_they_changed() -> None:
    data = difference_data(payload(parts=PARTS))
    assert [change.part for change in data.changes] == ["network", "compute", "waiting"]
    assert [change.seconds for change in data.changes] == pytest.approx([-0.45, -0.1, 0.05])
    assert data.still == ("optimizer",)
    assert (data.whole_s, data.per, data.unit) == (-0.5, "iteration", "ms")
    figure = difference_figure(data)
    assert [bar.x[0] for bar in figure.data] == pytest.approx([-450, -100, 50, -500])
    assert figure.data[1].marker.color == LIGHT.compute
    assert figure.data[0].customdata[0].endswith("A 500 ms, B 50.0 ms per iteration<br>-450 ms")


def test_two_equal_iterations_have_no_bar_but_the_whole() -> None:
    same = {"a": 1.0, "b": 1.0, "difference": 0.0}
    data = difference_data(payload(parts=[part("compute_s", None, 1.0, 1.0)], iteration_s=same))
    assert data.changes == ()
    assert len(difference_figure(data).data) == 1


def test_parts_are_lines_of_a_table(tmp_path: Path) -> None:
    write_parts_csv(tmp_path / "parts.csv", payload(parts=PARTS))
    with open(tmp_path / "parts.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["part"] for row in rows] == [entry["part"] for entry in PARTS]
    assert float(rows[2]["difference"]) == PARTS[2]["difference"]
    assert rows[2]["within"] == "exposed_comm_s"
