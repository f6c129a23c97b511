"""Workers find one another: through our launcher's file, and as torchrun says, which starts them again."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="torch is not installed")

Start = Callable[..., Any]


def test_two_workers_sum_over_gloo(start: Start) -> None:
    run = start("reduce")
    assert run.end(60.0) == (0, "", "")
    assert run.noted("sum-0") == run.noted("sum-1") == "3.0"


@pytest.mark.parametrize(
    ("fate", "message"),
    [
        ("SIGKILL", "worker 1 was killed by SIGKILL"),
        pytest.param("SIGSTOP", "worker 1: hung", marks=pytest.mark.slow),
    ],
)
def test_a_peer_lost_in_a_collective_is_named(start: Start, fate: str, message: str) -> None:
    begin = time.monotonic()
    code, _, err = start("bereft", FATE=fate).end(60.0)
    assert code == 1
    assert err.splitlines()[-1].startswith(f"runtime.train: {message}"), err
    assert time.monotonic() - begin < 25.0


def test_a_request_reaches_a_worker_that_is_deep_inside_torch(start: Start) -> None:
    run = start("lonely", LEAVE_S="25")
    run.pids()
    run.noted("waits")
    time.sleep(0.2)  # into the wait itself
    begin = time.monotonic()
    run.process.send_signal(signal.SIGTERM)
    assert run.end() == (143, "", "runtime.train: stopped by SIGTERM\n")
    assert time.monotonic() - begin < 10.0, "no worker had to be killed"


def test_torchrun_starts_a_failed_run_again(start: Start) -> None:
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    run = start("again", command=[*torchrun, "--max-restarts=1"])
    code, _, err = run.end(60.0)
    assert code == 0, err
    assert run.noted("count-0") == run.noted("count-1") == "1"
    assert any(f"runtime.train: worker {rank}: --lr: worker {rank} does not like it" in err for rank in (0, 1))


def test_neither_the_parent_nor_its_words_need_torch() -> None:
    code = "import sys, runtime.launch; sys.exit('torch' in sys.modules)"
    root = Path(__file__).resolve().parents[3]
    assert subprocess.run([sys.executable, "-c", code], cwd=root, check=False).returncode == 0
