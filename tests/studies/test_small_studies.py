"""Small programs of the authors."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
import pytest
import yaml
from jsonschema import Draft202012Validator

from gcnsim.core.schemas import schema_text
from gcnsim.evidence.published_facts import read_published
from gcnsim.graph.generate import BlockModel, block_model
from gcnsim.hardware import platform, platforms
from gcnsim.results import Row
from gcnsim.workload import dataset
from gcnsim.workload.reach import lognormal_law
from studies.batch_hits import REDDIT, REDDIT_ROWS, REDDIT_TRAINING, drawn, expected
from studies.fit_published import LEFT_OUT, expected_error, left_out, table_lines
from studies.given_rows import OUT, given_rows
from studies.measured_boundary import random_boundary, spread_of
from studies.published_coefficients import COEFFICIENTS, Fit, Trials, assumed, document, errors, fit, groups
from studies.unchanged import differences
from tests.gcnsim.results.made import DOCUMENT
from tests.gcnsim.results.made import JUDGED as JUDGED_ROW

OLD = '{"run": {"iterations": 5, "settled": true}, "rows": [{"s": 1.5}, {"s": 2}]}'


def test_other_values_and_keys_are() -> None:
    assert [line for line in differences(OLD, OLD.replace("1.5", "1.25")) if line[0] in "+-"][2:] == [
        '-   "s": 1.5',
        '+   "s": 1.25',
    ]
    assert any("new" in line for line in differences(OLD, OLD.replace('"rows"', '"new": 1, "rows"')))
    assert any("b table" in line for line in differences("a table", "b table"))


ROWS: list[dict[str, Any]] = yaml.safe_load(OUT.read_text(encoding="utf-8"))


def test_ranges_hold_between_80_and_97_per_cent_of_the_measured_times() -> None:
    assert 0.80 <= mean(row["inside"] for row in ROWS) <= 0.97


def test_rows_are_calibrated_by_other_tables_of_their_servers_alone() -> None:
    calibrated = {(row["paper"], row["table"]) for row in ROWS if row["calibrated_error"] is not None}
    assert {("pipegcn", "table4"), ("pipegcn", "table5"), ("bns_gcn", "table11")} <= calibrated
    assert not calibrated & {("psc_gcn", "table3"), ("bns_gcn", "table6")}, "the one fitted table of their servers"
    assert all((row["calibrated_error"] is None) == (row["calibrated_inside"] is None) for row in ROWS)


def test_a_row_that_stands_for_more_workers_is_counted_with_all_of_them() -> None:
    (row,) = (row for row in ROWS if (row["paper"], row["table"]) == ("bns_gcn", "table6"))
    assert (row["gpus"], row["servers"]) == (192, 32)


@pytest.mark.slow
def test_the_file_holds_what_is_found_now() -> None:
    found = given_rows()
    assert len(found) == len(ROWS)
    for now, kept in zip(found, map(dict, ROWS), strict=True):
        errors = [pytest.approx(kept.pop(name), abs=1e-3) for name in ("error", "calibrated_error")]
        assert [now.pop(name) for name in ("error", "calibrated_error")] == errors, kept
        assert now == kept


def row_of(name: str, definition: str) -> Draft202012Validator:
    schema: dict[str, Any] = json.loads(schema_text(name))
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema["$defs"][definition] | {"$defs": schema["$defs"]})


def test_a_row_of_a_what_if_is_that_of_a_result_and_its_judgement() -> None:
    alone, judged = row_of("result", "Row"), row_of("what-if", "JudgedRow")
    assert alone.is_valid(Row.read(DOCUMENT).payload())
    assert judged.is_valid(Row.read(JUDGED_ROW).payload())
    assert not alone.is_valid(JUDGED_ROW)
    assert not judged.is_valid(DOCUMENT)


def test_reddits_hits_are_within_three_points_of_the_counted() -> None:
    facts = dataset("reddit")
    assert facts.degree_spread is not None
    law = lognormal_law(facts.nodes, facts.entries / facts.nodes, facts.degree_spread)
    rows, hits = expected(law, (5, 5, 5, 5))
    assert np.abs(hits - np.array(REDDIT)).max() <= 0.03
    assert rows * REDDIT_TRAINING / 1024 == pytest.approx(REDDIT_ROWS, rel=0.1)


@pytest.mark.parametrize("spread", [0.5, 1.0])
def test_random_parts_tell_the_spread_with_which_hits_are_met(spread: float) -> None:
    graph = block_model(BlockModel(6_000, 120_000, communities=4, degree_spread=spread), 0)
    found = spread_of(graph.nodes, graph.entries, 10, random_boundary(graph, 10))
    assert found == pytest.approx(spread, abs=0.2)
    law = lognormal_law(graph.nodes, graph.entries / graph.nodes, found)
    (rows, hits), (true, counted) = expected(law, (5, 5)), drawn(graph, (5, 5))
    assert rows == pytest.approx(true, rel=0.1)
    assert np.abs(hits - counted).max() <= 0.03


@pytest.mark.parametrize(
    ("name", "parts", "boundary"),
    [("ogbn-products", 10, 16_797_000), ("reddit-train", 8, 1_016_000), ("yelp-train", 10, 2_026_000)],
)
def test_published_spreads_are_those_of_random_parts(name: str, parts: int, boundary: int) -> None:
    facts = dataset(name)
    assert spread_of(facts.nodes, facts.entries, parts, boundary) == pytest.approx(facts.degree_spread, abs=0.03)


KEPT = json.loads(LEFT_OUT.read_text(encoding="utf-8"))
PUBLISHED_DOCUMENT = (Path(__file__).resolve().parents[2] / "docs" / "reproduce.md").read_text(encoding="utf-8")


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
    assert "\n".join(table_lines(KEPT)) in PUBLISHED_DOCUMENT
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
    assert found.determined == {"gathering, mi60", "host call"}
    assert np.abs(errors(trials.cells("pipegcn-mi60", found.values))).max() < 0.1
    (row,) = left_out(trials, found)["tables"]
    assert (row["paper"], row["table"], row["cells"], row["fitted"]) == ("pipegcn", "table8", 2, 2)
    assert row["moved"]["gathering, mi60"] == 0.5
    assert row["without"]["median"] > row["with"]["median"]
