"""Trainings that something is done to: started, watched from outside, gone on with, and compared to one left alone."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from runtime.emulation.network import clean
from tests.runtime.emulation.places import EMULATE, namespaces
from tests.runtime.shell import TORCHRUN, TRAIN, Shell, gone, lines, until

ITERATIONS: Final = 400
WORDS: Final = (
    *("--iterations", str(ITERATIONS), "--hidden", "16", "--dropout", "0.2", "--eval-every", "0", "--quiet"),
    *("--method", "psc-gcn", "--tau", "2", "--epsilon", "0.3", "--no-record", "--threads", "1"),
)
EVERY: Final = ("--checkpoint-every", "5")
LOSSES, RUN = "losses.csv", "run"

LIMIT_S: Final = 30.0
"""Within which everything ends or goes on."""


class BrokenError(Exception):
    """Something was not as it is documented."""


def must(holds: bool, what: str) -> None:
    """Raise BrokenError, which says `what`, unless it `holds`."""
    if not holds:
        raise BrokenError(what)


@dataclass
class Watched:
    """A training in `home`. said: what it wrote; seconds: from the strike until it had ended or went on."""

    home: Path
    shell: Shell
    pids: tuple[int, ...] = ()
    struck: float = 0.0
    seconds: float = 0.0
    said: tuple[int, str, str] = field(default=(0, "", ""))

    @property
    def losses(self) -> Path:
        """Its log."""
        return self.home / LOSSES

    def under_way(self, more: int = 25) -> None:
        """Return when some iterations more are done, all processes of it noted."""
        goal = lines(self.losses) + more
        until(lambda: lines(self.losses) > goal or self.shell.process.poll() is not None, "training goes on", 90.0)
        if self.shell.process.poll() is not None:
            raise BrokenError(f"ended by itself: {self.shell.end()}"[-500:])
        self.pids = tuple(below(self.shell.process.pid))

    def strike(self) -> None:
        """From now on the time counts."""
        self.struck = time.monotonic()

    def went_on(self, more: int = 3) -> None:
        """Wait until iterations end again."""
        goal = lines(self.losses) + more
        until(lambda: lines(self.losses) >= goal, "it goes on", LIMIT_S)
        self.seconds = time.monotonic() - self.struck

    def ends(self, code: int, *words: str, within: float = LIMIT_S) -> None:
        """Wait for its end, with this code and a line of errors that has the words; none of its processes is left."""
        try:
            out, err = self.shell.process.communicate(timeout=within)
        except subprocess.TimeoutExpired:
            raise BrokenError(f"has not ended within {within:g} s") from None
        self.said = (self.shell.process.returncode, out, err or "")
        until(
            lambda: all(map(gone, self.pids)), "its processes end", max(LIMIT_S - (time.monotonic() - self.struck), 1)
        )
        self.seconds = time.monotonic() - self.struck
        must(self.said[0] == code, f"exit code {self.said[0]}, documented: {code}; {self.said[2][-500:]}")
        texts = [line for line in self.said[2].splitlines() if line.startswith(("runtime.", "gcnsim"))]
        must(not words or any(all(word in line for word in words) for line in texts), f"does not say {words}: {texts}")

    def left_nothing(self, *, killed: bool = True) -> None:
        """No temporary folder of it is there, and no namespace; killed: a file that it was writing may be.

        The next write of the same file removes that.
        """
        left = [path.name for path in (self.home / "tmp").iterdir() if path.name.startswith("gcnsim-")]
        left += [] if killed else [str(path.relative_to(self.home)) for path in self.home.rglob(".*.part")]
        must(not left, f"left behind: {left}")
        must(not namespaces(self.shell.process.pid), "left a namespace behind")


def below(pid: int) -> Iterator[int]:
    """All processes below this one."""
    left = [pid]
    while left:
        each = left.pop()
        for task in Path(f"/proc/{each}/task").glob("*/children"):
            try:
                children = [int(child) for child in task.read_text(encoding="utf-8").split()]
            except (FileNotFoundError, ProcessLookupError):
                continue
            left += children
            yield from children


@contextmanager
def training(home: Path, how: Sequence[str] = TRAIN, *words: str, **env: Any) -> Iterator[Watched]:
    """A training by the command `how` in the folder `home`, which is made; nothing of it is left after the block."""
    (home / "tmp").mkdir(parents=True, exist_ok=True)
    named = [f"{name}={value}" for name, value in {"TMPDIR": home / "tmp", **env}.items()]
    command = ["env", *named, *how]
    shell = Shell(home, *words, "--out", RUN, "--loss-log", LOSSES, command=command)
    watched = Watched(home, shell)
    try:
        yield watched
    finally:
        for pid in {*below(shell.process.pid), *watched.pids}:
            if not gone(pid):
                os.kill(pid, signal.SIGCONT)
                os.kill(pid, signal.SIGKILL)
        shell.process.kill()
        shell.process.wait()
        for pipe in (shell.process.stdout, shell.process.stderr):
            if pipe is not None:
                pipe.close()
        clean()


def plain(home: Path, *words: str, **env: Any) -> Any:
    """Two local workers."""
    return training(home, TRAIN, *WORDS, *EVERY, *words, **env)


def torchrun(home: Path) -> Any:
    """Two workers below torchrun's agent."""
    return training(home, TORCHRUN, "-m", "runtime.train", *WORDS, *EVERY)


BANDWIDTH: Final = 20e6 / 8


def emulated(home: Path, *words: str) -> Any:
    """A worker on each of two emulated hosts."""
    how = ("--hosts", "2", "--bandwidth", "20Mbps", "--")
    return training(home, EMULATE, *how, *WORDS, *EVERY, *words)


@dataclass
class Alone:
    """The losses of a training that nothing was done to."""

    home: Path
    found: str = ""

    @property
    def losses(self) -> str:
        """Its log, trained once."""
        if not self.found:
            with training(self.home, TRAIN, *WORDS) as run:
                run.strike()
                run.ends(0, within=600.0)
                self.found = run.losses.read_text(encoding="utf-8")
        must(self.found.count("\n") == ITERATIONS + 1, "the training left alone has not every iteration")
        return self.found


def goes_on(run: Watched, alone: Alone) -> None:
    """The training, gone on with from its last checkpoint, has the losses of the one left alone, bit for bit."""
    done = sorted((run.home / RUN / "checkpoints").iterdir())
    must(bool(done), "no checkpoint")
    with training(run.home, TRAIN, *WORDS, *EVERY, "--resume", RUN) as again:
        again.strike()
        again.ends(0, within=600.0)
        again.left_nothing(killed=False)
    same(run, alone)


def same(run: Watched, alone: Alone) -> None:
    """The losses of both are equal bit for bit."""
    must(run.losses.read_text(encoding="utf-8") == alone.losses, "other losses than the training left alone")


def ran(*words: str, cwd: Path, **more: Any) -> subprocess.CompletedProcess[str]:
    """A command of the package from start to end."""
    done = subprocess.run([sys.executable, "-m", *words], cwd=cwd, capture_output=True, text=True, check=False, **more)
    must(done.returncode == 0, f"{' '.join(words)}: {done.returncode}: {done.stderr[-500:]}")
    return done


def tool(name: str) -> str:
    """The path of a program of the system. Raises BrokenError where there is none."""
    found = shutil.which(name)
    if found is None:
        raise BrokenError(f"{name} is not installed")
    return found
