"""The parent ends with its workers, its workers end with it, and it says why."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Start = Callable[..., Any]
Vanish = Callable[[list[int]], None]

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks into /proc")


def test_all_well(start: Start) -> None:
    run = start("fine", workers=3)
    assert run.end() == (0, "hello from 0\n", ""), "the other workers' output is not the run's"
    for rank in range(3):
        place = f"Place(rank={rank}, world=3, local_rank={rank}, local_world=3, launched=True)"
        assert run.noted(f"place-{rank}") == f"[{place}, '1', '']"
    assert list(run.temporary.iterdir()) == []


def test_one_that_raises_ends_the_run_with_its_rank_and_reason(start: Start, vanish: Vanish) -> None:
    run = start("raises", workers=3)
    code, _, err = run.end()
    assert (code, err) == (1, "runtime.train: worker 1: ValueError: no luck\n")
    assert run.noted("stopped-0") == run.noted("stopped-2") == "True"
    vanish(run.pids("pid-0", "pid-1", "pid-2"))


def test_debug_shows_where_it_was_raised(start: Start) -> None:
    _, _, err = start("raises", GCNSIM_DEBUG="1").end()
    assert err.startswith("Traceback")
    assert err.endswith("runtime.train: worker 1: ValueError: no luck\n")


def test_a_users_error_is_said_once(start: Start) -> None:
    code, _, err = start("refuse", workers=3).end()
    assert code == 2
    assert err in {f"runtime.train: worker {rank}: --lr: 'x' is not a number\n" for rank in range(3)}


def test_a_killed_worker_is_the_cause_not_its_peers_complaint(start: Start) -> None:
    code, _, err = start("killed", workers=3).end()
    assert code == 1
    assert err == "runtime.train: worker 1 was killed by SIGKILL (by hand, or by the system because memory ran out)\n"


def test_a_worker_killed_from_outside_ends_the_run_soon(start: Start, vanish: Vanish) -> None:
    run = start("wait")
    pids = run.pids()
    begin = time.monotonic()
    os.kill(pids[1], signal.SIGKILL)
    code, _, err = run.end()
    assert code == 1
    assert "worker 1 was killed by SIGKILL" in err
    assert time.monotonic() - begin < 5.0
    vanish(pids)


def test_a_worker_that_stands_still_is_named_and_killed(start: Start, vanish: Vanish) -> None:
    run = start("stopped")
    code, _, err = run.end()
    assert code == 1
    assert err == (
        "runtime.train: worker 1: hung: it did not end when asked to and was killed, after this: "
        "worker 0: RuntimeError: Timed out waiting 60000ms for recv operation to complete\n"
    )
    vanish(run.pids())


def test_an_exit_without_words(start: Start) -> None:
    code, _, err = start("silent").end()
    assert (code, err) == (1, "runtime.train: worker 1: ended with exit code 3 and gave no reason\n")


@pytest.mark.parametrize("act", ["leaves", "lingers"])
def test_a_worker_ends_well_by_an_exit_and_in_spite_of_threads(start: Start, act: str) -> None:
    begin = time.monotonic()
    assert start(act).end() == (0, "", "")
    assert time.monotonic() - begin < 15.0


@pytest.mark.parametrize(("signum", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 129)])
def test_a_signal_lets_the_workers_finish(start: Start, vanish: Vanish, signum: signal.Signals, code: int) -> None:
    run = start("wait")
    pids = run.pids()
    for _ in range(2):  # as `timeout` does: once to the process, once to its group
        run.process.send_signal(signum)
    assert run.end() == (code, "", f"runtime.train: stopped by {signum.name}\n")
    assert run.noted("stopped-0") == run.noted("stopped-1") == "True"
    vanish(pids)


def test_a_second_signal_kills_at_once(start: Start, vanish: Vanish) -> None:
    run = start("stubborn", LEAVE_S="25")
    pids = run.pids()
    run.process.send_signal(signal.SIGINT)
    run.noted("stopped-0")
    time.sleep(0.6)  # longer than what counts as one request
    begin = time.monotonic()
    run.process.send_signal(signal.SIGTERM)
    assert run.end() == (130, "", "runtime.train: stopped by SIGINT; killed: worker 1\n")
    assert time.monotonic() - begin < 10.0, "long before the time to leave is over"
    vanish(pids)


def test_a_worker_that_does_not_leave_in_time_is_killed(start: Start, vanish: Vanish) -> None:
    run = start("stubborn")
    pids = run.pids()
    run.process.send_signal(signal.SIGTERM)
    assert run.end() == (143, "", "runtime.train: stopped by SIGTERM; killed: worker 1\n")
    vanish(pids)


def test_before_there_is_anything_to_save_workers_leave_at_once(start: Start) -> None:
    run = start("unready", LEAVE_S="25")
    run.pids()
    begin = time.monotonic()
    run.process.send_signal(signal.SIGTERM)
    assert run.end() == (143, "", "runtime.train: stopped by SIGTERM\n")
    assert time.monotonic() - begin < 10.0, "no worker had to be killed"


def test_a_killed_parent_leaves_nobody_and_nothing(start: Start, vanish: Vanish) -> None:
    run = start("family")
    pids = run.pids("pid-0", "pid-1", "child-0", "child-1")
    run.process.kill()
    vanish(pids)
    run.end()
    assert list(run.temporary.iterdir()) == []


def test_what_a_worker_has_started_ends_with_it(start: Start, vanish: Vanish) -> None:
    run = start("family")
    children = run.pids("child-0", "child-1")
    run.process.send_signal(signal.SIGTERM)
    assert run.end()[0] == 143
    vanish(children)


def test_a_command_that_is_not_there(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    from runtime.launch import launch

    handler = signal.getsignal(signal.SIGTERM)
    assert launch([], 2, command=[str(tmp_path / "nothing")]) == 1
    assert capfd.readouterr().err == "runtime.train: worker 0: cannot be started: No such file or directory\n"
    assert signal.getsignal(signal.SIGTERM) is handler
