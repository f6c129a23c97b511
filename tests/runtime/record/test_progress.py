from __future__ import annotations

import io
import json
import math

import pytest

from runtime.record import IterationRow, Progress
from tests.terminals import Terminal, drawn


def row(t: int, val: float | None = None, **facts: float) -> IterationRow:
    return IterationRow(
        t, facts.get("seconds", 0.5), 1.25, None, val, 100, facts.get("hit_rate"), facts.get("wait_s", 0.125)
    )


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time that `time.monotonic` tells, in a list of one."""
    now = [100.0]
    monkeypatch.setattr("runtime.record.progress.time.monotonic", lambda: now[0])
    return now


def test_the_line_says_where_the_run_is(clock: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    progress = Progress(400, stream=terminal)
    progress.show(row(9, val=0.875, hit_rate=0.3))
    progress.close()
    first, line = drawn(terminal.getvalue())
    assert first == "iteration 0/400"
    assert line.startswith("iteration 10/400, 3:15 left, loss 1.25, accuracy 87.5 %, 0.5 s/iteration, waiti")
    assert (len(line), line[-1]) == (80, "…"), "cut at the edge"
    wide = Terminal()
    monkeypatch.setenv("COLUMNS", "120")
    progress = Progress(400, 9, stream=wide)
    progress.show(row(9, val=0.875, hit_rate=0.3))
    progress.close()
    assert drawn(wide.getvalue())[1].endswith("s/iteration, waiting 25.0 %, hits 30.0 %")


def test_the_accuracy_stays_until_the_next_evaluation_and_absent_facts_are_left_out(clock: list[float]) -> None:
    terminal = Terminal()
    progress = Progress(100_000, stream=terminal)
    progress.show(IterationRow(0, 0.5, 2.0, None, None, 0, None, None))
    for t in (1, 2):
        clock[0] += 1
        progress.show(row(t, val=0.5 if t == 1 else None))
    progress.close()
    _, one, two, three = drawn(terminal.getvalue())
    assert one == "iteration 1/100000, 13:53:20 left, loss 2, 0.5 s/iteration"
    assert "accuracy 50.0 %" in two
    assert "accuracy 50.0 %" in three


def test_the_line_is_redrawn_at_most_ten_times_a_second_but_for_the_last(clock: list[float]) -> None:
    terminal = Terminal()
    progress = Progress(40, stream=terminal)
    for t in range(40):
        progress.show(row(t))
        clock[0] += 0.03
    progress.close()
    lines = [line.split(",")[0] for line in drawn(terminal.getvalue())]
    assert lines == [f"iteration {done}/40" for done in (0, 1, 5, 9, 13, 17, 21, 25, 29, 33, 37, 40)]


def test_silent_when_quiet_or_not_a_terminal(clock: list[float]) -> None:
    for stream, quiet in ((Terminal(), True), (io.StringIO(), False)):
        progress = Progress(2, quiet=quiet, stream=stream)
        progress.show(row(0))
        progress.close()
        assert stream.getvalue() == ""


def test_json_log_is_an_object_per_iteration_even_when_quiet() -> None:
    for stream in (io.StringIO(), Terminal()):
        progress = Progress(2, quiet=True, json_log=True, stream=stream)
        progress.show(row(0, val=0.5))
        progress.show(IterationRow(1, 0.5, math.nan, None, None, 7, None, None))
        progress.close()
        first, second = map(json.loads, stream.getvalue().splitlines())
        assert first == {
            "iteration": 0,
            "seconds": 0.5,
            "loss": 1.25,
            "train_accuracy": None,
            "val_accuracy": 0.5,
            "bytes_sent": 100,
            "hit_rate": None,
            "wait_s": 0.125,
        }
        assert (second["iteration"], second["loss"]) == (1, None)


def test_a_reader_that_goes_away_does_not_end_the_run() -> None:
    class Broken(Terminal):
        writes = 0

        def write(self, text: str) -> int:
            self.writes += 1
            raise BrokenPipeError

    for json_log in (False, True):
        stream = Broken()
        progress = Progress(3, json_log=json_log, stream=stream)
        for t in range(3):
            progress.show(row(t))
        progress.close()
        assert stream.writes == 1
