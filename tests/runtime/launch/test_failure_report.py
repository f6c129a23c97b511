"""Last words are one line each, left where they are read, and tell causes from consequences."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gcnsim.core.errors import FileError, ScenarioError
from runtime.launch import report_failure, verdict
from runtime.launch.verdict import Failure, describe, is_consequence, keep_room, read_failures


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """An environment in which worker 3 was launched by nobody that listens."""
    for name in ("GCNSIM_FAILURES", "TORCHELASTIC_ERROR_FILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("RANK", "3")
    return monkeypatch


def test_one_line_for_each_error() -> None:
    assert describe(ScenarioError("--lr: no\n  such thing")) == "--lr: no such thing"
    assert describe(RuntimeError("\n a  b\nException raised from here")) == "RuntimeError: a b"
    assert describe(KeyError()) == "KeyError"
    assert len(describe(ValueError("x" * 10_000))) == 600


class DistStoreError(RuntimeError):
    """By its name, what torch raises of its store."""


@pytest.mark.parametrize(
    ("error", "consequence"),
    [
        (ConnectionResetError(104, "reset"), True),
        (TimeoutError("worker 1 did not answer in 60 s"), True),
        (RuntimeError("[pair.cc:534] Connection closed by peer [127.0.0.1]:1"), True),
        (DistStoreError("1/2 clients joined"), True),
        (RuntimeError("size mismatch"), False),
        (ValueError("connection closed"), False),
        (ScenarioError("--timeout: timed out"), False),
    ],
)
def test_only_a_silent_peer_makes_a_consequence(error: Exception, consequence: bool) -> None:
    assert is_consequence(error) is consequence
    outer = RuntimeError("the fetch thread failed")
    outer.__cause__ = error
    assert is_consequence(outer) is consequence


def test_words_to_our_launcher_and_the_first_stand(
    alone: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    alone.setenv("GCNSIM_FAILURES", str(tmp_path))
    report_failure(ScenarioError("--lr: no"))
    report_failure(ValueError("later"))
    (failure,) = read_failures(tmp_path)
    assert failure == Failure(3, "--lr: no", 2, consequence=False, at=failure.at)
    assert capsys.readouterr().err == ""


def test_words_find_room_on_a_full_disk(alone: pytest.MonkeyPatch, tmp_path: Path) -> None:
    keep_room(tmp_path, 4)
    real = verdict._written

    def full(path: Path, text: str) -> bool:
        return not path.with_suffix(".room").exists() and real(path, text)

    alone.setattr(verdict, "_written", full)
    alone.setenv("GCNSIM_FAILURES", str(tmp_path))
    report_failure(FileError("run: cannot be written: No space left on device"))
    (failure,) = read_failures(tmp_path)
    assert (failure.reason, failure.code) == ("run: cannot be written: No space left on device", 2)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0.room", "1.room", "2.room", "3.json"]


def test_words_to_torchrun(alone: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "error.json"
    alone.setenv("TORCHELASTIC_ERROR_FILE", str(file))
    report_failure(FileError("a.npz: is missing"))
    message = json.loads(file.read_text(encoding="utf-8"))["message"]
    assert message["message"] == "a.npz: is missing"
    assert int(message["extraInfo"]["timestamp"]) > 1_700_000_000
    assert capsys.readouterr().err == "runtime.train: worker 3: a.npz: is missing\n"


def test_words_that_cannot_be_written_are_spoken(
    alone: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    alone.setenv("GCNSIM_FAILURES", str(tmp_path / "absent"))
    report_failure(ValueError("no"))
    assert capsys.readouterr().err == "runtime.train: worker 3: ValueError: no\n"
