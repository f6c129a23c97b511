"""Workers that should not train together, or cannot meet, or have lost who started them: each says so, and ends."""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from pathlib import Path
from unittest.mock import patch

import pytest

from gcnsim.core.errors import FileError, ScenarioError
from runtime.emulation.throughput import free_port
from runtime.launch import Place, connect
from runtime.record.folder_lock import lock_folder
from runtime.survey import read_rule
from tests.runtime.crew import Crew
from tests.runtime.session_jobs import told
from tests.runtime.shell import TRAIN, Shell

SURVEY = [*TRAIN[:2], "runtime.survey"]
RULES = Path(__file__).parents[1] / "survey"


def by_hand(rank: int, port: int, command: Sequence[str] = TRAIN, **more: str) -> list[str]:
    """The command of one of two workers that nobody launched."""
    named = {"RANK": rank, "WORLD_SIZE": 2, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, **more}
    return ["env", *(f"{name}={value}" for name, value in named.items()), *command]


def unlike(place: Place, words: Sequence[str], folder: str) -> tuple[str, str, str]:
    """What a worker says whose seed is 7 more than its rank."""
    return told(place, [*words, "--seed", str(7 + place.rank)], folder)


def test_unlike_seeds_are_told_before_the_first_iteration(crew: Crew, tmp_path: Path) -> None:
    words = ("--iterations", "3", "--out", "run", "--loss-log", "losses.csv")
    for rank, (out, _, why) in enumerate(crew.run(2, unlike, words, str(tmp_path))):
        assert out == ""
        text = f"--seed: worker 1 was given another value than worker 0 (worker {rank} has {7 + rank})"
        assert why == f"{text}; allowed: the same for all workers"
    assert os.listdir(tmp_path) == []


@pytest.mark.slow  # workers of a survey agree as those of a training do
def test_unlike_rules_of_a_survey_are_told_before_anything_is_measured(tmp_path: Path) -> None:
    port = free_port()
    hashes = [read_rule(RULES / name).sha256[:12] for name in ("tiny.yaml", "quick.yaml")]
    shells = [
        Shell(tmp_path, "--rule", str(RULES / name), "--out", "s", command=by_hand(rank, port, SURVEY))
        for rank, name in enumerate(("tiny.yaml", "quick.yaml"))
    ]
    for rank, shell in enumerate(shells):
        code, out, err = shell.end()
        text = f"--rule: worker 1 was given another value than worker 0 (worker {rank} has '{hashes[rank]}')"
        assert (code, out) == (2, "")
        assert err == f"runtime.train: worker {rank}: {text}; allowed: the same for all workers\n"
    assert os.listdir(tmp_path) == []


@pytest.mark.slow  # a survey holds its folder as a training does
def test_two_surveys_do_not_share_a_folder(tmp_path: Path) -> None:
    handle = lock_folder(tmp_path / "s")
    assert handle is not None
    code, out, err = Shell(tmp_path, "--rule", str(RULES / "tiny.yaml"), "--out", "s", command=SURVEY).end()
    os.close(handle)
    assert (code, out) == (2, "")
    assert f"s: is being written by process {os.getpid()}; allowed: another folder, or when it has ended" in err
    assert err.count("\n") == 1
    assert os.listdir(tmp_path / "s") == []


def test_two_runs_do_not_share_a_folder_and_the_second_is_told_who_holds_it(tmp_path: Path) -> None:
    handle = lock_folder(tmp_path / "run")
    assert handle is not None
    with pytest.raises(FileError, match=rf"run: is being written by process {os.getpid()}; allowed: another folder"):
        lock_folder(tmp_path / "run")
    code, _, err = Shell(tmp_path, "--workers", "1", "--iterations", "2", "--quiet", "--out", "run").end()
    assert code == 2
    assert f"run: is being written by process {os.getpid()}" in err
    assert err.count("\n") == 1
    os.close(handle)
    assert os.listdir(tmp_path / "run") == []
    again = lock_folder(tmp_path / "run")
    assert again is not None
    os.close(again)


def unmet(place: Place, rank: int, port: int) -> str:
    """Why one of two workers that nobody launched does not meet the other."""
    met_at = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    with patch.dict(os.environ, met_at), pytest.raises(ScenarioError) as caught:
        connect(Place(rank, 2, rank, 2, launched=False), 2.0, "gloo")
    return str(caught.value)


def test_a_port_in_use_and_a_peer_that_is_not_there_are_one_line(crew: Crew) -> None:
    with socket.socket(socket.AF_INET6) as taken:
        taken.bind(("::", 0))
        taken.listen()
        port = int(taken.getsockname()[1])
        (why,) = crew.run(1, unmet, 0, port)
    assert why == f"MASTER_PORT: port {port} of 127.0.0.1 is in use by another process; allowed: one that is free"
    port = free_port()
    (why,) = crew.run(1, unmet, 1, port)
    assert why == f"MASTER_ADDR: no process could be reached at 127.0.0.1, port {port}, within 2 s"
