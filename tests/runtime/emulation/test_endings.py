"""Emulated hosts end with their parent; sessions and privileges."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gcnsim.core.errors import ScenarioError
from runtime.emulation import network
from runtime.emulation.network import limiter_of
from runtime.launch.watch import AGENT
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


@pytest.mark.slow  # some 20 s on a slow machine: the faults of docs/faults.md kill workers, too
@needs_namespaces
def test_a_killed_worker_ends_all_and_is_named(start: Start) -> None:
    shell, pids = start("--hosts", "2")
    assert len(pids) == 2
    os.kill(shell.worker(1), signal.SIGKILL)
    code, _, err = shell.end()
    assert code == 1
    words = "worker 1 was killed by SIGKILL (by hand, or by the system because memory ran out)"
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
def test_without_namespaces_the_workers_end_with_it_too(start: Start) -> None:
    shell, pids = start("--hosts", "2", "--limiter", "exchange")
    assert len(pids) == 2
    shell.process.kill()
    shell.end()
    until(lambda: all(gone(pid) for pid in pids), "the workers end with their parent", 5.0)


WORKER = "from runtime.launch.watch import end_with_agent; end_with_agent(); print('on', flush=True)"


@pytest.mark.parametrize(
    ("agent", "code", "message"),
    [
        pytest.param(None, 0, "on\n", id="none"),
        pytest.param("", 0, "on\n", id="empty"),
        pytest.param(str(os.getpid()), 0, "on\n", id="alive"),
        pytest.param("1", 128 + signal.SIGKILL, "", id="ended before"),
    ],
)
def test_a_worker_begins_only_under_its_agent(agent: str | None, code: int, message: str) -> None:
    content = {name: value for name, value in os.environ.items() if name != AGENT} | ({AGENT: agent} if agent else {})
    done = subprocess.run(
        [sys.executable, "-c", WORKER], cwd=ROOT, env=content, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (code, message)


def test_a_worker_ends_with_its_agent() -> None:
    started = (
        "import os, subprocess, sys, time\n"
        f"os.environ['{AGENT}'] = str(os.getpid())\n"
        f"worker = subprocess.Popen([sys.executable, '-c', {WORKER + '; import time; time.sleep(60)'!r}],"
        " stdout=subprocess.PIPE)\n"
        "worker.stdout.readline()\n"
        "print(worker.pid, flush=True)\n"
        "time.sleep(60)\n"
    )
    agent = subprocess.Popen([sys.executable, "-c", started], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert agent.stdout is not None
    worker = int(agent.stdout.readline())
    time.sleep(0.05)
    assert not gone(worker)
    agent.kill()
    agent.communicate()
    until(lambda: gone(worker), "the worker ends", 10.0)


REASON = "no luck"


@pytest.mark.parametrize(
    ("root", "own", "name", "found"),
    [
        (None, None, "auto", "netns"),
        (REASON, None, "auto", "userns"),
        (REASON, REASON, "auto", "exchange"),
        (None, REASON, "netns", "netns"),
        (None, None, "userns", "userns"),
        (None, None, "exchange", "exchange"),
    ],
)
def test_the_first_that_works(
    root: str | None, own: str | None, name: str, found: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(network, "refused", lambda: root)
    monkeypatch.setattr(network, "_refused_own", lambda: own)
    assert limiter_of(name) == found


@pytest.mark.parametrize("name", ["netns", "userns"])
def test_one_that_was_asked_for_and_does_not_work_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network, "refused", lambda: REASON)
    monkeypatch.setattr(network, "_refused_own", lambda: REASON)
    with pytest.raises(ScenarioError, match=f"--limiter: {name} is not possible here: {REASON}; allowed: auto"):
        limiter_of(name)


def test_without_any_tool_the_exchange_limits(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert limiter_of("auto") == "exchange"


SAYS = """
import os, pathlib, sys
pathlib.Path(sys.argv[1], os.environ["RANK"]).write_text(f"{os.getsid(0)} {os.getpgrp()} {os.getpid()}")
"""


def test_torchrun_starts_workers_in_its_own_session_each_in_a_group(tmp_path: Path) -> None:
    script = tmp_path / "worker.py"
    script.write_text(SAYS)
    words = ["--nnodes=1", "--nproc-per-node=2", "--standalone", str(script), str(tmp_path)]
    host = [sys.executable, "-m", "runtime.emulation.host", str(os.getpid()), str(tmp_path / "report.json"), *words]
    subprocess.run(host, check=True, timeout=60, env=os.environ | {"OMP_NUM_THREADS": "1"})
    for rank in range(2):
        session, group, worker = map(int, (tmp_path / str(rank)).read_text().split())
        assert session == os.getsid(0)
        # Its group is how torchrun ends it, and what it started.
        assert group == worker
