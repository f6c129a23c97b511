"""`python -m runtime.profile` from end to end, at the smallest sizes."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any, NoReturn

import pytest
from jsonschema import Draft202012Validator

from runtime.microbench import FULL, KERNELS, TINY, MicrobenchRequest, ProcessError, measured
from runtime.microbench.measurements import BETWEEN_SERVERS, CUDA_ONLY, NETWORK, Measurement, from_json
from runtime.profile import main, take
from tests.runtime.shell import ROOT, Shell, gone, until
from tests.terminals import drawn

MEASURE = [sys.executable, "-m", "runtime.measure", "--links"]
SCHEMA = json.loads(files("gcnsim").joinpath("data/measurements.schema.json").read_text(encoding="utf-8"))

WRONG = {
    "cores": (
        "--device cpu",
        "--device: cpu is not allowed; what CPU cores compute is measured with the workload itself",
    ),
    "device": ("--device gpu", "--device: unknown 'gpu'; did you mean 'cpu'? known: cpu, cuda"),
    "aggregator": ("--aggregator auto", "--aggregator: unknown 'auto'; known: dgl, numba, plain"),
    "threads": ("--threads 0", "--threads: 0 is not allowed; a whole number of at least 1 and at most 4096"),
    "workers": ("--workers 0", "--workers: 0 is not allowed; a whole number of at least 1 and at most 64"),
    "list": ("--workers 1,two", "--workers: '1,two' is not a list of whole numbers; write e.g. 1,2,4"),
    "folder": ("--out missing/profile.json", "--out: missing/profile.json: cannot be written: No such file"),
    "a folder": ("--out .", "--out: .: is a directory"),
    "option": ("--quik", "No such option"),
}


def taken(request: MicrobenchRequest, **options: Any) -> int:
    """The exit code of a profile of cores, which no command asks for: `runtime.measure --links` takes a part of it."""
    return take(request, "profile.json", {"out": None, "overwrite": False, "json": False, **options})


@pytest.fixture(scope="module")
def profile(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a profile with transfers wrote."""
    path = tmp_path_factory.mktemp("profile") / "profile.json"
    assert taken(MicrobenchRequest(TINY, "cpu", 1, (1, 2)), out=str(path)) == 0
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def test_the_file_keeps_its_schema(profile: dict[str, Any]) -> None:
    Draft202012Validator.check_schema(SCHEMA)
    Draft202012Validator(SCHEMA).validate(profile)
    assert profile["options"]["workers"] == [1, 2]
    assert profile["options"]["aggregator"] == "plain"


def test_every_kernel_is_measured(profile: dict[str, Any]) -> None:
    found = {measurement["kernel"] for measurement in profile["measurements"]}
    assert found == set(KERNELS) - CUDA_ONLY - {BETWEEN_SERVERS}


def test_every_measurement_is_of_its_own_size(profile: dict[str, Any]) -> None:
    sizes = [
        (measurement["kernel"], measurement["processes"], *sorted(measurement["params"].items()))
        for measurement in profile["measurements"]
    ]
    assert len(set(sizes)) == len(sizes)


def test_times_are_ordered_and_above_zero(profile: dict[str, Any]) -> None:
    for measurement in profile["measurements"]:
        assert 0 <= measurement["low"] <= measurement["high"]
        assert measurement["seconds"] > 0, measurement
        if not measurement["kernel"].startswith("shared_"):
            assert measurement["low"] <= measurement["seconds"], measurement
        if measurement["kernel"].startswith(("p2p_", "all_")):
            assert measurement["seconds"] <= measurement["high"], "a median; a mean may lie above"


def test_kernels_run_at_once_in_as_many_processes_as_asked(profile: dict[str, Any]) -> None:
    shared = [measurement for measurement in profile["measurements"] if measurement["kernel"] == "shared_gemm"]
    assert [(entry["processes"], entry["repeats"]) for entry in shared] == [(1, 1), (2, 2)]


def test_without_network_no_transfer_is_measured(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    out = tmp_path / "profile.json"
    assert taken(MicrobenchRequest(TINY, "cpu", 1, (1,), False, "numba"), out=str(out), json=True) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed == json.loads(out.read_text(encoding="utf-8"))
    Draft202012Validator(SCHEMA).validate(printed)
    assert printed["options"]["aggregator"] == "numba"
    assert not NETWORK & {measurement["kernel"] for measurement in printed["measurements"]}


def test_measurements_are_never_written_over_unasked(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("runtime.profile.measured", lambda requested, show: [])
    monkeypatch.setattr("runtime.profile.table", lambda results, path: path)
    for place in ("profile.json", "profile-2.json", "profile-3.json"):
        assert main([], TINY) == 0
        assert capsys.readouterr().out == f"{place}\n"
    (tmp_path / "profile.json").write_text("mine")
    assert main(["--out", "profile.json"], TINY) == 2
    out, err = capsys.readouterr()
    assert (out, err) == (
        "",
        "runtime.profile: --out: profile.json: already exists; allowed: another file, or --overwrite to replace it\n",
    )
    assert (tmp_path / "profile.json").read_text() == "mine"
    (tmp_path / "empty.json").touch()
    for words in (["--overwrite"], ["--out", "empty.json"], ["--out", "/dev/null"]):
        assert main(words, TINY) == 0
    assert json.loads((tmp_path / "profile.json").read_text())["schema"] == "gcnsim.measurements/1"
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


@pytest.mark.parametrize("live", [True, False])
def test_a_terminal_shows_how_many_kernels_are_measured(
    live: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: live)
    measurements = [
        Measurement(kernel, {}, 1, workers, 1.0, 1.0, 1.0, 1) for kernel, workers in (("gemm", 1), ("spmm", 2))
    ]

    def stopped(microbench_request: MicrobenchRequest, show: Callable[[Measurement], None]) -> NoReturn:
        for measurement in measurements:
            show(measurement)
        raise ProcessError("stopped", 1)

    monkeypatch.setattr("runtime.profile.measured", stopped)
    assert main(["--out", str(tmp_path / "profile.json")]) == 1
    written, end, text = capsys.readouterr().err.partition("runtime.profile: ")
    assert end + text == "runtime.profile: stopped\n"
    lines = ["1 measurements, gemm, processes: 1 ...", "2 measurements, spmm, processes: 2 ..."]
    assert drawn(written) == lines if live else written == ""


@pytest.mark.parametrize("name", WRONG)
def test_a_mistake_is_one_line_and_code_2(
    name: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    arguments, words = WRONG[name]
    assert main(arguments.split(), TINY) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("runtime.profile: ")
    assert words in captured.err
    assert captured.err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_cuda_without_cuda_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("this machine has CUDA")
    assert main(["--device", "cuda", "--no-network", "--workers", "1", "--out", str(tmp_path / "p.json")], TINY) == 2
    assert "--device: cuda is not available here" in capsys.readouterr().err


def test_kernels_that_cannot_be_imported_are_refused_before_anything_is_measured(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "packages"
    broken.mkdir()
    (broken / "dgl.py").write_text("raise ImportError('libcudart is missing')", encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(broken))
    out = tmp_path / "profile.json"
    assert main(["--aggregator", "dgl", "--workers", "2", "--out", str(out)], FULL) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    (line,) = captured.err.splitlines()
    assert line.startswith("runtime.profile: ")
    assert "--aggregator: dgl cannot be imported (libcudart is missing); install it" in line
    assert not out.exists()


def test_a_member_that_fails_is_named() -> None:
    code = "import os, sys; sys.exit(3 if os.environ['RANK'] == '1' else os.read(int(os.environ['GCNSIM_WATCH']), 1))"
    with pytest.raises(ProcessError, match="worker 1: ended with exit code 3 and gave no reason") as caught:
        measured(MicrobenchRequest(TINY, workers=(2,)), command=[sys.executable, "-c", code])
    assert caught.value.code == 1


def test_a_killed_member_ends_the_measurement(tmp_path: Path) -> None:
    shell = Shell(tmp_path, command=MEASURE)
    until(lambda: len(shell.workers()) >= 2, "members run")
    others = shell.workers()
    os.kill(shell.worker(1), signal.SIGKILL)
    code, out, err = shell.end()
    assert (code, out) == (1, "")
    assert err.startswith("runtime.measure: worker 1 was killed by SIGKILL")
    assert all(gone(pid) for pid in others)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("signum", "expected"),
    [(signal.SIGINT, 130), pytest.param(signal.SIGTERM, 143, marks=pytest.mark.slow), (signal.SIGKILL, -9)],
)
def test_no_member_outlives_the_measurement(tmp_path: Path, signum: signal.Signals, expected: int) -> None:
    shell = Shell(tmp_path, command=MEASURE)
    until(lambda: len(shell.workers()) >= 2, "members run")
    members = shell.workers()
    shell.process.send_signal(signum)
    assert shell.end()[0] == expected
    until(lambda: all(gone(pid) for pid in members), "no member is left")


def test_help_has_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    assert "python -m runtime.profile --quick" in capsys.readouterr().out


def test_docs_name_every_kernel() -> None:
    text = (ROOT / "docs" / "calibration.md").read_text(encoding="utf-8")
    content = {
        name for row in re.findall(r"^\| (`.+?`) \|", text, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)
    }
    assert {name.removeprefix("nccl_") for name in KERNELS} <= content


def test_what_was_asked_reaches_the_members() -> None:
    microbench_request = MicrobenchRequest(FULL, "cuda", 3, (1, 5), False, "dgl")
    assert from_json(microbench_request.to_json()) == microbench_request
    assert microbench_request.members == 5
    assert MicrobenchRequest(workers=(1,)).members == 2
