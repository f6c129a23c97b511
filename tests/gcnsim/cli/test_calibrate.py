"""`gcnsim calibrate` from the outside."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gcnsim.cli import main
from gcnsim.record import read_calibration, write_calibration
from tests.gcnsim.calibration.made import calibration, measurements, write_measurements
from tests.gcnsim.validation.conftest import WriteRun, simulated


def call(*words: str | Path) -> int:
    return main(["calibrate", *(str(word) for word in words)])


def refused(capsys: pytest.CaptureFixture[str], *words: str | Path) -> str:
    assert call(*words) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert captured.err.startswith("gcnsim: ")
    return captured.err


def test_measurements_become_a_record(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "c.json"
    assert call(write_measurements(tmp_path / "profile.json"), "--out", out) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    assert captured.out.startswith(f"{out}: cpu-core on Xeon, measured in 1.0 minutes\n")
    record = read_calibration(out)
    assert record.figures["host"]["socket_bandwidth"].value == pytest.approx(1.5e9, rel=0.02)
    assert [source.name for source in record.inputs] == ["profile.json"]


def test_the_same_input_gives_the_same_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_measurements(tmp_path / "profile.json")
    for name in ("a.json", "b.json"):
        assert call(path, "--out", tmp_path / name) == 0
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()


def test_runs_refine_it_and_are_refused_by_validate(
    write_run: WriteRun, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_calibration(tmp_path / "truth.json", calibration(graphs={}))
    seen, unseen = write_run("seen"), write_run("unseen", method="pipegcn")
    for folder in (seen, unseen):
        simulated(folder, tmp_path / "truth.json")
    out = tmp_path / "c.json"
    assert call(write_measurements(tmp_path / "profile.json"), "--runs", seen, "--out", out) == 0
    assert "iterations of the runs: " in capsys.readouterr().out
    assert [source.kind for source in read_calibration(out).inputs] == ["measurements", "run"]
    assert main(["validate", str(unseen), "--calibration", str(out), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["runs"] == 1
    assert main(["validate", str(seen), "--calibration", str(out)]) == 2
    assert "the calibration used this run" in capsys.readouterr().err


def test_bad_input_is_one_line_and_leaves_no_record(
    write_run: WriteRun, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "c.json"
    path = write_measurements(tmp_path / "profile.json")
    assert "none.json: cannot be read" in refused(capsys, tmp_path / "none.json", "--out", out)
    assert "python -m runtime.profile writes such a file" in refused(capsys, _broken(tmp_path), "--out", out)
    document = measurements()
    document["measurements"] = [each for each in document["measurements"] if each["kernel"] != "pack"]
    partial = write_measurements(tmp_path / "partial.json", document)
    assert "partial.json: has no kernel 'pack'" in refused(capsys, partial, "--out", out)
    assert "none/run.json: cannot be read" in refused(capsys, path, "--runs", tmp_path / "none", "--out", out)
    assert "Missing argument" in refused(capsys)
    assert not out.exists()
    said = refused(capsys, path, "--out", tmp_path / "no" / "c.json")
    assert "c.json: " in said


def _broken(tmp_path: Path) -> Path:
    return write_measurements(tmp_path / "broken.json", {"schema": "gcnsim.measurements/1"})


def test_help_shows_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    assert call("--help") == 0
    assert "gcnsim calibrate profile.json" in capsys.readouterr().out
