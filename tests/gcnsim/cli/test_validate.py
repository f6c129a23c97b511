"""`gcnsim validate` from the outside."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gcnsim.cli import main
from gcnsim.records.calibration import Source, write_calibration
from gcnsim.records.recorded_run import read_recorded_run
from tests.gcnsim.cli.conftest import Refused
from tests.gcnsim.evidence.conftest import WriteRun, parts_measured, simulated
from tests.gcnsim.evidence.made_calibration import MACHINE, calibration


@pytest.fixture
def record(tmp_path: Path) -> Path:
    path = tmp_path / "calibration.json"
    write_calibration(path, calibration(error=0.1))
    return path


def call(*words: str | Path) -> int:
    return main(["validate", *(str(word) for word in words)])


def measured(*folders: Path) -> list[str | Path]:
    """The folder of the measured times of the parts of these runs, as an option."""
    place = folders[0].parent / "measured"
    place.mkdir(exist_ok=True)
    parts_measured(place, *folders)
    return ["--measured-compute", place]


def test_runs_that_take_what_is_predicted(
    write_run: WriteRun, record: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folders = [write_run("a"), write_run("b", method="pipegcn")]
    compute = measured(*folders)
    for folder in folders:
        simulated(folder, record, measured=sorted((tmp_path / "measured").glob("*.parquet")))
    assert call(*folders, "--calibration", record, *compute, "--json", "--strict") == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert (found["runs"], found["coverage"], found["kendall"]) == (2, 1.0, 1.0)
    assert found["mape"] < 1e-9
    assert found["regret"] == {"mean": 0.0, "max": 0.0}
    assert [row["run"] for row in found["rows"]] == ["a", "b"]
    assert found["calibration"]["name"] == "calibration.json"


def test_text_and_files(write_run: WriteRun, record: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, answer, folder = tmp_path / "report", tmp_path / "answer.json", write_run("a")
    words = [folder, "--calibration", record, *measured(folder), "--out", out]
    assert call(*words, "--json-out", answer) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    assert captured.out.startswith("Predicted against measured iterations, MEASURED compute\n")
    assert sorted(path.name for path in out.iterdir()) == ["validation.csv", "validation.html", "validation.md"]
    assert json.loads(answer.read_text())["runs"] == 1
    assert call(*words) == 0, "a folder that is there is used"


def test_another_machine_is_noted_and_strict_refuses_it(
    write_run: WriteRun, tmp_path: Path, capsys: pytest.CaptureFixture[str], refused: Refused
) -> None:
    write_calibration(tmp_path / "c.json", calibration(machine={**MACHINE, "cpu": "EPYC"}))
    folder = write_run("a")
    assert call(folder, "--calibration", tmp_path / "c.json", *measured(folder)) == 0
    assert f"note: {folder}: cpu Xeon, calibrated on EPYC" in capsys.readouterr().out
    assert "cpu Xeon, calibrated on EPYC" in refused(
        "validate", folder, "--calibration", tmp_path / "c.json", "--strict"
    )


def test_bad_input_is_one_line(write_run: WriteRun, record: Path, tmp_path: Path, refused: Refused) -> None:
    folder = write_run("a")
    (tmp_path / "empty").mkdir()
    assert "empty/run.json: cannot be read" in refused("validate", tmp_path / "empty")
    assert "none/run.json: cannot be read" in refused("validate", folder, tmp_path / "none")
    assert 'schema is "gcnsim.run/1", wanted "gcnsim.calibration/1"' in refused(
        "validate", folder, "--calibration", folder / "run.json"
    )
    assert "nothing.json: cannot be read" in refused("validate", folder, "--calibration", tmp_path / "nothing.json")
    assert "Missing argument" in refused("validate")
    assert "No such option" in refused("validate", folder, "--strickt")
    used = calibration(inputs=(Source("run", "a", read_recorded_run(folder).sha256),))
    write_calibration(tmp_path / "used.json", used)
    assert "the calibration used this run" in refused("validate", folder, "--calibration", tmp_path / "used.json")
    document = json.loads((folder / "run.json").read_text()) | {"finished": False}
    (folder / "run.json").write_text(json.dumps(document))
    assert "the run was interrupted after 10 iterations" in refused("validate", folder, "--calibration", record)


def test_what_cannot_be_written_is_said_before_the_work(tmp_path: Path, refused: Refused) -> None:
    text = refused("validate", tmp_path / "none", "--json-out", tmp_path / "no" / "answer.json")
    assert "answer.json: " in text


def test_a_folder_that_cannot_be_made_is_said_before_the_work(
    write_run: WriteRun, tmp_path: Path, refused: Refused
) -> None:
    (tmp_path / "afile").touch()
    assert "afile: is not a folder" in refused("validate", tmp_path / "none", "--out", tmp_path / "afile")
    assert "no/report: cannot be written" in refused("validate", tmp_path / "none", "--out", tmp_path / "no" / "report")
    same = ("--out", tmp_path / "new", "--json-out", tmp_path / "new")
    assert "given to both --out and --json-out" in refused("validate", tmp_path / "none", *same)


def test_the_json_may_go_into_the_folder_that_is_made(write_run: WriteRun, tmp_path: Path) -> None:
    out = tmp_path / "report"
    folder = write_run("a")
    assert call(folder, *measured(folder), "--out", out, "--json-out", out / "answer.json") == 0
    first = (out / "validation.html").read_bytes()
    assert json.loads((out / "answer.json").read_text())["runs"] == 1
    assert call(folder, *measured(folder), "--out", out, "--json-out", out / "answer.json") == 0
    assert (out / "validation.html").read_bytes() == first, "equal runs, equal pages"
