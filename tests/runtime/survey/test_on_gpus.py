"""Surveys of GPUs that are waits: one and two of them, two servers, a run that fails, and one that is interrupted."""

from __future__ import annotations

import json
import shlex
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from runtime.survey import read_rule
from tests.runtime.shell import TORCHRUN, Shell, until

RULE = Path(__file__).with_name("gpus.yaml")
NAMES = sorted(run.name for run in read_rule(RULE).planned())
GCNSIM = [sys.executable, "-m", "gcnsim"]
WAITING = "tests.runtime.survey.waiting_gpus"


def surveyed(folder: Path, gpus: int, *words: str, **env: str) -> Shell:
    """A survey of so many GPUs."""
    named = [f"{name}={value}" for name, value in {"SURVEYED_GPUS": gpus, **env}.items()]
    command = ["env", *named, sys.executable, "-m", WAITING]
    return Shell(folder, "--rule", str(RULE), "--out", "s", *words, command=command)


def state(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "s" / "survey.json").read_text(encoding="utf-8"))
    return found


def judged(folder: Path) -> dict[str, Any]:
    """What the commands of the README find in what is sent back, the two of them run where only that is."""
    text = (folder / "s" / "README.md").read_text(encoding="utf-8")
    commands, pack = (word.split("```")[0].splitlines() for word in text.split("```sh\n")[1:])
    subprocess.run(shlex.split(pack[0]), cwd=folder, check=True)
    home = folder / "elsewhere"
    home.mkdir()
    subprocess.run(["tar", "-xzf", str(folder / "s.tar.gz")], cwd=home, check=True)
    assert not (home / "s" / "graphs").exists()
    check, calibrate, validate = (shlex.split(line) for line in commands)
    subprocess.run(check, cwd=home / "s", check=True)
    subprocess.run([*GCNSIM, *calibrate[1:]], cwd=home / "s", check=True, capture_output=True)
    runs = sorted(str(path.relative_to(home / "s")) for path in (home / "s").glob(validate[2]))
    words = [*GCNSIM, "validate", *runs, *validate[3:], "--json"]
    done = subprocess.run(words, cwd=home / "s", check=True, capture_output=True, text=True)
    assert (home / "s" / "report" / "validation.md").is_file()
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_one_gpu_is_surveyed_by_itself(tmp_path: Path) -> None:
    code, _, err = surveyed(tmp_path, 1).end()
    assert code == 0, err
    found = state(tmp_path)
    assert (found["device"], found["workers"], sorted(found["runs"])) == ("cuda", 1, NAMES)
    assert found["servers"][0]["gpus"] == ["Tesla T4"]
    assert found["emulated"]["accelerator"] == "t4"
    text = (tmp_path / "s" / "README.md").read_text(encoding="utf-8")
    assert "1 x 1 workers on cuda, emulated on one machine; waits replace t4, nothing computed" in text


@pytest.mark.slow
def test_a_survey_of_one_gpu_is_calibrated_and_judged(tmp_path: Path) -> None:
    assert surveyed(tmp_path, 1).end()[0] == 0
    found = judged(tmp_path)
    assert found["runs"] == 4
    # Benchmarks and waits are by the same laws, and there is nobody to wait for.
    assert found["mape"] < 0.02


@pytest.mark.slow
def test_all_gpus_of_a_server_are_surveyed_unless_fewer_are_asked_for(tmp_path: Path) -> None:
    code, _, err = surveyed(tmp_path, 2).end()
    assert code == 0, err
    assert (state(tmp_path)["workers"], sorted(state(tmp_path)["runs"])) == (2, NAMES)
    assert judged(tmp_path)["runs"] == 4
    code, out, err = surveyed(tmp_path, 2, "--workers", "1", "--dry-run", "--json").end()
    assert (code, out) == (2, "")
    assert err.endswith(": --out: s: workers was 2, is 1; allowed: the same, or a new folder\n")


@pytest.mark.slow
def test_a_run_that_fails_is_named_and_the_next_start_leaves_it_out(tmp_path: Path) -> None:
    bad = "held-out-0-m1-r0"
    code, _, err = surveyed(tmp_path, 2, SURVEYED_FAILURE=bad).end()
    assert code == 1
    assert f"gpus.yaml: {bad}: OutOfMemoryError: CUDA out of memory" in err
    half = state(tmp_path)
    assert (half["finished"], bad in half["runs"]) == (False, False)
    foretold = json.loads(surveyed(tmp_path, 2, "--dry-run", "--json").end()[1])
    assert [run["name"] for run in foretold["runs"] if run["state"] == "failed"] == [bad]
    code, _, err = surveyed(tmp_path, 2).end()
    assert code == 0, err
    whole = state(tmp_path)
    assert sorted(whole["runs"]) == [name for name in NAMES if name != bad]
    assert half["runs"].items() <= whole["runs"].items(), "what was trained is not trained again"
    assert (whole["failed"], whole["dropped"]) == ({bad: "OutOfMemoryError"}, [bad])
    left = (tmp_path / "s" / "README.md").read_text(encoding="utf-8").split("## Left out")[1]
    assert left.strip() == f"Failed: {bad} (OutOfMemoryError)."


@pytest.mark.slow
def test_an_interrupted_survey_keeps_whole_runs_and_goes_on(tmp_path: Path) -> None:
    shell = surveyed(tmp_path, 1, "--minutes", "20")
    second = tmp_path / "s" / "unfinished" / "calibration-1"
    until(second.exists, "the second run")
    shell.process.send_signal(signal.SIGINT)
    code, _, err = shell.end()
    assert code == 128 + signal.SIGINT
    assert "stopped by SIGINT" in err
    done = state(tmp_path)["runs"]
    assert "calibration-0" in done
    assert len(done) < len(NAMES)
    assert sorted(path.name for path in (tmp_path / "s" / "runs").iterdir()) == sorted(done)
    code, _, err = surveyed(tmp_path, 1).end()
    assert code == 0, err
    whole = state(tmp_path)
    assert sorted(whole["runs"]) == NAMES
    assert done.items() <= whole["runs"].items()
    assert (whole["finished"], whole["failed"]) == (True, {})


@pytest.mark.slow
def test_two_servers_with_a_gpu_each(tmp_path: Path) -> None:
    """Two launchers on one machine, over its loopback."""
    static = ["--nnodes=2", "--nproc-per-node=1", "--rdzv-backend=static", "--master-addr=127.0.0.1"]
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    launch = ["env", "SURVEYED_GPUS=1", *TORCHRUN[:3], *static, f"--master-port={port}"]
    words = ("--rule", str(RULE), "--out", "s")
    shells = [Shell(tmp_path, *words, command=[*launch, f"--node-rank={node}", "-m", WAITING]) for node in range(2)]
    for shell in shells:
        code, _, err = shell.end()
        assert code == 0, err
    found = state(tmp_path)
    assert (len(found["servers"]), found["workers"], sorted(found["runs"])) == (2, 2, NAMES)
    profile = json.loads((tmp_path / "s" / "profile.json").read_text(encoding="utf-8"))
    assert any(measurement["kernel"] == "all_reduce" for measurement in profile["measurements"]), (
        "what the servers exchange"
    )
    assert judged(tmp_path)["runs"] == 4
