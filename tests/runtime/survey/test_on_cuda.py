"""A survey of one real GPU, where there is one: profile, runs, calibration and judgement of one folder."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from gcnsim.evidence.fit import calibrate
from gcnsim.evidence.validation import judge
from gcnsim.hardware import gpu_named
from gcnsim.records.calibration import write_calibration
from gcnsim.records.recorded_run import read_recorded_run
from runtime.survey import read_rule
from tests.runtime.shell import ROOT

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")

RULE = Path(__file__).with_name("one_gpu.yaml")
NAMES = sorted(run.name for run in read_rule(RULE).planned())


@pytest.fixture(scope="module")
def survey(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a survey of one GPU."""
    folder = tmp_path_factory.mktemp("survey")
    words = [sys.executable, "-m", "runtime.survey", "--device", "cuda", "--workers", "1", "--rule", str(RULE)]
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [*words, "--out", "s"], cwd=folder, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return folder / "s"


def test_all_runs_of_the_rule_are_there(survey: Path) -> None:
    state = json.loads((survey / "survey.json").read_text(encoding="utf-8"))
    assert (state["device"], state["workers"], sorted(state["runs"])) == ("cuda", 1, NAMES)
    assert state["servers"][0]["gpus"][0] == torch.cuda.get_device_name(0)
    for name in NAMES:
        record = json.loads((survey / "runs" / name / "run.json").read_text(encoding="utf-8"))
        assert record["hardware"]["gpus"][0] == torch.cuda.get_device_name(0)


def test_a_run_holds_no_more_than_it_needs_itself(survey: Path) -> None:
    """Runs of one process: what an earlier one held is not counted again."""
    peaks = {}
    for name in NAMES:
        record = json.loads((survey / "runs" / name / "run.json").read_text(encoding="utf-8"))
        peaks[name] = record["peak_memory"][0]["device_bytes"]
    assert all(peak > 0 for peak in peaks.values())
    assert peaks["calibration-1"] < peaks["calibration-0"], "narrower layers"


def test_it_is_calibrated_and_judged(survey: Path, tmp_path: Path, tell: Callable[[str], None]) -> None:
    if gpu_named(torch.cuda.get_device_name(0)) is None:
        pytest.skip(f"the catalogue has no {torch.cuda.get_device_name(0)}")
    seen, unseen = ([survey / "runs" / name for name in NAMES if name.startswith(kind)] for kind in ("cal", "held"))
    record = calibrate(survey / "profile.json", seen)
    write_calibration(tmp_path / "calibration.json", record)
    assert judge(unseen, tmp_path / "calibration.json")[0], "too small a profile to say how well"
    found, _ = judge(unseen, None)
    for check in found:
        assert abs(math.log1p(check.error)) < math.log(3.0), f"{check.run}: by figures of the catalogue"
        assert check.measured_s == read_recorded_run(survey / "runs" / check.run).iteration_s
        assert sum(check.measured.values()) == pytest.approx(check.measured_s, rel=0.5)
    told = ", ".join(f"{check.run} {1e3 * check.measured_s:.2f} ms {100 * check.error:+.0f} %" for check in found)
    tell(f"survey of one GPU, by figures of the catalogue: {told}")
