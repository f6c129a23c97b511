"""A worker that torchrun or its like started: it stops when asked, and ends by itself when it does not."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from typing import Any

import pytest

Start = Callable[..., Any]

ALONE = {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "localhost", "MASTER_PORT": "29500"}


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
def test_a_request_is_answered_by_leaving(start: Start, signum: signal.Signals) -> None:
    run = start("wait", **ALONE)
    run.pids("pid-1")
    for _ in range(2):  # from the scheduler and from torchrun
        run.process.send_signal(signum)
    assert run.end() == (0, "", "")
    assert run.noted("stopped-1") == "True"


def test_a_worker_that_does_not_leave_ends_itself(start: Start) -> None:
    run = start("stubborn", **ALONE)
    run.pids("pid-1")
    begin = time.monotonic()
    run.process.send_signal(signal.SIGTERM)
    assert run.end()[0] == 143
    assert 0.9 < time.monotonic() - begin < 5.0


def test_a_workers_error_is_its_own_to_say(start: Start) -> None:
    assert start("refuse", **ALONE).end() == (2, "", "runtime.train: worker 1: --lr: 'x' is not a number\n")


def test_half_a_place_is_a_users_error(start: Start) -> None:
    code, _, err = start("fine", RANK="1").end()
    assert code == 2
    assert err == "runtime.train: worker 1: RANK: set to '1', but WORLD_SIZE is not set; set both, as torchrun does\n"
