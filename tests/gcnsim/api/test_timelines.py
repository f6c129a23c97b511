"""Timelines of settings and recorded runs, and the command that writes them."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from gcnsim.api import run_timeline, setting_run, what_if
from gcnsim.cli import main
from gcnsim.core.errors import ScenarioError
from gcnsim.report.figures.timeline import timeline_of_result
from gcnsim.report.page.sections import DrawnTimeline, write_timelines_csv
from tests.gcnsim.evidence.conftest import WriteRun, parts_measured, write_run
from tests.gcnsim.evidence.test_compare import recorded

__all__ = ["write_run"]


def test_a_setting_is_the_run_that_what_if_writes() -> None:
    options: dict[str, Any] = {"gpus": 2, "bandwidth": "15Gbps", "method": "psc-gcn", "tau": 1}
    (row,) = what_if(**options).rows
    run = setting_run(**options)
    assert run.result.metrics.iteration_s == run.row.iteration_s == row.iteration_s
    assert run.row.iteration_s_low is not None
    with pytest.raises(ScenarioError, match="2 settings are asked for"):
        setting_run(gpus=2, method=["psc-gcn", "pipegcn"])


def test_measured_and_predicted_have_the_same_tracks(
    write_run: WriteRun, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = recorded(write_run, "run")
    trace, page = tmp_path / "both.json", tmp_path / "both.html"
    words = [f"--out={trace}", f"--html={page}"]
    words += [f"--measured-compute={path}" for path in parts_measured(tmp_path, folder)]
    assert main(["timeline", str(folder), *words]) == 0
    measured, predicted = capsys.readouterr().out.splitlines()
    assert measured == "measured   100 ms an iteration; steady: iteration 9"
    assert predicted.startswith("predicted  ")
    events = json.loads(trace.read_text())["traceEvents"]
    named = {event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"}
    tracks = [
        {e["args"]["name"] for e in events if e["name"] == "thread_name" and named[e["pid"]].startswith(side)}
        for side in ("measured", "predicted")
    ]
    assert tracks[0] == {"iterations", "compute", "send", "receive", "all-reduce"}
    assert tracks[0] <= tracks[1]
    assert "<h1>full-graph on small, 2 workers, measured</h1>" in page.read_text()


def test_what_cannot_be_a_timeline_is_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words, text in (
        ([str(tmp_path)], "run.json: cannot be read"),
        ([str(tmp_path), "--timeline-detail"], "--timeline-detail: describes a file"),
    ):
        assert main(["timeline", *words]) == 2
        line = capsys.readouterr().err
        assert text in line
        assert line.count("\n") == 1


def test_blocks_are_lines_of_a_table(write_run: WriteRun, tmp_path: Path) -> None:
    folder = recorded(write_run, "run")
    found = run_timeline(folder, measured_compute=parts_measured(tmp_path, folder))
    measured, predicted = found.data()
    assert measured.unit == predicted.unit
    write_timelines_csv(
        tmp_path / "out.csv", [DrawnTimeline("measured", measured), DrawnTimeline("predicted", predicted)]
    )
    with open(tmp_path / "out.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(measured.blocks) + len(predicted.blocks)
    first = measured.blocks[0]
    assert rows[0]["row"] == measured.rows[first.row]
    assert float(rows[0]["start_s"]) == first.start_s
    assert timeline_of_result(found.predicted).blocks == predicted.blocks
