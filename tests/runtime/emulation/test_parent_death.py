"""A worker of an emulated host ends with the agent that started it, and one that has no agent does not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from runtime.emulation.priority import AGENT
from tests.runtime.shell import ROOT, gone, until

WORKER = "from runtime.emulation.priority import end_with_agent; end_with_agent(); print('on', flush=True)"


@pytest.mark.parametrize(
    ("agent", "code", "message"),
    [
        pytest.param(None, 0, "on\n", id="none"),
        pytest.param("", 0, "on\n", id="empty"),
        pytest.param(str(os.getpid()), 0, "on\n", id="alive"),
        pytest.param("1", 128 + signal.SIGKILL, "", id="ended before"),
    ],
)
def test_a_worker_begins_only_under_its_agent(agent: str | None, code: int, message: str) -> None:
    content = {name: value for name, value in os.environ.items() if name != AGENT} | ({AGENT: agent} if agent else {})
    done = subprocess.run(
        [sys.executable, "-c", WORKER], cwd=ROOT, env=content, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (code, message)


def test_a_worker_ends_with_its_agent() -> None:
    started = (
        "import os, subprocess, sys, time\n"
        f"os.environ['{AGENT}'] = str(os.getpid())\n"
        f"worker = subprocess.Popen([sys.executable, '-c', {WORKER + '; import time; time.sleep(60)'!r}],"
        " stdout=subprocess.PIPE)\n"
        "worker.stdout.readline()\n"
        "print(worker.pid, flush=True)\n"
        "time.sleep(60)\n"
    )
    agent = subprocess.Popen([sys.executable, "-c", started], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert agent.stdout is not None
    worker = int(agent.stdout.readline())
    time.sleep(0.05)
    assert not gone(worker)
    agent.kill()
    agent.communicate()
    until(lambda: gone(worker), "the worker ends", 10.0)
