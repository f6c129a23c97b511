"""Processes, the memory that they keep, and compiled functions."""

from __future__ import annotations

import fcntl
import importlib.util
import os
import platform
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gcnsim.core.compiling import LOCK
from gcnsim.core.errors import KilledError, ScenarioError
from gcnsim.core.processes import parallel_map, parallel_map_counted
from gcnsim.core.resources import ALLOCATION, BLOCK, keep_freed_blocks


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
        "import os, signal, sys, gcnsim.planning.study as study\n"
        "from gcnsim.cli import main\n"
        "study.factors = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)\n"
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


_FAULTS = """
import resource, sys
import numpy as np
from gcnsim.core.resources import BLOCK, keep_freed_blocks
assert keep_freed_blocks()
def write(size):
    np.empty(size, np.uint8).fill(1)
write(BLOCK // 2)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(100):
    write(BLOCK // 2)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""
PAGES = 100 * (BLOCK // 2) // 4096


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="without glibc nothing is changed")
def test_blocks_that_are_freed_are_written_again_without_page_faults() -> None:
    # Allocation as the system has it, and no huge pages, of which one fault brings 512 pages.
    plain = {name: value for name, value in os.environ.items() if name not in ALLOCATION}
    environment = plain | {"NUMPY_MADVISE_HUGEPAGE": "0"}
    done = subprocess.run([sys.executable, "-c", _FAULTS], env=environment, capture_output=True, text=True, check=True)
    assert int(done.stdout) < PAGES / 100


@pytest.mark.parametrize("name", ALLOCATION)
def test_what_the_user_says_of_allocation_stands(name: str) -> None:
    assert not keep_freed_blocks({name: "1"})


SOURCE = """
from gcnsim.core.compiling import compiled

@compiled()
def twice(value):
    return value + value
"""


def made(folder: Path) -> Any:
    """The function of a file in `folder`, beside which its code is kept."""
    path = folder / "twice.py"
    if not path.exists():
        path.write_text(SOURCE)
    spec = importlib.util.spec_from_file_location("twice", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.twice


def kept(function: Any) -> Any:
    return function._cache._cache_file


def test_code_is_kept_and_found_again(tmp_path: Path) -> None:
    first = made(tmp_path)
    assert (first(2), first(2.5)) == (4, 5.0)
    assert Path(kept(first)._index_path).is_relative_to(tmp_path)
    again = made(tmp_path)
    assert (again(3), again(0.25)) == (6, 0.5)
    assert sum(again.stats.cache_hits.values()) == 2


def test_what_is_kept_is_changed_by_one_process_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    function, seen = made(tmp_path), []
    file = kept(function)
    read = file._load_index

    def watched() -> Any:
        """While the index is read in order to be changed, nobody else can have the lock."""
        with open(file._index_path + LOCK, "a") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                seen.append(False)
            except BlockingIOError:
                seen.append(True)
        return read()

    monkeypatch.setattr(file, "_load_index", watched)
    function(2)
    # Once to look for the code, then to keep it.
    assert seen == [False, True]


def test_where_the_lock_cannot_be_written_nothing_is_kept_and_the_answer_is_right(tmp_path: Path) -> None:
    function = made(tmp_path)
    Path(kept(function)._index_path + LOCK).mkdir(parents=True)
    assert (function(2), function(2.5)) == (4, 5.0)
    assert not Path(kept(function)._index_path).exists()


def test_a_process_that_is_killed_while_it_keeps_code_leaves_no_name_of_other_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    function = made(tmp_path)
    function(2)
    with monkeypatch.context() as killed:
        killed.setattr(kept(function), "_save_index", _ended)
        with pytest.raises(KeyboardInterrupt):
            function(2.5)
    again = made(tmp_path)
    assert (again(2.5), again(3)) == (5.0, 6)
    # The code of the other types was never named; that of the first was.
    assert sum(again.stats.cache_hits.values()) == 1


def _ended(names: object) -> None:
    raise KeyboardInterrupt


def test_code_is_kept_beside_a_lock_that_one_may_only_read(tmp_path: Path) -> None:
    function = made(tmp_path)
    lock = Path(kept(function)._index_path + LOCK)
    lock.parent.mkdir(parents=True, exist_ok=True)
    lock.touch(0o444)
    assert function(2) == 4
    assert Path(kept(function)._index_path).exists()


def test_functions_work_where_numba_compiles_nothing() -> None:
    name = "from gcnsim.core.compiling import compiled; print(compiled()(lambda value: value + value)(2))"
    done = subprocess.run(
        [sys.executable, "-c", name], env=os.environ | {"NUMBA_DISABLE_JIT": "1"}, capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    assert done.stdout == "4\n"
