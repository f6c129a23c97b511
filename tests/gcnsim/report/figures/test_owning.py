from __future__ import annotations

from dataclasses import replace

import pytest

from gcnsim.report.figures.owning import owning_figure, owning_of
from gcnsim.results import EnergyReport, EnergyRow, OwnOrRent

OWN = OwnOrRent(4800.0, 1.5, 1.25, 2.0, 3.0, 24.0, 20.0, 30.0, 48.0, 100.0, 1, 1, 1, 1.0)
"""48 months of 100 hours: 1 an hour for the machine, and 0.5 for electricity."""


def report(own: OwnOrRent | None) -> EnergyReport:
    return EnergyReport((EnergyRow(own=own),), "EUR", ())


def test_a_bought_machine_begins_at_its_price_and_a_rented_one_at_nothing() -> None:
    data = owning_of(report(OWN))
    assert data is not None
    assert (data.months, data.bought, data.rented) == ((0.0, 48.0), (4800.0, 7200.0), (0.0, 14400.0))
    assert (data.low[1], data.high[1], data.even) == (6000.0, 9600.0, 24.0)
    assert "dotted line marks when buying pays off" in data.caption
    figure = owning_figure(data).to_dict()
    assert [tuple(line["y"]) for line in figure["data"][1:]] == [(4800.0, 7200.0), (0.0, 14400.0)]
    assert figure["layout"]["shapes"][0]["x0"] == 24.0
    assert figure["layout"]["yaxis"]["title"]["text"] == "Cost until then (EUR)"


@pytest.mark.parametrize("own", [None, replace(OWN, rented_per_hour=None), replace(OWN, rented_hours=None)])
def test_without_both_prices_nothing_is_drawn(own: OwnOrRent | None) -> None:
    assert owning_of(report(own)) is None
    assert owning_of(None) is None


def test_what_pays_after_its_life_has_no_mark() -> None:
    data = owning_of(report(replace(OWN, months=50.0)))
    assert data is not None
    assert data.even is None
    assert "dotted" not in data.caption
    assert "shapes" not in owning_figure(data).to_dict()["layout"]
