"""What is done to trainings, plain and on an emulated cluster, and what the documents say of it."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from runtime.emulation.network import DEVICE, Network, reshape
from runtime.emulation.throughput import free_port
from tests.faults.training import (
    BANDWIDTH,
    EVERY,
    WORDS,
    Alone,
    Watched,
    emulated,
    goes_on,
    must,
    plain,
    same,
    tool,
    torchrun,
    training,
)
from tests.runtime.emulation.places import EMULATE, namespaces
from tests.runtime.shell import ROOT, TRAIN, gone
from tests.runtime.train.test_meeting import by_hand

STOPPED_S: Final = 20.0
CUT_S: Final = 5.0
KILLED: Final = "worker 1 was killed by SIGKILL"

Strike = Callable[[Path, Alone], float]


@dataclass(frozen=True, slots=True)
class Case:
    """One fault. strike: does it in a folder; the seconds until it ended or went on as documented."""

    name: str
    place: str
    strike: Strike


def _killed_worker(start: Callable[[Path], Any]) -> Strike:
    def strike(home: Path, alone: Alone) -> float:
        with start(home) as run:
            run.under_way()
            run.strike()
            os.kill(run.shell.worker(1), signal.SIGKILL)
            run.ends(1, KILLED)
            run.left_nothing()
            goes_on(run, alone)
            return float(run.seconds)

    return strike


def _stopped_worker(start: Callable[[Path], Any]) -> Strike:
    def strike(home: Path, alone: Alone) -> float:
        with start(home) as run:
            run.under_way()
            worker = run.shell.worker(1)
            os.kill(worker, signal.SIGSTOP)
            time.sleep(STOPPED_S)
            must(run.shell.process.poll() is None, "ended while a worker was stopped")
            run.strike()
            os.kill(worker, signal.SIGCONT)
            run.went_on()
            seconds = float(run.seconds)
            run.ends(0, within=600.0)
            run.left_nothing(killed=False)
            same(run, alone)
            return seconds

    return strike


def _stopped_for_good(home: Path, alone: Alone) -> float:
    with plain(home, "--timeout", "5") as run:
        run.under_way()
        run.strike()
        os.kill(run.shell.worker(1), signal.SIGSTOP)
        run.ends(1)
        run.left_nothing()
        goes_on(run, alone)
        return float(run.seconds)


def _killed_parent(home: Path, alone: Alone) -> float:
    with plain(home) as run:
        run.under_way()
        run.strike()
        run.shell.process.kill()
        run.ends(-signal.SIGKILL)
        run.left_nothing()
        goes_on(run, alone)
        return float(run.seconds)


def _killed_emulation(home: Path, alone: Alone) -> float:
    """Its namespaces stay until they are cleaned, as docs/emulation.md says."""
    with emulated(home) as run:
        run.under_way()
        run.strike()
        run.shell.process.kill()
        run.ends(-signal.SIGKILL)
        must(len(namespaces(run.shell.process.pid)) == 3, "its namespaces do not wait to be cleaned")
        subprocess.run([*EMULATE, "clean"], cwd=ROOT, env={**os.environ, "TMPDIR": str(home / "tmp")}, check=True,
                       capture_output=True)  # fmt: skip
        run.left_nothing()
        goes_on(run, alone)
        return float(run.seconds)


def _parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[1])


def _killed_agent(start: Callable[[Path], Any], code: int, words: tuple[str, ...]) -> Strike:
    def strike(home: Path, alone: Alone) -> float:
        with start(home) as run:
            run.under_way()
            run.strike()
            os.kill(_parent_of(run.shell.worker(1)), signal.SIGKILL)
            run.ends(code, *words)
            run.left_nothing()
            goes_on(run, alone)
            return float(run.seconds)

    return strike


def _link(run: Watched, state: str) -> None:
    name = Network(run.shell.process.pid, 2).name(1)
    subprocess.run([tool("ip"), "-n", name, "link", "set", DEVICE, state], check=True, capture_output=True)


def _cut_and_restored(home: Path, alone: Alone) -> float:
    with emulated(home) as run:
        run.under_way()
        _link(run, "down")
        time.sleep(CUT_S)
        run.strike()
        _link(run, "up")
        run.went_on()
        seconds = float(run.seconds)
        run.ends(0, within=600.0)
        run.left_nothing(killed=False)
        same(run, alone)
        return seconds


def _cut_for_good(home: Path, alone: Alone) -> float:
    with emulated(home, "--timeout", "5") as run:
        run.under_way()
        run.strike()
        _link(run, "down")
        run.ends(1)
        run.left_nothing()
        goes_on(run, alone)
        return float(run.seconds)


def _link_at_one_percent(home: Path, alone: Alone) -> float:
    with emulated(home) as run:
        run.under_way()
        made = Network(run.shell.process.pid, 2)
        run.strike()
        reshape(made, 1, BANDWIDTH, BANDWIDTH / 100)
        run.went_on()
        seconds = float(run.seconds)
        reshape(made, 1, BANDWIDTH, BANDWIDTH)
        run.ends(0, within=600.0)
        run.left_nothing(killed=False)
        same(run, alone)
        return seconds


@contextmanager
def _small_disk(home: Path) -> Iterator[Path]:
    """A folder on a file system of 4 MB."""
    home.mkdir(parents=True)
    subprocess.run([tool("mount"), "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(home)], check=True)
    try:
        yield home
    finally:
        subprocess.run([tool("umount"), str(home)], check=False)


def _full_disk(home: Path, alone: Alone) -> float:
    with _small_disk(home) as disk, plain(disk) as run:
        run.under_way()
        run.strike()
        with open(disk / "filler", "wb", buffering=0) as filler:
            try:
                while True:
                    filler.write(bytes(4096))
            except OSError as error:
                must(error.errno == errno.ENOSPC, str(error))
        run.ends(2, "No space left on device")
        run.left_nothing(killed=False)
        (disk / "filler").unlink()
        goes_on(run, alone)
        return float(run.seconds)


def _one_folder(home: Path, alone: Alone) -> float:
    with plain(home) as run:
        run.under_way()
        holder = run.shell.worker(0)
        with training(home, TRAIN, *WORDS, *EVERY) as second:
            second.strike()
            second.ends(2, f"is being written by process {holder}")
            seconds = float(second.seconds)
        run.ends(0, within=600.0)
        run.left_nothing(killed=False)
        same(run, alone)
        return seconds


def _one_port(home: Path, alone: Alone) -> float:
    port = free_port()
    first, second = (by_hand(rank, port) for rank in range(2))
    with training(home, first, *WORDS) as run, training(home, second, *WORDS) as peer:
        run.under_way()
        with training(home / "other", first, *WORDS) as late:
            late.strike()
            late.ends(2, "MASTER_PORT", "is in use by another process")
            seconds = float(late.seconds)
        for watched in (run, peer):
            watched.ends(0, within=600.0)
            watched.left_nothing()
        must(all(map(gone, run.pids)), "processes are left")
        same(run, alone)
        return seconds


CASES: Final = (
    Case("worker SIGKILL", "plain", _killed_worker(plain)),
    Case("worker SIGSTOP for 20 s", "plain", _stopped_worker(plain)),
    Case("worker SIGSTOP for good, --timeout 5", "plain", _stopped_for_good),
    Case("parent SIGKILL", "plain", _killed_parent),
    Case("agent of torchrun SIGKILL", "plain", _killed_agent(torchrun, -signal.SIGKILL, ())),
    Case("disk full at a checkpoint", "plain", _full_disk),
    Case("two runs in one folder", "plain", _one_folder),
    Case("two runs on one port", "plain", _one_port),
    Case("worker SIGKILL", "emulated", _killed_worker(emulated)),
    Case("worker SIGSTOP for 20 s", "emulated", _stopped_worker(emulated)),
    Case(
        "agent of torchrun SIGKILL",
        "emulated",
        _killed_agent(emulated, 1, ("host 1: torchrun was killed by SIGKILL",)),
    ),
    Case("parent SIGKILL, namespaces until `clean`", "emulated", _killed_emulation),
    Case("link cut for 5 s", "emulated", _cut_and_restored),
    Case("link cut for good, --timeout 5", "emulated", _cut_for_good),
    Case("link at 1 %", "emulated", _link_at_one_percent),
)
