"""`python -m runtime.survey` from a user's shell: one folder, to calibrate and to validate with."""

from __future__ import annotations

import json
import shlex
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

import runtime.survey.__main__ as survey_cli
from runtime.record import hardware, versions
from runtime.survey import SurveyRequest, read_rule
from runtime.survey.__main__ import main
from runtime.survey.folder import SurveyFolder
from runtime.survey.preview import preview
from tests.runtime.shell import TORCHRUN, Shell

SURVEY = [sys.executable, "-m", "runtime.survey"]
RULES = Path(__file__).parents[1] / "survey"
TINY, QUICK = RULES / "tiny.yaml", RULES / "quick.yaml"
NAMES = ["calibration-0", "held-out-0-m0-r0", "held-out-0-m0-r1"]


def profiled(path: Path) -> SurveyFolder:
    """A survey that has only its profile yet, on this machine."""
    rule = read_rule(TINY)
    surveyed = {
        "rule": rule.sha256,
        "device": "cpu",
        "workers": 2,
        "servers": [hardware()],
        "versions": versions(),
        "bandwidth": None,
        "emulated": None,
    }
    folder = SurveyFolder(SurveyRequest(path, rule), surveyed)
    (path / "profile.json").write_text("{}", encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("words", "gpus", "wanted"),
    [
        ("", 0, ("cpu", 2, "rule.yaml")),
        ("", 1, ("cuda", 1, "one_worker.yaml")),
        ("", 8, ("cuda", 8, "rule.yaml")),
        ("--workers 2", 8, ("cuda", 2, "rule.yaml")),
        ("--device cuda", 4, ("cuda", 4, "rule.yaml")),
        ("--device cpu", 8, ("cpu", 2, "rule.yaml")),
        ("--device cpu --workers 1", 8, ("cpu", 1, "one_worker.yaml")),
    ],
)
def test_what_a_survey_does_unasked(
    words: str, gpus: int, wanted: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: gpus > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda index: "Tesla T4")
    monkeypatch.setattr(survey_cli, "launch", None)
    assert main(["--dry-run", "--json", *words.split()]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["device"], found["workers"], found["rule"]) == wanted
    assert (found["out"], found["minutes"]) == ("survey", 30.0)


def test_a_dry_run_starts_and_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(survey_cli, "launch", None)
    monkeypatch.chdir(tmp_path)
    assert main(["--rule", str(TINY), "--dry-run", "--device", "cpu"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("Survey into survey (--dry-run: nothing is started, nothing is written)\n")
    assert err == ""
    assert list(tmp_path.iterdir()) == []
    assert main(["--dry-run", "--minutes", "0"]) == 2
    assert main(["--dry-run", "--device", "cpu", "--out", str(TINY)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 2


@pytest.mark.parametrize("rank", [0, 1])
def test_of_workers_that_torchrun_started_the_first_one_says_what_would_be_done(
    rank: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    place = {"RANK": rank, "WORLD_SIZE": 6, "LOCAL_RANK": rank, "LOCAL_WORLD_SIZE": 3, "MASTER_PORT": 1}
    for name, value in (place | {"MASTER_ADDR": "127.0.0.1"}).items():
        monkeypatch.setenv(name, str(value))
    assert main(["--dry-run", "--json", "--device", "cpu"]) == 0
    out, _ = capsys.readouterr()
    if rank:
        assert out == ""
    else:
        assert (json.loads(out)["servers"], json.loads(out)["workers"]) == (2, 6)


@pytest.mark.slow  # some 20 s on a slow machine: it trains every run of a survey
def test_a_survey_goes_on_with_the_runs_that_are_left(tmp_path: Path) -> None:
    profiled(tmp_path / "s")
    half = tmp_path / "s" / "unfinished" / "calibration-0"
    half.mkdir(parents=True)
    (half / "run.json").write_text("{}", encoding="utf-8")
    code, out, err = Shell(tmp_path, "--rule", str(TINY), "--out", "s", "--json", command=SURVEY).end()
    assert code == 0, err
    *runs, final = [json.loads(line) for line in out.splitlines()]
    assert [(Path(run["out"]).name, run["workers"], run["iterations"]) for run in runs] == [(n, 2, 8) for n in NAMES]
    assert (final["out"], final["runs"], final["dropped"]) == ("s", 3, [])
    assert "micro-benchmarks" not in err
    assert (tmp_path / "s" / "profile.json").read_text(encoding="utf-8") == "{}"
    assert sorted(path.name for path in (tmp_path / "s" / "runs").iterdir()) == NAMES
    assert not (tmp_path / "s" / "unfinished").exists()
    planned = preview(SurveyRequest(tmp_path / "s", read_rule(TINY)), None)
    assert {run["state"] for run in planned["runs"]} == {"done"}
    held = sum(path.stat().st_size for path in (tmp_path / "s" / "runs").rglob("*") if path.is_file())
    assert sum(run["bytes"] for run in planned["runs"]) == pytest.approx(held, rel=0.5), "about what was foretold"
    for name in NAMES:
        record = json.loads((tmp_path / "s" / "runs" / name / "run.json").read_text(encoding="utf-8"))
        assert (record["finished"], record["emulation"]) == (True, None)
        assert str(tmp_path) not in json.dumps(record), "no place of this machine is handed back"
        assert (tmp_path / "s" / "runs" / name / "access.trace").is_file()


@pytest.mark.slow
def test_a_survey_of_two_servers_records_their_network(tmp_path: Path) -> None:
    """Two launchers on one machine, over its loopback."""
    words = ["--rule", str(TINY), "--out", "s", "--bandwidth", "10Gbps"]
    static = ["--nnodes=2", "--nproc-per-node=1", "--rdzv-backend=static", "--master-addr=127.0.0.1"]
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    launch = [*TORCHRUN[:3], *static, f"--master-port={port}"]
    shells = [
        Shell(tmp_path, *words, command=[*launch, f"--node-rank={node}", "-m", "runtime.survey"]) for node in range(2)
    ]
    for shell in shells:
        code, _, err = shell.end()
        assert code == 0, err
    state = json.loads((tmp_path / "s" / "survey.json").read_text(encoding="utf-8"))
    assert len(state["servers"]) == 2
    assert (state["cluster"]["hosts"], state["cluster"]["workers_per_host"]) == (2, 1)
    assert state["cluster"]["bandwidth"] == 1.25e9
    assert 1e6 < state["cluster"]["measured"] < 1e11
    for name in NAMES:
        beside = json.loads((tmp_path / "s" / "runs" / name / "cluster.json").read_text(encoding="utf-8"))
        assert beside["measured"] == state["cluster"]["measured"]
    profile = json.loads((tmp_path / "s" / "profile.json").read_text(encoding="utf-8"))
    transfers = [
        measurement["params"]["bytes"]
        for measurement in profile["measurements"]
        if measurement["kernel"] == "p2p_oneway"
    ]
    assert transfers == [4, 1024], "those between the servers, none within the first one"


@pytest.mark.slow
def test_what_a_survey_gives_back_is_calibrated_and_validated_by_the_commands_it_says(tmp_path: Path) -> None:
    code, _, err = Shell(tmp_path, "--rule", str(QUICK), "--out", "s", command=SURVEY).end()
    assert code == 0, err
    moved = tmp_path / "s"
    text = (moved / "README.md").read_text(encoding="utf-8")
    lines = text.split("```sh\n")[1].split("```")[0].splitlines()
    check, calibrate, validate = (shlex.split(lines[place]) for place in (0, 2, 3))
    assert subprocess.run(check, cwd=moved, check=False).returncode == 0
    assert lines[1] == "(cd .. && python -m runtime.measure --runs s/runs --out s/measured)"
    asked = ["-m", "runtime.measure", "--runs", "s/runs", "--out", "s/measured", "--seconds", "8"]
    subprocess.run([sys.executable, *asked], cwd=tmp_path, check=True, capture_output=True)
    moved = (tmp_path / "s").rename(tmp_path / "handed-back")
    runs = sorted(str(path.relative_to(moved)) for path in moved.glob(validate[2]))
    assert len(runs) == 4
    gcnsim = [sys.executable, "-m", "gcnsim"]
    done = subprocess.run([*gcnsim, *calibrate[1:]], cwd=moved, check=True, capture_output=True, text=True)
    assert "iterations of the runs" in done.stdout
    words = [*gcnsim, *validate[1:2], *runs, *validate[3:], "--json"]
    found = json.loads(subprocess.run(words, cwd=moved, check=True, capture_output=True, text=True).stdout)
    assert (found["runs"], found["configurations"]) == (4, 2)
    assert found["mape"] < 1.0
    assert (moved / "report" / "validation.md").is_file()


WRONG = {
    "option": ("--ot s", "No such option"),
    "minutes": ("--minutes -3", "--minutes: -3 is not allowed"),
    "bandwidth": ("--bandwidth 10", "--bandwidth: '10' has no unit"),
    "rule": ("--rule missing.yaml", "missing.yaml: cannot be read: No such file"),
    "folder": ("--out .", "--out: .: holds files but no survey; allowed: a new or empty folder, or that of one"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_users_mistake_is_one_line(
    case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "something").write_text("", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    words, expected = WRONG[case]
    assert main(words.split()) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(f"runtime.survey: {expected}")
    assert captured.err.count("\n") == 1


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_survey_of_gpus_that_are_not_there_leaves_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--device", "cuda", "--out", str(tmp_path / "s")]) == 2
    text = "runtime.survey: --device: cuda is not available here (no GPU, or torch without CUDA); allowed: cpu\n"
    assert capsys.readouterr().err == text
    assert not (tmp_path / "s").exists()


def test_a_run_that_training_would_refuse_is_refused_before_anything_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rule = tmp_path / "rule.yaml"
    rule.write_text(TINY.read_text(encoding="utf-8").replace("--tau, 1", "--rate, 1"), encoding="utf-8")
    assert main(["--rule", str(rule), "--out", str(tmp_path / "s")]) == 2
    err = capsys.readouterr().err
    assert err.startswith("runtime.survey: rule.yaml: held-out-0-m0-r0: --rate: psc-gcn has no rate")
    assert not (tmp_path / "s").exists()
