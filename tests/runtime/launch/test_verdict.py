"""The first cause is found among its consequences, in whatever order the parent saw them."""

from __future__ import annotations

import signal
from itertools import permutations

from runtime.launch.verdict import Exit, Failure, first_cause


def failure(rank: int, reason: str, at: float, *, code: int = 1, consequence: bool = False) -> Failure:
    return Failure(rank, reason, code, consequence, at)


def line(exits: list[Exit], failures: list[Failure]) -> str:
    """What is said, the same for every order of the exits."""
    causes = {first_cause(list(order), failures) for order in permutations(exits)}
    assert len(causes) == 1
    cause = causes.pop()
    return "" if cause is None else cause.line


def test_all_well_or_as_told() -> None:
    assert line([Exit(0, 0, 1.0, 0), Exit(1, 143, 1.0, 15), Exit(2, -15, 1.0, 15)], []) == ""


def test_the_earliest_error_is_the_cause() -> None:
    exits = [Exit(0, 1, 3.0, 0), Exit(1, 2, 3.0, 15)]
    failures = [failure(0, "later", 2.0), failure(1, "first", 1.0, code=2)]
    assert line(exits, failures) == "worker 1: first"
    cause = first_cause(exits, failures)
    assert cause is not None
    assert cause.code == 2


def test_death_by_a_signal_comes_before_a_peers_complaint() -> None:
    exits = [Exit(0, 1, 3.0, 0), Exit(1, -signal.SIGSEGV, 4.0, 0)]
    assert line(exits, [failure(0, "Connection closed", 2.0, consequence=True)]) == "worker 1 was killed by SIGSEGV"


def test_an_abort_comes_after_an_error_and_before_a_complaint() -> None:
    abort = Exit(1, -signal.SIGABRT, 1.0, 0)
    assert line([Exit(0, 1, 3.0, 0), abort], [failure(0, "wrong", 2.0)]) == "worker 0: wrong"
    complaint = [failure(0, "Connection closed", 0.5, consequence=True)]
    assert line([Exit(0, 1, 3.0, 0), abort], complaint) == "worker 1 was killed by SIGABRT"


def test_a_worker_we_had_to_kill_is_the_cause_of_silence_only() -> None:
    stuck = Exit(1, -signal.SIGKILL, 5.0, signal.SIGKILL)
    assert line([Exit(0, 1, 3.0, 0), stuck], [failure(0, "wrong", 2.0)]) == "worker 0: wrong"
    complaint = [failure(0, "Timed out", 2.0, consequence=True)]
    assert line([Exit(0, 1, 3.0, 0), stuck], complaint).startswith("worker 1: hung: ")


def test_signals_from_outside_by_name_or_number() -> None:
    assert line([Exit(0, 143, 1.0, 0)], []) == "worker 0 was killed by SIGTERM"
    assert line([Exit(0, -40, 1.0, 0)], []) == "worker 0 was killed by signal 40"
