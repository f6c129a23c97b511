"""`gcnsim calibrate` from the outside."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gcnsim.cli import main
from gcnsim.records.calibration import read_calibration, write_calibration
from tests.gcnsim.cli.conftest import Refused
from tests.gcnsim.evidence import made_gpu as gpu
from tests.gcnsim.evidence.conftest import EMULATED, WriteRun, parts_measured, simulated
from tests.gcnsim.evidence.made_calibration import calibration, measurements, write_measurements


def call(*words: str | Path) -> int:
    return main(["calibrate", *(str(word) for word in words)])


def test_measurements_become_a_record(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "c.json"
    assert call(write_measurements(tmp_path / "links.json"), "--out", out) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    assert captured.out.startswith(f"{out}: cpu-core on Xeon, measured in 1.0 minutes\n")
    record = read_calibration(out)
    assert record.figures["host"]["socket_bandwidth"].value == pytest.approx(1.5e9, rel=0.02)
    assert [source.name for source in record.inputs] == ["links.json"]


def test_the_same_input_gives_the_same_file(tmp_path: Path) -> None:
    path = write_measurements(tmp_path / "links.json")
    for name in ("a.json", "b.json"):
        assert call(path, "--out", tmp_path / name) == 0
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()


def test_runs_refine_it_and_are_refused_by_validate(
    write_run: WriteRun, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_calibration(tmp_path / "truth.json", calibration())
    seen, unseen = write_run("seen"), write_run("unseen", method="pipegcn")
    (file,) = parts_measured(tmp_path, seen, unseen)
    for folder in (seen, unseen):
        simulated(folder, tmp_path / "truth.json", measured=[file])
    out, compute = tmp_path / "c.json", ("--measured-compute", str(file))
    assert call(write_measurements(tmp_path / "links.json"), "--runs", seen, *compute, "--out", out) == 0
    assert "iterations of the runs: " in capsys.readouterr().out
    assert [source.kind for source in read_calibration(out).inputs] == ["measurements", "run", "measured_compute"]
    assert main(["validate", str(unseen), "--calibration", str(out), *compute, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["runs"] == 1
    assert main(["validate", str(seen), "--calibration", str(out)]) == 2
    assert "the calibration used this run" in capsys.readouterr().err


def test_a_gpus_record_changes_the_answer_for_that_gpu_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(tmp_path / "t4.json")
    assert call(write_measurements(tmp_path / "links.json", gpu.measurements()), "--out", out) == 0
    text = capsys.readouterr().out
    assert text.startswith(f"{out}: t4 on Xeon, measured in 1.0 minutes\n")
    for line in ("  copies.bandwidth ", "  device.gemm_efficiency ", "spmm beside copies (no law): "):
        assert line in text
    names = ["what-if", "--gpus", "4", "--method", "pipegcn", "--json", "--device"]
    assert main([*names, "t4"]) == 0
    plain = json.loads(capsys.readouterr().out)
    assert main([*names, "t4", "--calibration", out]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["results"][0]["compute_s"] != pytest.approx(plain["results"][0]["compute_s"], rel=1e-3)
    assert f"{out} (SHA-256 " in found["provenance"]["calibration"]
    assumed = {item["name"] for item in found["provenance"]["assumptions"]}
    assert {"generic-16.call_s", "pcie3-x16.efficiency", "pcie3-x16.latency_s"}.isdisjoint(assumed)
    assert "pcie3-x16.efficiency" in {item["name"] for item in plain["provenance"]["assumptions"]}
    assert main([*names, "l4", "--calibration", out]) == 2
    assert f"cluster.calibration: {out} is for t4, cluster.device is l4" in capsys.readouterr().err


def test_bad_input_is_one_line_and_leaves_no_record(write_run: WriteRun, tmp_path: Path, refused: Refused) -> None:
    out = tmp_path / "c.json"
    path = write_measurements(tmp_path / "links.json")
    assert "none.json: cannot be read" in refused("calibrate", tmp_path / "none.json", "--out", out)
    assert "python -m runtime.measure --links writes such a file" in refused(
        "calibrate", _broken(tmp_path), "--out", out
    )
    document = gpu.measurements()
    document["measurements"] = [
        measurement for measurement in document["measurements"] if measurement["kernel"] != "pack"
    ]
    partial = write_measurements(tmp_path / "partial.json", document)
    assert "partial.json: has no kernel 'pack'" in refused("calibrate", partial, "--out", out)
    core = parts_measured(tmp_path, write_run("run"))[0]
    compute = ("--measured-compute", core)
    assert "none/run.json: cannot be read" in refused(
        "calibrate", path, "--runs", tmp_path / "none", *compute, "--out", out
    )
    assert "allowed: with --measured-compute" in refused("calibrate", path, "--runs", tmp_path / "run", "--out", out)
    assert "Missing argument" in refused("calibrate")
    assert not out.exists()
    text = refused("calibrate", path, "--out", tmp_path / "no" / "c.json")
    assert "c.json: " in text


def _broken(tmp_path: Path) -> Path:
    return write_measurements(tmp_path / "broken.json", {"schema": "gcnsim.measurements/1"})


def test_a_run_counts_once_even_from_a_copy(write_run: WriteRun, tmp_path: Path, refused: Refused) -> None:
    profile, one, copy = write_measurements(tmp_path / "links.json"), write_run("one"), write_run("copy")
    compute: tuple[str | Path, ...] = ("--measured-compute", *parts_measured(tmp_path, one))
    for other in (one, copy):
        text = refused("calibrate", profile, "--runs", one, "--runs", other, *compute, "--out", tmp_path / "c.json")
        assert text == f"gcnsim: --runs: {other} is the same run as {one}; allowed: each once\n"
    assert not (tmp_path / "c.json").exists()


@pytest.mark.parametrize(("name", "value", "message"), [("cpu", "EPYC", "EPYC, ")])
def test_runs_of_another_machine_are_refused(
    write_run: WriteRun, tmp_path: Path, name: str, value: object, message: str, refused: Refused
) -> None:
    profile, folder = write_measurements(tmp_path / "links.json"), write_run("run")
    document = json.loads((folder / "run.json").read_text())
    document["hardware"][name] = value
    (folder / "run.json").write_text(json.dumps(document))
    compute: tuple[str | Path, ...] = ("--measured-compute", *parts_measured(tmp_path, folder))
    text = refused("calibrate", profile, "--runs", folder, *compute, "--out", tmp_path / "c.json")
    assert text.startswith(f"gcnsim: {folder}: ran on {message}but ")


def test_a_trace_of_another_graph_is_refused(write_run: WriteRun, tmp_path: Path, refused: Refused) -> None:
    profile, folder = write_measurements(tmp_path / "links.json"), write_run("run")
    document = json.loads((folder / "run.json").read_text())
    document["graph"]["hash"] = "cd" * 32
    (folder / "run.json").write_text(json.dumps(document))
    compute: tuple[str | Path, ...] = ("--measured-compute", *parts_measured(tmp_path, folder))
    text = refused("calibrate", profile, "--runs", folder, *compute, "--out", tmp_path / "c.json")
    assert "access.trace: is of the graph " in text


def test_what_may_mislead_is_noted(write_run: WriteRun, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = measurements()
    document["versions"]["torch"] = "1.0"
    profile = write_measurements(tmp_path / "links.json", document)
    folder = write_run("run", emulation=EMULATED | {"limiter": "exchange"})
    compute: tuple[str | Path, ...] = ("--measured-compute", *parts_measured(tmp_path, folder))
    assert call(profile, "--runs", folder, *compute, "--out", tmp_path / "c.json") == 0
    first, second = capsys.readouterr().err.splitlines()
    assert first == f"note: {folder}: torch 2.13.0, measured with 1.0"
    assert second.startswith(f"note: {folder}: its links were paced in the exchange")


@pytest.mark.parametrize("seconds", [0.0, 1e-300, 3000.0])
def test_a_profile_of_one_time_for_everything_is_refused_or_fitted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], seconds: float
) -> None:
    document = measurements()
    for measurement in document["measurements"]:
        measurement.update(seconds=seconds, low=seconds, high=seconds)
    profile = write_measurements(tmp_path / "links.json", document)
    if call(profile, "--out", tmp_path / "c.json"):
        captured = capsys.readouterr().err
        assert captured.count("\n") == 1
        assert "cannot be fitted" in captured
    else:
        assert read_calibration(tmp_path / "c.json").figures["host"]
