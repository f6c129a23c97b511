"""Several machines in one question: what fits on one and not on another, and what is said of each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import gcnsim
from gcnsim import hardware

MOVED = ["workload.hidden=1024"]
"""A width with which one GPU of 11 GB does not hold Reddit, and two hold it in part."""


@pytest.fixture(scope="module")
def answer() -> gcnsim.Answer:
    return gcnsim.what_if(
        gpus=[1, 2], device="gtx-1080-ti", method=["bns-gcn", "psc-gcn"], overrides=MOVED, iterations=2, processes=1
    )


def test_what_does_not_fit_is_no_rival_of_what_does(answer: gcnsim.Answer) -> None:
    best = answer.recommendation
    assert best["fits"] is not False
    rows = [row for row in answer.results if row["gpus"] != best["gpus"]]
    assert any(row["fits"] is False for row in rows), "the question shows nothing"
    if all(row["fits"] is False for row in rows):
        assert "other machine" not in best["confidence"]["text"]


def test_what_is_excluded_for_its_memory_names_the_machine(answer: gcnsim.Answer) -> None:
    excluded = answer.recommendation["excluded"]
    assert excluded
    for entry in excluded:
        if "does not fit" in entry["why"]:
            assert entry["what"].endswith("x gtx-1080-ti")


def test_the_fastest_is_of_the_settings_that_fit() -> None:
    payload = gcnsim.what_if(gpus=2, device="gtx-1080-ti", overrides=MOVED, iterations=2, processes=1).payload
    best = payload["recommendation"]
    unfit = [row for row in payload["results"] if row["fits"] is False]
    assert unfit, "the question shows nothing"
    assert all(row["may_be_recommended"] is False for row in unfit)
    assert ("that fit" in best["why"]) or ("only setting" in best["why"])


def test_an_answer_does_not_depend_on_how_a_file_is_called(tmp_path: Path) -> None:
    source = (hardware.catalogue.DATA / "devices" / "t4.yaml").read_text(encoding="utf-8")
    answers: list[dict[str, Any]] = []
    for name in ("one.yaml", "another.yaml"):
        path = tmp_path / name
        path.write_text(source, encoding="utf-8")
        found = gcnsim.what_if(gpus=2, gpus_per_server=1, device=str(path), method="psc-gcn", iterations=3, processes=1)
        answers.append(found.results[0])
    times = [(row["iteration_s_low"], row["iteration_s"], row["iteration_s_high"]) for row in answers]
    assert times[0] == times[1]
    assert times[0][0] < times[0][1] < times[0][2]


def test_a_run_keeps_the_name_it_was_asked_under() -> None:
    found = gcnsim.what_if(gpus=2, method="psc-gcn", tau=1, epsilon=1, iterations=2, processes=1)
    assert found.recommended.scenario.method.name == "psc-gcn"
