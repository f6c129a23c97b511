"""CPU cores without a calibration: nobody knows how far their predictions are off, so no range is given of them."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gcnsim
from gcnsim.calibration_record.record import write_calibration
from gcnsim.graph import build_csr
from gcnsim.io.json_files import mistake
from gcnsim.results import MEASURE_CORES, NO_RANGE
from tests.gcnsim.calibration.made import calibration

ENDS = np.random.default_rng(3).integers(0, 300, (2, 1500))
QUESTION: dict[str, Any] = {
    "graph": build_csr(ENDS[0], ENDS[1], 300, "small"),
    "gpus": 2,
    "layers": 2,
    "hidden": 32,
    "iterations": 2,
    "processes": 1,
    "overrides": ["workload.features=32", "workload.classes=8"],
}
CORES = QUESTION | {"device": "cpu-core"}
RANGE = re.compile(r"\([\d.]+ (us|ms|s) to [\d.]+ (us|ms|s)\)|\([\d.]+-[\d.]+\)")
"""A time's range as text: `(1.20 ms to 2.00 ms)`, `(1.2-2.0)`."""


@pytest.fixture(scope="module")
def answer() -> gcnsim.Answer:
    return gcnsim.what_if(**CORES, method=["full-graph", "pipegcn"])


def test_no_row_has_a_range(answer: gcnsim.Answer) -> None:
    for row in answer.told.rows:
        assert (row.iteration_s_low, row.iteration_s_high, row.distinguishable) == (None, None, None)
    assert answer.told.recommendation.confidence.share is None
    assert all(step.gain_low is None and step.distinguishable is None for step in answer.told.next_steps)


def test_the_text_has_no_range_and_says_so(answer: gcnsim.Answer) -> None:
    text = " ".join(str(answer).split())
    assert not RANGE.search(text)
    assert "cannot be told apart" not in text
    assert f"(no 90 % range: {NO_RANGE})" in text
    assert f"confidence not known: {NO_RANGE}; {MEASURE_CORES}" in text
    assert not RANGE.search(repr(answer))


def test_json_has_null_and_keeps_its_schema(answer: gcnsim.Answer) -> None:
    payload = dict(answer.payload)
    assert mistake(payload, "what-if") is None
    assert {row["iteration_s_low"] for row in payload["results"]} == {None}
    assert payload["recommendation"]["iteration_s_high"] is None
    assert payload["recommendation"]["confidence"]["share"] is None
    assert payload["provenance"]["interval"].startswith(f"none of {NO_RANGE}")
    assert not any(assumption["in_interval"] for assumption in payload["provenance"]["assumptions"])


def test_frames_and_csv_leave_the_range_empty(answer: gcnsim.Answer, tmp_path: Path) -> None:
    table = answer.to_arrow()
    assert table["iteration_s_low"].null_count == table.num_rows == 2
    answer.to_csv(tmp_path / "rows.csv")
    with (tmp_path / "rows.csv").open() as file:
        assert [row["iteration_s_high"] for row in csv.DictReader(file)] == [""] * 2


def test_the_page_has_no_range(answer: gcnsim.Answer, tmp_path: Path) -> None:
    answer.to_html(tmp_path / "page.html")
    assert f"not known: {NO_RANGE}" in (tmp_path / "page.html").read_text()


def test_a_measured_time_is_not_judged_by_the_draws() -> None:
    content = gcnsim.what_if(**CORES, method="full-graph", measured="2s").told
    assert content.measured is not None
    (measured_report,) = content.measured
    assert (
        measured_report.consistent,
        measured_report.explanations,
        measured_report.suspects,
        measured_report.rows,
    ) == (None, (), (), None)
    assert MEASURE_CORES in measured_report.text


def test_simulate_says_that_there_is_no_range() -> None:
    cluster = {"gpus": 2, "device": "cpu-core"}
    mapping = {"schema": "gcnsim.scenario/1", "cluster": cluster, "method": {"name": "full-graph"}}
    found = gcnsim.simulate(mapping | {"run": {"iterations": 2}})
    assert found.payload["result"]["iteration_s_low"] is None
    assert mistake(dict(found.payload), "result") is None
    assert f"(no 90 % range: {NO_RANGE})" in str(found)


def test_a_recommendation_has_no_chance_and_is_ranked_by_the_stated_values() -> None:
    found = gcnsim.recommend(**CORES, method=["full-graph"], target_iteration="1s", minimise="time")
    choice = found.told.choice
    assert mistake(found.told.payload(), "recommend") is None
    assert (choice.chance, choice.meets, choice.seconds_low) == (None, True, None)
    assert f"meets the 1.00 s target at the stated values; with what chance is not known ({NO_RANGE})" in str(
        found.told.verdict
    )
    assert not RANGE.search(str(found).partition("What moves")[0])


def test_a_target_that_is_missed_at_the_stated_values_is_missed() -> None:
    advice = gcnsim.recommend(**CORES, method=["full-graph"], target_iteration="1us", minimise="time").told
    assert advice.missed is not None
    assert (advice.choice.chance, advice.choice.meets) == (None, False)
    assert {change.chance for change in advice.missed.changes} <= {None}


def test_calibrated_cores_keep_their_range(tmp_path: Path) -> None:
    write_calibration(tmp_path / "own.json", calibration())
    content = gcnsim.what_if(**CORES, method="full-graph", calibration=str(tmp_path / "own.json"))
    (row,) = content.told.rows
    assert row.iteration_s_low is not None
    assert row.iteration_s_high is not None
    assert row.iteration_s_low <= row.iteration_s <= row.iteration_s_high
    assert NO_RANGE not in str(content)


def test_gpus_beside_cores_keep_their_range() -> None:
    content = gcnsim.what_if(**QUESTION, method="full-graph", device=["t4", "cpu-core"])
    gpu, core = sorted(content.told.rows, key=lambda row: row.device, reverse=True)
    assert (gpu.device, core.device) == ("t4", "cpu-core")
    assert gpu.iteration_s_low is not None
    assert core.iteration_s_low is None
    assert core.vs_recommended_low is None
    assert f"(no 90 % range: {NO_RANGE})" in str(content)
    assert RANGE.search(str(content))
