"""`python -m runtime.train` as a user's shell runs it, and what is seen of it from outside."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TRAIN = [sys.executable, "-m", "runtime.train"]
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
PATIENCE_S = 90.0
LAUNCHERS = ("GCNSIM_", "SLURM_", "OMPI_", "PMI_")
"""Beginnings of variables that tests do not pass on: of whatever started the tests themselves."""


def hearing() -> None:
    """In a new process: hear Ctrl-C and a hang-up as at a terminal, though whatever runs the tests may ignore them."""
    for signum in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(signum, signal.SIG_DFL)


class Shell:
    """A run started in `folder`. stderr: a file descriptor to write errors to, a pipe without one."""

    def __init__(self, folder: Path, *arguments: str, command: list[str] | None = None, stderr: int | None = None):
        clean = {name: value for name, value in os.environ.items() if not name.startswith(LAUNCHERS)}
        self.process = subprocess.Popen(
            [*(TRAIN if command is None else command), *arguments],
            cwd=folder,
            env={**clean, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE if stderr is None else stderr,
            text=True,
            preexec_fn=hearing,
        )

    def end(self) -> tuple[int, str, str]:
        """Exit code, standard output and standard error, once all who hold its pipes are gone."""
        out, err = self.process.communicate(timeout=PATIENCE_S)
        return self.process.returncode, out, err or ""

    def worker(self, rank: int) -> int:
        """The process number of a worker, once it is there: a measurement starts and ends several."""
        found: list[int] = []

        def there() -> bool:
            found[:] = [pid for pid in self.workers() if _environment(pid).get("RANK") == str(rank)]
            return bool(found)

        until(there, f"worker {rank} runs")
        return found[0]

    def workers(self) -> list[int]:
        """Process numbers of all workers alive, below whatever started them."""
        below, found = [self.process.pid], []
        while below:
            pid = below.pop()
            try:
                children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="utf-8").split()
            except (FileNotFoundError, ProcessLookupError):
                continue
            below += [int(child) for child in children]
            found += [int(child) for child in children if "RANK" in _environment(int(child))]
        return found


def _environment(pid: int) -> dict[str, str]:
    try:
        raw = Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace")
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return {}
    return dict(pair.partition("=")[::2] for pair in raw.split("\0") if pair)


def until(condition: Callable[[], bool], what: str, timeout_s: float = PATIENCE_S) -> None:
    """Return when `condition` holds; fail, naming `what`, when it does not in time."""
    end = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < end, f"not in {timeout_s:g} s: {what}"
        time.sleep(0.02)


def lines(path: Path) -> int:
    """Lines of a file, 0 without it."""
    return path.read_text(encoding="utf-8").count("\n") if path.exists() else 0


def gone(pid: int) -> bool:
    """Whether no such process runs (one that nobody has buried does not run)."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return True
    return status.rpartition(")")[2].split()[0] in "ZX"
