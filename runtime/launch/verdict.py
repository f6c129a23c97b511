"""The first cause of a run's failure, from the exits of its workers and their last messages.

A worker's last message states in one line what went wrong, in a place where its parent or torchrun reads it.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import click

from gcnsim.core.atomic import atomic_write
from gcnsim.core.errors import FileError, GcnsimError
from gcnsim.core.ids import Rank
from runtime.launch.launchers import rank_in

PROGRAM: Final = "runtime.train"
FAILURES: Final = "GCNSIM_FAILURES"
"""The folder for the last messages of the built-in launcher's workers."""

_LENGTH: Final = 600
_ROOM: Final = ".room"
_ROOM_BYTES: Final = 16_384
"""Bytes of the file that reserves space for a worker's last message: several blocks of the usual sizes."""

_PEER_TYPES: Final = frozenset({"DistBackendError", "DistNetworkError", "DistStoreError", "DistQueueEmptyError"})
_PEER_WORDS: Final = (
    "connection closed",
    "connection reset",
    "connection refused",
    "connection was closed",
    "broken pipe",
    "timed out",
    "timeout",
    "connectfullmesh",
    "socket closed",
    "remote process exited",
)
"""Phrases with which gloo, the stores and NCCL report a dead or silent peer; they raise plain RuntimeErrors."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why one worker ended. `consequence`: it only found a dead or silent peer; the cause is probably elsewhere."""

    rank: Rank
    reason: str
    code: int
    consequence: bool
    at: float
    """Seconds since the epoch."""


def describe(error: BaseException) -> str:
    """One line: a user error unchanged, any other with its type.

    >>> describe(ValueError("no\\nyes"))
    'ValueError: no'
    """
    lines = [" ".join(line.split()) for line in str(error).splitlines() if line.strip()]
    if isinstance(error, GcnsimError):
        return " ".join(lines)
    name = type(error).__name__
    return f"{name}: {lines[0]}"[:_LENGTH] if lines else name


def is_consequence(error: BaseException) -> bool:
    """Whether `error`, or its cause, only reports a dead or silent peer."""
    if isinstance(error, GcnsimError):
        return False
    if isinstance(error, ConnectionError | TimeoutError) or type(error).__name__ in _PEER_TYPES:
        return True
    text = str(error).lower()
    if isinstance(error, RuntimeError) and any(words in text for words in _PEER_WORDS):
        return True
    return error.__cause__ is not None and is_consequence(error.__cause__)


def report_failure(error: BaseException) -> None:
    """Write the last message of this worker: code 2 for a user error, else 1. Never raises.

    With the built-in launcher it goes to a file; the first message stays. Otherwise it is printed, and written to
    TORCHELASTIC_ERROR_FILE.
    """
    code = 2 if isinstance(error, GcnsimError) else 1
    failure = Failure(rank_in(os.environ), describe(error), code, is_consequence(error), time.time())
    folder = os.environ.get(FAILURES)
    if folder is not None:
        path = Path(folder, f"{failure.rank}.json")
        text = json.dumps(asdict(failure))
        if path.exists() or _written(path, text):
            return
        # A full disk may be the cause, and the message may go to the same disk.
        with contextlib.suppress(OSError):
            path.with_suffix(_ROOM).unlink()
            if _written(path, text):
                return
    say(f"worker {failure.rank}: {failure.reason}")
    if os.environ.get("TORCHELASTIC_ERROR_FILE"):
        _written(Path(os.environ["TORCHELASTIC_ERROR_FILE"]), json.dumps(_elastic(failure)))


def _elastic(failure: Failure) -> dict[str, object]:
    """A failure in torchrun's format. It calls the earliest one the root cause, in whole seconds."""
    late = 1 if failure.consequence else 0
    return {"message": {"message": failure.reason, "extraInfo": {"timestamp": str(int(failure.at) + late)}}}


def _written(path: Path, text: str) -> bool:
    try:
        with atomic_write(path, text=True) as file:
            file.write(text)
    except FileError:
        return False
    return True


def keep_room(folder: Path, workers: int) -> None:
    """Reserve space in `folder` for the last message of each worker, in case the disk is full by then.

    Raises OSError.
    """
    for rank in range(workers):
        (folder / f"{rank}{_ROOM}").write_bytes(bytes(_ROOM_BYTES))


def read_failures(folder: Path) -> Iterator[Failure]:
    """The last messages of workers in `folder`, in no order."""
    for path in folder.glob("*.json"):
        yield Failure(**json.loads(path.read_text(encoding="utf-8")))


def error_text(error: GcnsimError | click.ClickException, program: str = PROGRAM) -> str:
    """The error in the arguments of `program`, in one line."""
    if isinstance(error, click.ClickException):
        return " ".join(error.format_message().split()) + f" (see python -m {program} --help)"
    return str(error)


def say(line: str) -> None:
    """Print one line on standard error, if it exists."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        sys.stderr.write(f"{PROGRAM}: {line}\n")
        sys.stderr.flush()


ENDED_BY_TERM: Final = (-signal.SIGTERM, 128 + signal.SIGTERM)


@dataclass(frozen=True, slots=True)
class Exit:
    """The end of one worker's process: `code` as in subprocess, negative for a signal."""

    rank: Rank
    code: int
    at: float
    """Seconds since the epoch, no later than the true end."""
    stop_signal: int
    """The last signal from the parent; 0: none."""

    @property
    def willing(self) -> bool:
        """Whether it ended well, or because it was asked to."""
        return self.code == 0 or (self.stop_signal != 0 and self.code in ENDED_BY_TERM)

    @property
    def stuck(self) -> bool:
        """Whether it did not end when asked to, and was killed by the parent."""
        return self.code == -signal.SIGKILL and self.stop_signal == signal.SIGKILL


@dataclass(frozen=True, slots=True)
class Cause:
    """The message of a failed run, its exit code, and whether it is only the consequence of a silent peer."""

    line: str
    code: int
    consequence: bool


def first_cause(exits: Sequence[Exit], failures: Iterable[Failure]) -> Cause | None:
    """The earliest failure that is not a consequence of another one; None if all ended well or as asked.

    Certain causes (a reported error, an external signal) come before uncertain ones (an abort, which NCCL also causes
    on peers of a failed worker; an exit without a message). Those come before reports of a silent peer. If there are
    only such reports, a worker that could not be ended is the origin.
    """
    by_rank = {failure.rank: failure for failure in failures}
    found = [_judged(exit, by_rank.get(exit.rank)) for exit in exits if not exit.willing and not exit.stuck]
    found.sort(key=lambda item: item[:2])
    stuck = [exit.rank for exit in exits if exit.stuck]
    if found and not (found[0][2].consequence and stuck):
        return found[0][2]
    if not stuck:
        return None
    after = f", after this: {found[0][2].line}" if found else ""
    return Cause(f"worker {stuck[0]}: hung: it did not end when asked to and was killed{after}", 1, True)


def _judged(exit: Exit, failure: Failure | None) -> tuple[int, float, Cause]:
    """How uncertain a failure is (0 to 2), its time, and its message."""
    if failure is not None and exit.code > 0:
        line = f"worker {exit.rank}: {failure.reason}"
        return 2 if failure.consequence else 0, failure.at, Cause(line, failure.code, failure.consequence)
    if exit.code < 0 or exit.code in ENDED_BY_TERM:
        signum = signal.SIGTERM if exit.code > 0 else -exit.code
        line = f"worker {exit.rank} was killed by {_name(signum)}"
        if signum == signal.SIGKILL:
            line += " (by hand, or by the system because memory ran out)"
        return 1 if signum == signal.SIGABRT else 0, exit.at, Cause(line, 1, False)
    line = f"worker {exit.rank}: ended with exit code {exit.code} and gave no reason"
    return 1, exit.at, Cause(line, 1, False)


def _name(signum: int) -> str:
    try:
        return signal.Signals(signum).name
    except ValueError:
        return f"signal {signum}"
