"""However an emulation ends, it says why in one line and leaves neither a process nor a namespace."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.runtime.emulation.places import EMULATE, emulated, namespaces, needs_namespaces
from tests.runtime.shell import ROOT, Shell, gone, lines, until

WORDS = ("--bandwidth", "500Mbps", "--", "--iterations", "1000000", "--hidden", "8", "--quiet", "--loss-log", "log.csv")

Start = Callable[..., tuple[Shell, list[int]]]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """An emulation that trains, and its workers' process numbers; nothing is left of it at the end."""
    shells: list[Shell] = []

    def begin(*words: str) -> tuple[Shell, list[int]]:
        shell = emulated(tmp_path, *words, *WORDS)
        shells.append(shell)
        until(lambda: lines(tmp_path / "log.csv") > 3 or shell.process.poll() is not None, "training")
        assert shell.process.poll() is None
        return shell, shell.workers()

    yield begin
    for shell in shells:
        shell.process.kill()
        shell.process.communicate()
    subprocess.run([*EMULATE, "clean"], cwd=ROOT, check=True, capture_output=True)


def nothing_left(shell: Shell, pids: list[int]) -> None:
    until(lambda: all(gone(pid) for pid in pids), "the workers end", 5.0)
    assert namespaces(shell.process.pid) == []


@needs_namespaces
@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_killed_worker_ends_all_and_is_named(workers: int, start: Start) -> None:
    shell, pids = start("--hosts", "2", "--workers-per-host", str(workers))
    assert len(pids) == 2 * workers
    os.kill(shell.worker(workers), signal.SIGKILL)
    code, _, err = shell.end()
    assert code == 1
    words = f"worker {workers} was killed by SIGKILL (by hand, or by the system because memory ran out)"
    assert err.splitlines()[1:] == [f"runtime.emulate: {words}"]
    nothing_left(shell, pids)


@needs_namespaces
@pytest.mark.parametrize("signum", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
def test_a_request_to_stop_is_answered(signum: signal.Signals, start: Start, tmp_path: Path) -> None:
    shell, pids = start("--hosts", "2")
    shell.process.send_signal(signum)
    code, out, err = shell.end()
    assert code == 128 + signum
    assert err.splitlines()[1:] == [f"runtime.emulate: stopped by {signum.name}"]
    assert "iterations on 2 workers" in out, "the iterations done are kept"
    assert (tmp_path / "run" / "checkpoints").is_dir()
    nothing_left(shell, pids)


@pytest.mark.slow
@needs_namespaces
def test_a_killed_torchrun_ends_all_and_its_host_is_named(start: Start) -> None:
    shell, pids = start("--hosts", "2")
    status = Path(f"/proc/{shell.worker(1)}/stat").read_text(encoding="utf-8")
    os.kill(int(status.rpartition(")")[2].split()[1]), signal.SIGKILL)
    code, _, err = shell.end()
    assert code == 1
    assert err.splitlines()[1:] == ["runtime.emulate: host 1: torchrun was killed by SIGKILL"]
    nothing_left(shell, pids)


@pytest.mark.slow
@needs_namespaces
def test_what_a_killed_emulation_leaves_is_cleaned(start: Start) -> None:
    shell, pids = start("--hosts", "2")
    shell.process.kill()
    shell.end()
    until(lambda: all(gone(pid) for pid in pids), "the workers end with their parent", 5.0)
    pid = shell.process.pid
    assert namespaces(pid) == [f"gcnsim-{pid}-h0", f"gcnsim-{pid}-h1", f"gcnsim-{pid}-sw"]
    done = subprocess.run([*EMULATE, "clean"], cwd=ROOT, check=True, capture_output=True, text=True)
    assert {f"removed gcnsim-{pid}-h0", f"removed gcnsim-{pid}-sw"} <= set(done.stdout.splitlines())
    assert namespaces(pid) == []


@pytest.mark.slow
def test_without_namespaces_the_workers_end_with_it_too(start: Start) -> None:
    shell, pids = start("--hosts", "2", "--limiter", "exchange")
    assert len(pids) == 2
    shell.process.kill()
    shell.end()
    until(lambda: all(gone(pid) for pid in pids), "the workers end with their parent", 5.0)
