"""The parent of the micro-benchmarks: starts the members, collects what they measure, and says why one failed.

As with training it computes nothing and imports no torch, each member leads its own process group, and all hold the
read end of a pipe that closes when the parent ends, however it does.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import fmean
from typing import Final

from runtime.launch.launchers import RENDEZVOUS
from runtime.launch.verdict import FAILURES, Exit, first_cause, read_failures
from runtime.launch.watch import PARENT
from runtime.microbench.measurements import Measurement, MicrobenchRequest

RESULTS: Final = "GCNSIM_MEASUREMENTS"
"""The number of the pipe's end into which member 0 writes a measurement a line."""

MEMBER: Final = (sys.executable, "-m", "runtime.microbench.member")
_POLL_S: Final = 0.1
_LEAVE_S: Final = 10.0
"""How long members may take to leave once member 0 is done."""

_WORDS_S: Final = 1.0
"""How long the others may take to say what they know once one of them failed."""


class ProcessError(Exception):
    """A member failed; the message says which one and why. code: 2 for a user's error, else 1."""

    def __init__(self, line: str, code: int) -> None:
        super().__init__(line)
        self.code = code


def measured(
    request: MicrobenchRequest, show: Callable[[Measurement], None] = lambda _: None, command: Sequence[str] = MEMBER
) -> list[Measurement]:
    """All measurements of `request`, in the order first taken; `show` is told of each as it comes.

    Raises ProcessError when a process fails. Whatever ends this, no member is alive after it.
    """
    measurements: list[Measurement] = []
    with _members(request, command) as (group, reader, folder):
        for line in _lines(reader, group):
            measurements.append(Measurement(**json.loads(line)))
            show(measurements[-1])
        start = time.monotonic()
        while any(item.poll() is None for item in group):
            if time.monotonic() - start > (_WORDS_S if any(item.poll() for item in group) else _LEAVE_S):
                break
            time.sleep(_POLL_S)
        cause = first_cause(_exits(group), read_failures(folder))
        if cause is not None:
            raise ProcessError(cause.line, cause.code)
    return merged(measurements)


def merged(found: Sequence[Measurement]) -> list[Measurement]:
    """One measurement of each kernel and size, in the order first taken: of several, the means of what they say."""
    alike: dict[object, list[Measurement]] = {}
    for measurement in found:
        alike.setdefault(
            (measurement.kernel, *sorted(measurement.params.items()), measurement.threads, measurement.processes), []
        ).append(measurement)
    return [_mean(every) for every in alike.values()]


def _mean(every: Sequence[Measurement]) -> Measurement:
    first = every[0]
    seconds, low, high = (
        fmean(getattr(measurement, name) for measurement in every) for name in ("seconds", "low", "high")
    )
    repeats = sum(measurement.repeats for measurement in every)
    return Measurement(first.kernel, first.params, first.threads, first.processes, seconds, low, high, repeats)


@contextlib.contextmanager
def _members(
    request: MicrobenchRequest, command: Sequence[str]
) -> Iterator[tuple[list[subprocess.Popen[bytes]], int, Path]]:
    """The started members, the pipe of their measurements, and the folder of their last words; none outlives this."""
    group: list[subprocess.Popen[bytes]] = []
    watch, life = os.pipe()
    reader, writer = os.pipe()
    with tempfile.TemporaryDirectory(prefix="gcnsim-microbench-", ignore_cleanup_errors=True) as folder:
        common = {RENDEZVOUS: str(Path(folder, "rendezvous")), FAILURES: folder, PARENT: str(watch)}
        common |= {"WORLD_SIZE": str(request.members), "LOCAL_WORLD_SIZE": str(request.members), RESULTS: str(writer)}
        try:
            for rank in range(request.members):
                process = subprocess.Popen(
                    [*command, request.to_json()],
                    env={**os.environ, **common, "RANK": str(rank), "LOCAL_RANK": str(rank)},
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    pass_fds=(watch, writer) if rank == 0 else (watch,),
                    process_group=0,
                )
                group.append(process)
            os.close(writer)
            writer = -1
            yield group, reader, Path(folder)
        finally:
            for process in group:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            for end in (watch, life, reader, *([writer] if writer >= 0 else [])):
                os.close(end)


def _lines(reader: int, group: Sequence[subprocess.Popen[bytes]]) -> Iterator[str]:
    """The lines that come, until member 0 closes its end or any member fails."""
    rest = b""
    while not any(process.poll() for process in group):
        if not select.select([reader], [], [], _POLL_S)[0]:
            continue
        data = os.read(reader, 1 << 16)
        if not data:
            return
        *lines, rest = (rest + data).split(b"\n")
        yield from (line.decode() for line in lines)


def _exits(group: Sequence[subprocess.Popen[bytes]]) -> list[Exit]:
    """How the members ended; one that is still there when its time is over counts as told to end, and killed."""
    exits = []
    for rank, process in enumerate(group):
        code = process.poll()
        stop_signal = 0
        if code is None:
            code, stop_signal = -signal.SIGKILL, int(signal.SIGKILL)
        exits.append(Exit(rank, code, time.time(), stop_signal))
    return exits
