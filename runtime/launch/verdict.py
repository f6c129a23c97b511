"""The first cause of a run's end, from how its workers ended and what they said."""

from __future__ import annotations

import signal
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from gcnsim.ids import Rank
from runtime.launch.failure_report import Failure

ENDED_BY_TERM: Final = (-signal.SIGTERM, 128 + signal.SIGTERM)


@dataclass(frozen=True, slots=True)
class Exit:
    """How one worker's process ended: `code` as subprocess gives it, negative for a signal."""

    rank: Rank
    code: int
    at: float
    """Seconds since the epoch, not after the true end."""
    told: int
    """The last signal that the parent had sent it; 0: none."""

    @property
    def willing(self) -> bool:
        """Ended well, or because it was told to."""
        return self.code == 0 or (self.told != 0 and self.code in ENDED_BY_TERM)

    @property
    def stuck(self) -> bool:
        """Did not end when told to, and was killed by the parent."""
        return self.code == -signal.SIGKILL and self.told == signal.SIGKILL


@dataclass(frozen=True, slots=True)
class Cause:
    """What is said of a run that failed, its exit code, and whether it is only a silent peer's consequence."""

    line: str
    code: int
    consequence: bool


def first_cause(exits: Sequence[Exit], failures: Iterable[Failure]) -> Cause | None:
    """The earliest failure that is not a mere consequence of another's; None when all ended well or as told.

    Certain causes (an error reported, a signal from outside) come before doubtful ones (an abort, which NCCL does to
    the peers of a failed worker too; an exit without words), and those before reports of a silent peer. If there is
    nothing but silence, a worker that could not be ended is its origin.
    """
    said = {failure.rank: failure for failure in failures}
    found = [_judged(exit, said.get(exit.rank)) for exit in exits if not exit.willing and not exit.stuck]
    found.sort(key=lambda item: item[:2])
    stuck = [exit.rank for exit in exits if exit.stuck]
    if found and not (found[0][2].consequence and stuck):
        return found[0][2]
    if not stuck:
        return None
    after = f", after this: {found[0][2].line}" if found else ""
    return Cause(f"worker {stuck[0]}: hung: it did not end when asked to and was killed{after}", 1, True)


def _judged(exit: Exit, failure: Failure | None) -> tuple[int, float, Cause]:
    """How doubtful a failure is (0 to 2), when it was, and what to say of it."""
    if failure is not None and exit.code > 0:
        line = f"worker {exit.rank}: {failure.reason}"
        return 2 if failure.consequence else 0, failure.at, Cause(line, failure.code, failure.consequence)
    if exit.code < 0 or exit.code in ENDED_BY_TERM:
        signum = signal.SIGTERM if exit.code > 0 else -exit.code
        line = f"worker {exit.rank} was killed by {_name(signum)}"
        if signum == signal.SIGKILL:
            line += " (by hand, or by the system for want of memory)"
        return 1 if signum == signal.SIGABRT else 0, exit.at, Cause(line, 1, False)
    line = f"worker {exit.rank}: ended with exit code {exit.code} and gave no reason"
    return 1, exit.at, Cause(line, 1, False)


def _name(signum: int) -> str:
    try:
        return signal.Signals(signum).name
    except ValueError:
        return f"signal {signum}"
