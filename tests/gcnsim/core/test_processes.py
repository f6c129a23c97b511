"""Forked work keeps order and raises what its processes raise."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from gcnsim.core.errors import KilledError, ScenarioError
from gcnsim.core.processes import cores, parallel_map, parallel_map_counted


def square(value: int) -> int:
    return value * value


def refuse(value: int) -> int:
    raise ScenarioError(f"value: {value} is not allowed")


@pytest.mark.parametrize("processes", [1, 2, 3])
def test_results_keep_the_order_of_their_items(processes: int) -> None:
    assert parallel_map(square, list(range(7)), processes) == [0, 1, 4, 9, 16, 25, 36]


@pytest.mark.parametrize("processes", [1, 2])
def test_an_error_is_raised_in_the_parent(processes: int) -> None:
    with pytest.raises(ScenarioError, match="is not allowed"):
        parallel_map(refuse, [1, 2], processes)
    assert parallel_map(square, [3, 4], processes) == [9, 16], "and later work runs again"


def counting(value: int, done: Callable[[int], object]) -> int:
    done(value)
    done(1)
    return -value


@pytest.mark.parametrize("threads", [False, True])
@pytest.mark.parametrize("processes", [1, 2, 3])
def test_what_every_process_has_done_is_heard_here(processes: int, threads: bool) -> None:
    heard: list[int] = []
    found = parallel_map_counted(counting, list(range(7)), processes, heard.append, threads=threads)
    assert found == [0, -1, -2, -3, -4, -5, -6]
    assert sum(heard) == sum(range(7)) + 7
    assert min(heard) >= 0


def test_an_error_of_a_thread_is_raised_and_what_waits_is_not_begun() -> None:
    begun: list[int] = []

    def refused(value: int, _: Callable[[int], object]) -> int:
        begun.append(value)
        time.sleep(0.01)
        return refuse(value)

    with pytest.raises(ScenarioError, match="is not allowed"):
        parallel_map_counted(refused, list(range(100)), 2, lambda _: None, threads=True)
    assert len(begun) < 100


def test_there_is_at_least_one_core() -> None:
    assert cores() >= 1


def test_a_handler_of_the_parent_does_not_keep_its_processes_from_ending() -> None:
    """A pool that is done ends processes that may just have begun, with the parent's handlers still in place."""
    code = (
        "import signal\n"
        "from gcnsim.core.processes import parallel_map\n"
        "def ended(*_): raise KeyboardInterrupt\n"
        "signal.signal(signal.SIGTERM, ended)\n"
        "for _ in range(60): assert parallel_map(abs, [-1, 2], 2) == [1, 2]\n"
        "assert signal.getsignal(signal.SIGTERM) is ended\n"
        "assert not signal.pthread_sigmask(signal.SIG_BLOCK, ())\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def killing(value: int) -> int:
    if value == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return value


def test_a_process_that_is_killed_ends_the_work_and_says_so() -> None:
    """As a system does that runs out of memory: nobody waits for what it was doing."""
    with pytest.raises(KilledError, match="--processes 1"):
        parallel_map(killing, list(range(6)), 2)
    assert parallel_map(square, [3, 4], 2) == [9, 16], "and later work runs again"


def test_the_command_ends_in_one_line_when_a_process_of_its_own_is_killed() -> None:
    code = (
        "import os, signal, sys, gcnsim.planning.study_cache as study_cache\n"
        "from gcnsim.cli import main\n"
        "study_cache.factors = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n"
        "sys.exit(main(['what-if', '--bandwidth', '15Gbps', '--gpus', '24', '--processes', '2']))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines() == [
        "gcnsim: one of 2 processes was killed, probably because memory ran out; --processes 1 needs the least"
    ]


def test_its_processes_end_with_one_that_is_killed() -> None:
    code = (
        "import os, time\n"
        "from gcnsim.core.processes import parallel_map\n"
        "def waits(_): os.write(1, f'{os.getpid()}\\n'.encode()); time.sleep(60)\n"
        "parallel_map(waits, [1, 2], 2)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        own = [int(parent.stdout.readline()) for _ in range(2)]
        parent.kill()
        parent.wait()
    until = time.monotonic() + 20
    while any(Path(f"/proc/{pid}").exists() and not _zombie(pid) for pid in own):
        assert time.monotonic() < until
        time.sleep(0.05)


def _zombie(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True
