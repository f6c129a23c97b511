"""Long jobs, each in a separate process with a separate folder: progress, output files, and end."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections import OrderedDict
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Lock, Thread
from typing import Any, Final

from gcnsim.core.errors import ScenarioError

MOST: Final = 4
"""The most concurrent jobs; beyond that, the oldest finished results are dropped."""

MOST_KEPT: Final = 64


class BusyError(ScenarioError):
    """Too many jobs are running."""


class Job:
    """One job. status: the current step; share: the finished share, None if unknown; refused: its error is about what
    was asked."""

    def __init__(self, key: str, kind: str, options: Mapping[str, Any], folder: Path) -> None:
        self.key, self.kind, self.folder = key, kind, folder
        self.status: str = "starting"
        self.share: float | None = None
        self.error: str | None = None
        self.done = self.refused = False
        self._process = subprocess.Popen(
            [sys.executable, "-m", "gcnsim.dashboard.work", "job", str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            start_new_session=True,
        )
        request = json.dumps({"kind": kind, "options": options, "folder": str(folder)})
        self._thread = Thread(target=self._listen, args=(request,), daemon=True)
        self._thread.start()

    @property
    def under_way(self) -> bool:
        """Whether it is still running."""
        return not self.done and self.error is None

    def _listen(self, request: str) -> None:
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(request + "\n")
            process.stdin.close()
            for line in process.stdout:
                message = json.loads(line)
                if "progress" in message:
                    self.status, self.share = str(message["progress"]), message.get("share")
                else:
                    self.error, self.done = message.get("error"), "done" in message
                    self.refused = "refused" in message
        except (OSError, ValueError):
            self.error = self.error or "its process has ended"
        process.stdout.close()
        process.wait()
        if not self.done and self.error is None:
            self.error = "its process has ended"

    def wait(self, left: Callable[[], bool]) -> None:
        """Wait until it has ended; it is cancelled once whoever asked has left."""
        while self._thread.is_alive():
            self._thread.join(0.5)
            if left():
                self.cancel()

    def cancel(self) -> None:
        """End the job and all processes that it started."""
        if self._process.poll() is None:
            self.error = "cancelled"
            os.killpg(self._process.pid, 9)


class Jobs:
    """Jobs by their unguessable key; folder: contains the folder of each."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._jobs: OrderedDict[str, Job] = OrderedDict()
        self._lock = Lock()

    def start(self, kind: str, options: Mapping[str, Any], most: int = MOST) -> Job:
        """Start a job. Raises BusyError if so many are running."""
        with self._lock:
            if sum(item.under_way for item in self._jobs.values()) >= most:
                raise BusyError(f"{most} jobs are under way; allowed: wait for one, or cancel it")
            key = os.urandom(16).hex()
            folder = self._folder / key
            folder.mkdir()
            self._jobs[key] = job = Job(key, kind, options, folder)
            while len(self._jobs) > MOST_KEPT:
                _, old = self._jobs.popitem(last=False)
                old.cancel()
                shutil.rmtree(old.folder, ignore_errors=True)
        return job

    def get(self, key: str | None) -> Job | None:
        """The job of a key; None if there is none."""
        return self._jobs.get(key or "")

    def drop(self, key: str) -> None:
        """Forget a job that has ended, with its folder."""
        with self._lock:
            job = self._jobs.pop(key, None)
        if job is not None:
            shutil.rmtree(job.folder, ignore_errors=True)

    def end(self) -> None:
        """End all jobs."""
        for job in list(self._jobs.values()):
            job.cancel()
