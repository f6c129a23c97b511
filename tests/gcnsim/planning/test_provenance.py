"""What an answer says of its calibration: the settings beyond it, and the error it was found to have."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gcnsim
from gcnsim.evidence.fit import ranges
from gcnsim.records.calibration import write_calibration
from gcnsim.records.recorded_run import read_recorded_run
from tests.gcnsim.evidence.conftest import EMULATED, WriteRun, small_graph
from tests.gcnsim.evidence.made_calibration import of_gpu

BESIDE = "outside the calibrated range: "


@pytest.fixture
def question(tmp_path: Path, write_run: WriteRun) -> dict[str, Any]:
    """A question about what two runs trained, with the record of a calibration that saw these alone."""
    knobs = {"tau": 2, "epsilon": 0.1, "sampler": "vr", "refresh": 20, "cache": "0%", "cache_policy": "inclusion"}
    runs = [write_run("a"), write_run("b", method="psc-gcn", knobs=knobs), write_run("c", method="pipegcn")]
    seen = ranges([read_recorded_run(run) for run in runs])
    write_calibration(tmp_path / "record.json", of_gpu(error=0.159, ranges=seen))
    graph = small_graph()
    np.savez(tmp_path / "small.npz", allow_pickle=False, indptr=graph.indptr, indices=graph.indices)
    return {
        "graph": str(tmp_path / "small.npz"),
        "gpus": 2,
        "gpus_per_server": 1,
        "device": "t4",
        "bandwidth": "200Mbps",
        "layers": 2,
        "hidden": 32,
        "calibration": str(tmp_path / "record.json"),
        "overrides": ["workload.features=32", "workload.classes=8"],
    }


def flags(question: Mapping[str, Any], **changes: Any) -> list[str]:
    """What is said to be beyond the calibration."""
    answer = gcnsim.what_if(**{**question, "iterations": 4, "processes": 1, **changes})
    found: list[str] = answer.payload["provenance"]["warnings"]
    return [text.removeprefix(BESIDE) for text in found if text.startswith(BESIDE)]


def test_what_was_seen_is_not_flagged(question: dict[str, Any]) -> None:
    assert EMULATED["bandwidth"] == 2.5e7, "the bandwidth asked for"
    assert flags(question, method=["full-graph", "pipegcn", "psc-gcn"], tau=2, epsilon=0.1) == []


def test_what_was_never_seen_is_flagged_by_name(question: dict[str, Any]) -> None:
    assert flags(question, method="bns-gcn", rate=0.1) == [
        "method bns-gcn (never calibrated)",
        "rate 0.1 (never calibrated)",
    ]
    changed = flags(question, method="psc-gcn", cache="30%", tau=2, epsilon=0.3, model="graphsage", gpus=4)
    assert changed == [
        "model graphsage (never calibrated)",
        "workers 4 (calibrated: 2)",
        "hosts 4 (calibrated: 2)",
        "epsilon 0.3 (calibrated: 0.1)",
        "cache 0.3 (calibrated: 0)",
    ]
    late = flags(question, method="full-graph", overrides=[*question["overrides"], "cluster.latency=1ms"])
    assert late == ["latency_s 0.001 (calibrated: 0)"]
    racks = flags(question, method="full-graph", overrides=[*question["overrides"], "cluster.servers_per_rack=1"])
    assert racks == ["cluster.servers_per_rack (never calibrated)"]


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (0.159, "; and 15.9 % either way, the expected error of a run that the fit did not use"),
        (None, "; with fewer than three calibration runs, the error of fitted figures is unknown and not covered"),
    ],
)
def test_the_interval_says_what_the_calibration_adds(
    error: float | None, words: str, question: dict[str, Any], tmp_path: Path
) -> None:
    write_calibration(tmp_path / "record.json", of_gpu(error=error, ranges={}))
    answer = gcnsim.what_if(**question, method="full-graph", iterations=4, processes=1)
    assert answer.payload["provenance"]["interval"].endswith(words)
    assert (answer.payload["certainty"]["calibrated"], answer.payload["certainty"]["label"]) == (True, "CALIBRATED")
    assert f"{BESIDE}every setting (calibrated without runs)" in answer.payload["provenance"]["warnings"]


def test_a_calibrated_answer_says_nothing_of_like_questions(question: dict[str, Any]) -> None:
    """The record's own error is in its interval."""
    content = gcnsim.what_if(**question, method="full-graph", iterations=4, processes=1).payload["provenance"]
    assert "like_questions" not in content


def test_answers_for_gpus_say_how_far_off_like_questions_were(tmp_path: Path) -> None:
    place: dict[str, Any] = {"gpus": 4, "gpus_per_server": 4, "device": "t4", "transport": "staged"}
    question: dict[str, Any] = {"dataset": "reddit", "method": "full-graph", "iterations": 4}
    answer = gcnsim.what_if(**question, **place, processes=1)
    content = answer.payload["provenance"]["like_questions"]
    assert {"one server", "staged", "full-graph"} <= set(content["alike"])
    assert content["rows"] >= 5
    assert 0.0 < content["median_error"] < 0.5
    assert "inside" not in content, "a share within ranges of rows that were known says nothing"
    first = content["text"].split("; ")[0]
    assert first.split(" (")[0] == (
        f"{content['rows']} measured rows, known when formulas were chosen: "
        f"median error {100 * content['median_error']:.0f} %"
    )
    assert f"similar questions {first}" in " ".join(answer.explain().split())
    answer.to_html(tmp_path / "page.html")
    assert content["text"] in (tmp_path / "page.html").read_text(encoding="utf-8")
    advice = gcnsim.recommend(**question, **place, processes=1)
    assert advice.payload["provenance"]["like_questions"] == content
    assert f"similar questions {first}" in " ".join(str(advice).split())
    asked_alone = {"schema": "gcnsim.scenario/1", "workload": {"dataset": "reddit"}, "method": {"name": "full-graph"}}
    run = gcnsim.simulate(asked_alone | {"cluster": {"bandwidth": "10Gbps"} | place})
    assert run.payload["provenance"]["like_questions"] == content
    assert f"  similar questions: {content['text']}" in str(run)
