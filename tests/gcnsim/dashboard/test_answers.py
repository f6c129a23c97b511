"""Which rows are asked for, in which order, and which are no longer waited for."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from gcnsim.dashboard import answers as module
from gcnsim.dashboard.answers import GONE, Answers, SupersededError, Worker, _effort
from gcnsim.dashboard.state import PageQuestion

MANY = 32
"""GPUs of a row that takes long."""


class Asking:
    """Questions to a process that answers when it is let, in place of a real one. begun: rows that it was asked for."""

    made: Answers

    def __init__(self) -> None:
        self.begun: list[int] = []
        self.let, self.killed = Event(), Event()
        self.threads = ThreadPoolExecutor(8)

    def ask(self, _: Worker, line: str) -> dict[str, Any]:
        number = json.loads(line)["gpus"]
        self.begun.append(number)
        while not self.let.wait(0.01):
            if self.killed.is_set():
                self.killed.clear()
                return {"error": GONE}
        return {"rows": []}

    def rows(self, *gpus: int, tab: str = "") -> Future[list[Any]]:
        """Ask for rows of as many GPUs as said; wait until they are asked for."""
        turn = self.made.turn(tab) if tab else None
        found = self.threads.submit(self.made.rows, [{"gpus": gpu} for gpu in gpus], turn)
        until(lambda: found.done() or all(json.dumps({"gpus": gpu}) in self.made._kept for gpu in gpus))
        return found


@pytest.fixture
def asking(monkeypatch: pytest.MonkeyPatch) -> Iterator[Asking]:
    found = Asking()
    monkeypatch.setattr(module, "Origin", lambda workers: None)
    monkeypatch.setattr(Worker, "ask", lambda worker, line: found.ask(worker, line))
    monkeypatch.setattr(Worker, "kill", lambda _: found.killed.set())
    found.made = Answers(1)
    yield found
    found.let.set()
    found.threads.shutdown()
    found.made.end()


def until(holds: Callable[[], bool]) -> None:
    end = time.perf_counter() + 20.0
    while not holds():
        assert time.perf_counter() < end
        time.sleep(0.005)


def test_a_page_that_asks_anew_is_not_answered_what_it_asked(asking: Asking) -> None:
    first = asking.rows(9, 8, 7, tab="page")
    until(lambda: asking.begun == [9])
    second = asking.rows(8, 5, tab="page")
    asking.let.set()
    with pytest.raises(SupersededError):
        first.result(20)
    assert second.result(20) == []
    assert asking.begun == [9, 8, 5]


def test_what_another_page_waits_for_is_asked(asking: Asking) -> None:
    first = asking.rows(9, 8, tab="page")
    other = asking.rows(8, tab="other")
    asking.rows(3, tab="page")
    asking.let.set()
    with pytest.raises(SupersededError):
        first.result(20)
    assert other.result(20) == []
    assert asking.begun == [9, 8, 3]


def test_an_equal_question_is_asked_once(asking: Asking) -> None:
    found = [asking.rows(2, 1) for _ in range(3)]
    asking.let.set()
    assert [item.result(20) for item in found] == [[], [], []]
    assert asking.rows(1, 2).result(20) == []
    assert asking.begun == [2, 1]


def test_a_row_of_a_changed_file_is_asked_again(asking: Asking, tmp_path: Path) -> None:
    asking.let.set()
    graph = tmp_path / "graph.csv"
    for content, count in (("a", 1), ("a", 1), ("ab", 2)):
        if not graph.exists() or graph.read_text() != content:
            graph.write_text(content)
        assert asking.made.rows([{"gpus": 2, "graph": str(graph)}]) == []
        assert asking.begun == [2] * count


def test_rows_that_take_long_come_first(asking: Asking) -> None:
    asking.let.set()
    asking.rows(1, MANY, 6).result(20)
    assert asking.begun == [MANY, 6, 1]
    assert _effort({"gpus": 12, "layers": 16}) > _effort({"gpus": 24})
    entries = [PageQuestion().row_options(None, method) for method in PageQuestion().named]
    assert max(entries, key=_effort)["method"] == "psc-gcn"


@pytest.mark.parametrize(("gpus", "given_up"), [(MANY, True), (24, False)])
def test_a_long_row_that_nobody_waits_for_makes_room(
    asking: Asking, monkeypatch: pytest.MonkeyPatch, gpus: int, given_up: bool
) -> None:
    monkeypatch.setattr(module, "PATIENCE_S", 0.05)
    asking.rows(gpus, tab="page")
    until(lambda: asking.begun == [gpus])
    second = asking.rows(2, tab="page")
    until(lambda: asking.begun == [gpus, 2]) if given_up else time.sleep(0.3)
    # Who asks for it again is answered.
    third = asking.rows(gpus)
    asking.let.set()
    assert (second.result(20), third.result(20)) == ([], [])
    assert asking.begun == ([gpus, 2, gpus] if given_up else [gpus, 2])


def test_a_long_row_goes_on_where_nobody_waits_for_another(asking: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PATIENCE_S", 0.05)
    asking.rows(MANY, tab="page")
    until(lambda: asking.begun == [MANY])
    asking.made.turn("page")
    assert not asking.killed.wait(0.3)


def test_pages_that_were_not_heard_of_for_long_are_forgotten(asking: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_PAGES", 2)
    turns = [asking.made.turn(text) for text in ("a", "b", "c", "b")]
    assert list(asking.made._turns) == ["c", "b"]
    assert [turn.over for turn in turns] == [False, True, False, False]


def test_a_real_process_that_is_ended_as_it_answers_is_begun_again() -> None:
    worker = Worker()
    small, large = (json.dumps({"gpus": gpus, "method": "psc-gcn"}) for gpus in (2, 64))
    try:
        assert worker.ask(small)["rows"][0]["gpus"] == 2
        with ThreadPoolExecutor(1) as thread:
            found = thread.submit(worker.ask, large)
            time.sleep(0.2)
            worker.kill()
            assert found.result(20) == {"error": GONE}
        assert worker.ask(small)["rows"][0]["gpus"] == 2
    finally:
        worker.end()
