"""Processes of a run: the group, who watches, exits and verdicts."""

from __future__ import annotations

import os
import platform
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from gcnsim.core.resources import ALLOCATION
from runtime.launch.parent import ProcessGroup, StopRequests
from runtime.launch.verdict import Exit, Failure, first_cause
from runtime.launch.worker import disable_malloc_trim

Start = Callable[..., Any]

ALONE = {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "localhost", "MASTER_PORT": "29500"}


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
def test_a_request_is_answered_by_leaving(start: Start, signum: signal.Signals) -> None:
    run = start("wait", **ALONE)
    run.pids("pid-1")
    for _ in range(2):  # from the scheduler and from torchrun
        run.process.send_signal(signum)
    assert run.end() == (0, "", "")
    assert run.noted("stopped-1") == "True"


def test_a_worker_that_does_not_leave_ends_itself(start: Start) -> None:
    run = start("stubborn", **ALONE)
    run.pids("pid-1")
    begin = time.monotonic()
    run.process.send_signal(signal.SIGTERM)
    assert run.end()[0] == 143
    assert 0.9 < time.monotonic() - begin < 5.0


def test_a_workers_error_is_its_own_to_say(start: Start) -> None:
    assert start("refuse", **ALONE).end() == (2, "", "runtime.train: worker 1: --lr: 'x' is not a number\n")


def test_half_a_place_is_a_users_error(start: Start) -> None:
    code, _, err = start("fine", RANK="1").end()
    assert code == 2
    assert err == "runtime.train: worker 1: RANK: set to '1', but WORLD_SIZE is not set; set both, as torchrun does\n"


pytest.importorskip("torch", reason="torch is not installed")


@pytest.mark.parametrize(
    ("fate", "message"),
    [
        ("SIGKILL", "worker 1 was killed by SIGKILL"),
        pytest.param("SIGSTOP", "worker 1: hung", marks=pytest.mark.slow),
    ],
)
def test_a_peer_lost_in_a_collective_is_named(start: Start, fate: str, message: str) -> None:
    begin = time.monotonic()
    code, _, err = start("bereft", FATE=fate).end(60.0)
    assert code == 1
    assert err.splitlines()[-1].startswith(f"runtime.train: {message}"), err
    assert time.monotonic() - begin < 25.0


def test_a_request_reaches_a_worker_that_is_deep_inside_torch(start: Start) -> None:
    run = start("lonely", LEAVE_S="25")
    run.pids()
    run.noted("waits")
    time.sleep(0.2)  # into the wait itself
    begin = time.monotonic()
    run.process.send_signal(signal.SIGTERM)
    assert run.end() == (143, "", "runtime.train: stopped by SIGTERM\n")
    assert time.monotonic() - begin < 10.0, "no worker had to be killed"


def test_torchrun_starts_a_failed_run_again(start: Start) -> None:
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    run = start("again", command=[*torchrun, "--max-restarts=1"])
    code, _, err = run.end(60.0)
    assert code == 0, err
    assert run.noted("count-0") == run.noted("count-1") == "1"
    assert any(f"runtime.train: worker {rank}: --lr: worker {rank} does not like it" in err for rank in (0, 1))


def test_neither_the_parent_nor_its_words_need_torch() -> None:
    code = "import sys, runtime.launch; sys.exit('torch' in sys.modules)"
    root = Path(__file__).resolve().parents[3]
    assert subprocess.run([sys.executable, "-c", code], cwd=root, check=False).returncode == 0


def test_an_exit_is_never_dated_after_its_true_end() -> None:
    """The parent looks every 50 ms: a peer that fails because of it, and says when, must come later."""
    group = ProcessGroup(StopRequests(), 1.0, 1.0)
    process = subprocess.Popen([sys.executable, "-c", "raise SystemExit(3)"], process_group=0)
    process.wait()
    group.processes.append(process)
    seen = time.time()
    assert group._alive() == []
    assert group._alive() == []
    (found,) = group.exits
    assert (found.rank, found.code, found.stop_signal) == (0, 3, 0)
    assert seen - 1.0 < found.at < seen


def test_what_the_parent_told_a_worker_is_known_of_its_exit() -> None:
    group = ProcessGroup(StopRequests(), 1.0, 1.0)
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], process_group=0)
    group.processes.append(process)
    assert group._alive() == [0]
    group._signal(signal.SIGKILL)
    process.wait()
    assert group._alive() == []
    assert group.exits[0].stuck


def failure(rank: int, reason: str, at: float, *, code: int = 1, consequence: bool = False) -> Failure:
    return Failure(rank, reason, code, consequence, at)


def line(exits: list[Exit], failures: list[Failure]) -> str:
    """What is said, the same for every order of the exits."""
    causes = {first_cause(list(order), failures) for order in permutations(exits)}
    assert len(causes) == 1
    cause = causes.pop()
    return "" if cause is None else cause.line


def test_all_well_or_as_told() -> None:
    assert line([Exit(0, 0, 1.0, 0), Exit(1, 143, 1.0, 15), Exit(2, -15, 1.0, 15)], []) == ""


def test_the_earliest_error_is_the_cause() -> None:
    exits = [Exit(0, 1, 3.0, 0), Exit(1, 2, 3.0, 15)]
    failures = [failure(0, "later", 2.0), failure(1, "first", 1.0, code=2)]
    assert line(exits, failures) == "worker 1: first"
    cause = first_cause(exits, failures)
    assert cause is not None
    assert cause.code == 2


def test_death_by_a_signal_comes_before_a_peers_complaint() -> None:
    exits = [Exit(0, 1, 3.0, 0), Exit(1, -signal.SIGSEGV, 4.0, 0)]
    assert line(exits, [failure(0, "Connection closed", 2.0, consequence=True)]) == "worker 1 was killed by SIGSEGV"


def test_an_abort_comes_after_an_error_and_before_a_complaint() -> None:
    abort = Exit(1, -signal.SIGABRT, 1.0, 0)
    assert line([Exit(0, 1, 3.0, 0), abort], [failure(0, "wrong", 2.0)]) == "worker 0: wrong"
    complaint = [failure(0, "Connection closed", 0.5, consequence=True)]
    assert line([Exit(0, 1, 3.0, 0), abort], complaint) == "worker 1 was killed by SIGABRT"


def test_a_worker_we_had_to_kill_is_the_cause_of_silence_only() -> None:
    stuck = Exit(1, -signal.SIGKILL, 5.0, signal.SIGKILL)
    assert line([Exit(0, 1, 3.0, 0), stuck], [failure(0, "wrong", 2.0)]) == "worker 0: wrong"
    complaint = [failure(0, "Timed out", 2.0, consequence=True)]
    assert line([Exit(0, 1, 3.0, 0), stuck], complaint).startswith("worker 1: hung: ")


def test_signals_from_outside_by_name_or_number() -> None:
    assert line([Exit(0, 143, 1.0, 0)], []) == "worker 0 was killed by SIGTERM"
    assert line([Exit(0, -40, 1.0, 0)], []) == "worker 0 was killed by signal 40"


_FAULTS = """
import resource, sys
import numpy as np
from runtime.launch import disable_malloc_trim
kept = sys.argv[1] == "kept" and disable_malloc_trim()
assert kept == (sys.argv[1] == "kept")
def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
def write(size):
    np.empty(size, np.uint8).fill(1)
write(48 << 20)
before = faults()
for _ in range(10):
    write(48 << 20)
print(faults() - before)
"""
PAGES = 10 * (48 << 20) // 4096


def _faults(how: str) -> int:
    # Allocation as the system has it, and no huge pages, of which one fault brings 512 pages.
    plain = {name: value for name, value in os.environ.items() if name not in ALLOCATION}
    words = [sys.executable, "-c", _FAULTS, how]
    environment = plain | {"NUMPY_MADVISE_HUGEPAGE": "0"}
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
    return int(done.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="without glibc nothing is changed")
def test_memory_that_is_freed_is_written_again_without_page_faults() -> None:
    assert _faults("kept") < PAGES / 100


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="without glibc nothing is changed")
def test_without_it_every_page_is_new_each_time() -> None:
    path = Path("/sys/kernel/mm/transparent_hugepage/enabled")
    if path.is_file() and "[always]" in path.read_text(encoding="ascii"):
        pytest.skip("the system gives huge pages without being asked")
    assert _faults("usual") > PAGES / 2


@pytest.mark.parametrize("name", ALLOCATION)
def test_what_the_user_says_of_allocation_stands(name: str) -> None:
    assert not disable_malloc_trim({name: "1"})
