"""Processes that train the same parts on the other cores while parts are measured.

Workers of a cluster of cores keep all cores busy, and share the last cache and the way to memory. So a part is measured
beside others like it, each process with cores of its own. The program of such a process is this module's: its standard
input has one JSON object, then the number of a setting a line.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from gcnsim.core.processes import cores
from gcnsim.core.signals import die_with_parent
from runtime.data import DatasetCache
from runtime.launch import disable_malloc_trim
from runtime.measuring.request import options_from
from runtime.measuring.rounds import ALONE, Setting, with_fastest_kernels
from runtime.options import Options
from runtime.train.setup import device_of

READY: Final = b"ready\n"


def cores_apart(threads: int, most: int) -> list[list[int]]:
    """Up to `most` groups of as many cores as a part has threads; one empty group where cores cannot be chosen."""
    if not hasattr(os, "sched_getaffinity"):
        return [[]]
    here = sorted(os.sched_getaffinity(0))[: cores()]
    groups = max(1, min(len(here) // threads, most))
    return [here[number * threads : (number + 1) * threads] for number in range(groups)]


@contextlib.contextmanager
def on_cores(group: Sequence[int]) -> Iterator[None]:
    """This thread, and those it starts, on these cores; on any where there are none."""
    if not group:
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, group)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


class Neighbours:
    """A process for each group of cores, which trains the setting it was told last until it is told another."""

    def __init__(self, settings: Sequence[Options], groups: Sequence[Sequence[int]], share: int | None) -> None:
        """Start all of them. settings: of the measurement; share: bytes that each may take for parts."""
        self.processes: list[subprocess.Popen[bytes]] = []
        for number, group in enumerate(groups, 1):
            request = {"settings": [setting.asdict() for setting in settings], "cores": list(group), "first": number,
                       "share": share, "parent": os.getpid()}  # fmt: skip
            try:
                process = subprocess.Popen(
                    [sys.executable, "-m", "runtime.measuring.neighbours"],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    env=os.environ | {"PYTHONPATH": os.pathsep.join([str(_root()), *filter(None, sys.path)])},
                )
                self.processes.append(process)
                self._send(process, json.dumps(request))
            except BaseException:
                self.close()
                raise

    def wait(self) -> None:
        """Until all can begin, or have ended."""
        for process in self.processes:
            assert process.stdout is not None
            process.stdout.readline()

    @property
    def count(self) -> int:
        """How many are training."""
        return sum(process.poll() is None for process in self.processes)

    def train(self, setting: int) -> None:
        """Go over to the setting of this number."""
        for process in self.processes:
            self._send(process, str(setting))

    def close(self) -> None:
        """End all of them."""
        for process in self.processes:
            process.kill()
        for process in self.processes:
            process.communicate()

    @staticmethod
    def _send(process: subprocess.Popen[bytes], line: str) -> None:
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(f"{line}\n".encode())
            process.stdin.flush()


def _root() -> Path:
    """The folder that holds the package."""
    return Path(__file__).resolve().parents[2]


NEIGHBOUR_S: Final = 10.0
"""What a neighbour divides into rounds; it goes on until it is told otherwise."""


class Neighbour:
    """Trains the parts of settings, one after the other, until it is told to go on."""

    def __init__(self, settings: Sequence[Options], share: int | None) -> None:
        """Read the graph and cut it. share: bytes that it may take for parts."""
        self._settings, self._share = settings, share
        self._shelf = DatasetCache()
        self._device = device_of(settings[0], ALONE)
        self._dataset = self._shelf.dataset(settings[0])
        self._partitioning = self._shelf.owners(settings[0], self._dataset)
        disable_malloc_trim()

    def train(self, number: int, first: int, until: Callable[[], bool]) -> None:
        """Train the parts of a setting, from part `first` on, until `until` says so."""
        options = with_fastest_kernels(self._settings[number], self._dataset, self._partitioning)
        setting = Setting(options, self._device, self._shelf, lambda _: None)
        setting.share = self._share
        setting.measured(NEIGHBOUR_S, first=first, until=until)


def main() -> None:
    """Train what the lines of the standard input say, until it ends."""
    with open(0, "rb", buffering=0, closefd=False) as lines:
        request: dict[str, Any] = json.loads(lines.readline())
        die_with_parent(request["parent"])
        with on_cores(request["cores"]):
            neighbour = Neighbour([options_from(setting) for setting in request["settings"]], request["share"])
            os.write(1, READY)
            while line := lines.readline():
                neighbour.train(int(line), request["first"], lambda: bool(select.select([lines], [], [], 0)[0]))


if __name__ == "__main__":
    main()
