"""Processes that train the same parts on the other cores while parts are measured.

Workers of a cluster of cores keep all cores busy, and share the last cache and the way to memory. So a part is measured
beside others like it, each process with cores of its own.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from gcnsim.core.processes import cores
from runtime.options import Options

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
                    [sys.executable, "-m", "runtime.measuring.neighbour"],
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
