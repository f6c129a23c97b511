"""The fit of published platforms: what ships is what it finds, and a table left out is predicted from the others."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from gcnsim.evidence.published_facts import read_published
from gcnsim.hardware import platform, platforms
from studies.fit_published import LEFT_OUT, expected_error, left_out, table_lines
from studies.published_coefficients import COEFFICIENTS, Fit, Trials, assumed, document, errors, fit, groups

KEPT = json.loads(LEFT_OUT.read_text(encoding="utf-8"))
DOCUMENT = (Path(__file__).resolve().parents[2] / "docs" / "reproduce.md").read_text(encoding="utf-8")


def test_there_are_fewer_coefficients_than_platforms_have_fitted_figures() -> None:
    figures = [figure for one in COEFFICIENTS for figure in one.figures]
    assert len(set(figures)) == len(figures), "every figure is fed once"
    assert len(COEFFICIENTS) == 9 < len(figures)
    assert {name for name, _ in figures} == set(platforms())
    assert all(one.low < one.assumed < one.high for one in COEFFICIENTS)


def test_coefficients_that_share_a_platform_are_fitted_together() -> None:
    for group in groups():
        own = {name for one in group for name, _ in one.figures}
        others = [one for one in COEFFICIENTS if one not in group]
        assert not own & {name for one in others for name, _ in one.figures}


def test_what_ships_is_what_the_fit_found_and_the_document_shows_it() -> None:
    shipped = {one.name: getattr(platform(name), key).value for one in COEFFICIENTS for name, key in one.figures}
    assert KEPT["coefficients"].keys() <= shipped.keys()
    for name, value in KEPT["coefficients"].items():
        assert shipped[name] == pytest.approx(value, rel=1e-3), name
    assert "\n".join(table_lines(KEPT)) in DOCUMENT
    medians = [row["without"]["median"] for row in KEPT["tables"]]
    assert np.median(medians) == pytest.approx(KEPT["median_of_medians"]["without"], rel=1e-3)


def test_a_coefficient_that_no_row_decides_is_told_as_assumed() -> None:
    values = assumed()
    text = document("psc-gcn-t4", values, Fit(values, frozenset(), {}))
    assert "source: assumed" in text
    assert "value: 50%" in text
    assert "low: 12.5%" in text
    found = document("psc-gcn-t4", values | {"gathering, t4": 0.25}, Fit(values, frozenset({"gathering, t4"}), {}))
    assert "value: 25%\n  source: fitted" in found


def test_many_cells_have_the_error_of_nine_in_ten_and_few_a_normal_one() -> None:
    assert expected_error(np.linspace(0.0, 1.0, 11), 2) == pytest.approx(0.9)
    assert expected_error(np.full(5, 0.1), 1) == pytest.approx(1.645 * np.sqrt(0.05 / 4))
    assert expected_error(np.full(2, 0.1), 2) == 0.25


@pytest.mark.slow
def test_a_table_left_out_is_predicted_from_the_others(tmp_path: Path) -> None:
    """Of the MI60 Table 8 alone is fitted to: without it, what is assumed stands for it."""
    trials = Trials([row for row in read_published() if (row.paper, row.table) == ("pipegcn", "table8")], tmp_path)
    found = fit(trials)
    assert found.determined == {"gathering, mi60", "call of the host"}
    assert np.abs(errors(trials.cells("pipegcn-mi60", found.values))).max() < 0.1
    (row,) = left_out(trials, found)["tables"]
    assert (row["paper"], row["table"], row["cells"], row["fitted"]) == ("pipegcn", "table8", 2, 2)
    assert row["moved"]["gathering, mi60"] == 0.5
    assert row["without"]["median"] > row["with"]["median"]
