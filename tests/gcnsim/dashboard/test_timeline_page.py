"""The Timeline page: what it asks and what its job writes, without a browser and in one."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from gcnsim.api import simulate
from gcnsim.core.errors import GcnsimError
from gcnsim.dashboard.app import found
from gcnsim.dashboard.files import Files
from gcnsim.dashboard.jobs import Jobs
from gcnsim.dashboard.pages import forms, timeline
from gcnsim.dashboard.work import FIGURES
from tests.dashboards import command_line


def read(**values: str) -> dict[str, str]:
    form = forms.of_path("/timeline")
    assert form is not None
    return forms.read(form, f"?{urlencode(values)}")


def tracks(path: Path) -> set[str]:
    events = json.loads(path.read_text(encoding="utf-8"))["traceEvents"]
    return {event["args"]["name"] for event in events if event["name"] == "thread_name"}


def test_the_command_line_asks_the_same() -> None:
    words = timeline.command(read(method="pipegcn", gpus="2", bandwidth="2.5"))
    assert shlex.join(words) == (
        "gcnsim what-if --gpus 2 --bandwidth 2.5Gbps --device t4 --method pipegcn --dataset reddit"
        " --timeline timeline.json"
    )
    words = timeline.command(read(run="a run", calibration="record.json", measured_compute="measured"))
    assert shlex.join(words) == (
        "gcnsim timeline 'a run' --calibration record.json --measured-compute measured --out timeline.json"
    )


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"gpus": "-3"}, "gpus: '-3' is not allowed"),
        ({"bandwidth": "nan"}, "bandwidth: 'nan'"),
        ({"method": "<script>"}, "method: unknown '<script>'"),
        ({"dataset": "../reddit"}, "dataset: unknown"),
        ({"graph": "/etc/passwd"}, "outside the folder"),
        ({"run": "../run"}, "outside the folder"),
        ({"calibration": "."}, "calibration: needs a recorded run"),
        ({"worker": "-1"}, "worker: '-1' is not allowed"),
    ],
)
def test_what_cannot_be_drawn_is_a_line(folder: Path, values: dict[str, str], message: str) -> None:
    with pytest.raises(GcnsimError) as error:
        timeline.options(read(**values), Files(folder, folder))
    assert message in str(error.value)
    assert "\n" not in str(error.value)
    assert timeline.command(read(**values))[0] == "gcnsim"


def test_a_setting_is_drawn_and_taken_home(folder: Path, tmp_path: Path) -> None:
    values = read(method="full-graph", gpus="2", bandwidth="5")
    job = Jobs(tmp_path).start("timeline", timeline.options(values, Files(folder, folder)))
    job._thread.join(120)
    assert job.error is None
    names = {path.name for path in job.folder.iterdir()}
    assert {"timeline.json", "timeline.csv", "timeline.html"} <= names
    assert {"compute", "send", "receive"} <= tracks(job.folder / "timeline.json")
    (figure,) = json.loads((job.folder / FIGURES).read_text(encoding="utf-8"))
    assert figure["title"] == "Predicted"
    setting: dict[str, Any] = {"cluster": {"gpus": 2, "bandwidth": "5Gbps"}, "method": {"name": "full-graph"}}
    content = simulate({"schema": "gcnsim.scenario/1", "name": "x", "workload": {"dataset": "reddit"}} | setting)
    seconds = content.result.metrics.iteration_s
    shown = str(found(job, "dark"))
    assert f"full-graph: {seconds:.2f} s an iteration (" in shown
    assert "; limited by " in shown
    assert "UNCALIBRATED" in shown
    assert "reddit, 2 x T4 in 1 server at 5Gbps" in shown


def test_a_recorded_run_stands_beside_its_prediction(folder: Path, tmp_path: Path) -> None:
    values = read(run="run", measured_compute="measured")
    job = Jobs(tmp_path).start("timeline", timeline.options(values, Files(folder, folder)))
    job._thread.join(120)
    assert job.error is None
    assert {"iterations", "compute", "send", "receive", "all-reduce"} <= tracks(job.folder / "timeline.json")
    figures = json.loads((job.folder / FIGURES).read_text(encoding="utf-8"))
    assert [figure["title"] for figure in figures] == ["Measured", "Predicted"]
    ends = [max(axis["range"][1] for name, axis in figure["drawn"]["layout"].items() if name == "xaxis")
            for figure in figures]  # fmt: skip
    assert ends[0] == ends[1], "one scale of time"
    shown = str(found(job, "light"))
    assert "run: 100 ms an iteration measured, " in shown
    assert "the prediction: UNCALIBRATED" in shown


def test_the_page_draws_what_its_address_asks(looking: Any) -> None:
    looking.open("/timeline?gpus=2&method=pipegcn&worker=1")
    looking.settled("/timeline")
    rows = looking.page.locator("#figure-0 .ytick text").all_text_contents()
    assert {row[0] for row in rows} == {"1"}
    assert "1 compute" in rows
    assert "The slowest worker, 0, is hidden." in looking.page.inner_text("#job-result")
    content = command_line(*shlex.split(looking.page.inner_text("#command").partition(" --timeline")[0])[2:])
    seconds = content["results"][0]["iteration_s"]
    assert f"{seconds:.2f} s an iteration (" in looking.page.inner_text("#job-result h2")
    with looking.page.expect_download() as download:
        looking.page.click(".files >> text=timeline.json")
    assert {"compute", "send", "receive"} <= tracks(download.value.path())
    looking.page.fill("input[id*=gpus]", "-3")
    looking.page.keyboard.press("Enter")
    looking.page.wait_for_selector("#command:text-is('gcnsim what-if')")
    looking.page.click("#job-start")
    looking.page.wait_for_selector("#job-result .alert:has-text(\"gpus: '-3' is not allowed\")")
