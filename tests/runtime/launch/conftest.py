"""A run of `acts.py` as a user's shell would start it, and what is seen of it from outside."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.runtime.shell import LAUNCHERS, gone, hearing, until

ROOT = Path(__file__).resolve().parents[3]
ACTS = Path(__file__).with_name("acts.py")


class Run:
    """One parent with its workers; `folder` holds what they noted."""

    def __init__(self, folder: Path, command: list[str], **env: str) -> None:
        self.folder = folder
        self.temporary = folder / "tmp"
        self.temporary.mkdir()
        clean = {name: value for name, value in os.environ.items() if not name.startswith(LAUNCHERS)}
        self.process = subprocess.Popen(
            command,
            env={**clean, "PYTHONPATH": str(ROOT), "TMPDIR": str(self.temporary), **env},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=hearing,
        )

    def end(self, timeout_s: float = 30.0) -> tuple[int, str, str]:
        """Exit code, standard output and standard error, once the parent and all who hold its pipes are gone."""
        out, err = self.process.communicate(timeout=timeout_s)
        return self.process.returncode, out, err

    def noted(self, name: str) -> str:
        """What a worker noted under `name`; waits for it."""
        path = self.folder / name
        until(path.exists, f"{name} is noted")
        return path.read_text(encoding="utf-8")

    def pids(self, *names: str) -> list[int]:
        """Numbers of the processes that noted theirs under `names`, as a rule both workers."""
        return [int(self.noted(name)) for name in names or ("pid-0", "pid-1")]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Run]]:
    """Start `acts.py` playing an act; whatever happens, nothing of it is left at the end."""
    runs: list[Run] = []

    def begin(act: str, workers: int = 2, command: list[str] | None = None, **env: str) -> Run:
        base = [sys.executable] if command is None else command
        run = Run(tmp_path, [*base, str(ACTS), act, str(tmp_path), str(workers)], **env)
        runs.append(run)
        return run

    yield begin
    for run in runs:
        run.process.kill()
        run.process.communicate()


@pytest.fixture
def vanish() -> Callable[[list[int]], None]:
    """Wait until processes are gone."""

    def check(pids: list[int]) -> None:
        until(lambda: all(gone(pid) for pid in pids), f"processes {pids} are gone", 10.0)

    return check
