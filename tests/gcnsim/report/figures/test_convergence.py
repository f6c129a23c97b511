from __future__ import annotations

import pytest

from gcnsim.report.figures.convergence import Learning, convergence_data, convergence_figure

RUN = Learning("pipegcn", ((10, 0.5), (20, 0.9)), 0.5, 0.4, 0.7)


def test_accuracy_at_the_time_that_iterations_take() -> None:
    data = convergence_data([RUN], 0.9)
    line = data.lines[0]
    assert (line.seconds, line.low) == ((5.0, 10.0), (4.0, 8.0))
    assert line.high == pytest.approx((7.0, 14.0))
    assert line.accuracy == (0.5, 0.9)
    assert (data.unit, data.target) == ("s", 0.9)


def test_against_cost_a_line_without_a_price_is_left_out() -> None:
    data = convergence_data([RUN, RUN._replace(name="priced", price=0.02)], None, "EUR")
    assert data.priced
    figure = convergence_figure(data, cost=True).to_dict()
    _, line = figure["data"]
    assert line["x"] == pytest.approx([0.1, 0.2])
    assert line["customdata"][1] == "priced<br>90.00 % after 10.0 s, 20 iterations, 0.20 EUR"
    assert figure["layout"]["xaxis"]["title"]["text"] == "Cost of training (EUR)"


def test_the_target_is_a_line_and_numbers_are_in_the_hover() -> None:
    figure = convergence_figure(convergence_data([RUN], 0.9)).to_dict()
    assert figure["layout"]["shapes"][0]["y0"] == pytest.approx(90.0)
    assert figure["data"][1]["customdata"][1] == "pipegcn<br>90.00 % after 10.0 s, 20 iterations"
    assert figure["layout"]["yaxis"]["title"]["text"] == "Validation accuracy (%)"
