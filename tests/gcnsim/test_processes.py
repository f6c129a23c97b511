"""Forked work keeps order and raises what its processes raise."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import pytest

from gcnsim.errors import ScenarioError
from gcnsim.processes import cores, parallel_map, parallel_map_counted


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


@pytest.mark.parametrize("processes", [1, 2, 3])
def test_what_every_process_has_done_is_heard_here(processes: int) -> None:
    heard: list[int] = []
    assert parallel_map_counted(counting, list(range(7)), processes, heard.append) == [0, -1, -2, -3, -4, -5, -6]
    assert sum(heard) == sum(range(7)) + 7
    assert min(heard) >= 0


def test_there_is_at_least_one_core() -> None:
    assert cores() >= 1


def test_a_handler_of_the_parent_does_not_keep_its_processes_from_ending() -> None:
    """A pool that is done ends processes that may just have begun, with the parent's handlers still in place."""
    code = (
        "import signal\n"
        "from gcnsim.processes import parallel_map\n"
        "def ended(*_): raise KeyboardInterrupt\n"
        "signal.signal(signal.SIGTERM, ended)\n"
        "for _ in range(60): assert parallel_map(abs, [-1, 2], 2) == [1, 2]\n"
        "assert signal.getsignal(signal.SIGTERM) is ended\n"
        "assert not signal.pthread_sigmask(signal.SIG_BLOCK, ())\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
