from __future__ import annotations

import math
import resource
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gcnsim.core.errors import FileError
from runtime.record import IterationRow, LossLog
from runtime.record.run_folder import read_iterations, write_iterations

ROWS = (
    IterationRow(4, 0.1, 0.1 + 0.2, None, None, 12345678901234, None, None),
    IterationRow(5, 1e-3, 1 / 3, 0.5, 0.25, 0, 0.125, 1e-9),
    IterationRow(6, 1e-3, None, None, None, 0, None, 0.0),
)


def test_rows_come_back_as_they_were(tmp_path: Path) -> None:
    write_iterations(tmp_path / "i.csv", ROWS)
    assert read_iterations(tmp_path / "i.csv") == ROWS
    lines = (tmp_path / "i.csv").read_text(encoding="utf-8").splitlines()
    assert lines[0] == "iteration,seconds,loss,train_accuracy,val_accuracy,bytes_sent,hit_rate,wait_s"
    assert lines[1] == "4,0.1,0.30000000000000004,,,12345678901234,,"


def test_no_rows(tmp_path: Path) -> None:
    write_iterations(tmp_path / "i.csv", ())
    assert read_iterations(tmp_path / "i.csv") == ()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"loss": math.nan}, "loss: nan is not allowed; a number of at least -1e+30 and at most 1e+30"),
        ({"loss": math.inf}, "loss: inf is not allowed"),
        ({"seconds": -1.0}, "seconds: -1 is not allowed; a number above 0"),
        ({"bytes_sent": -3}, "bytes_sent: -3 is not allowed; a whole number of at least 0"),
        ({"val_accuracy": 7.5}, "val_accuracy: 7.5 is not allowed; a number of at least 0 and at most 1"),
        ({"hit_rate": math.nan}, "hit_rate: nan is not allowed"),
        ({"iteration": 10**400}, "iteration: a number of more than 300 digits is not allowed"),
    ],
)
def test_numbers_that_no_iteration_has_are_refused(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    write_iterations(tmp_path / "i.csv", [replace(ROWS[0], **change)])
    with pytest.raises(FileError) as caught:
        read_iterations(tmp_path / "i.csv")
    assert str(caught.value).startswith(f"{tmp_path / 'i.csv'}:2: {message}")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("iteration,", "epoch,", "i.csv: starts with 'epoch,seconds"),
        ("0.001", "x", r"i.csv:3: '5,x,.*' is not a row of iteration,seconds"),
        (",0.25", "", "i.csv:3: .* is not a row"),
        ("0.001", "", "i.csv:3: .* is not a row"),
        ("\n5,", "\n7,", "i.csv:3: iteration 7 follows 4"),
        ("\n5,", "\n5.5,", "i.csv:3: .* is not a row"),
    ],
)
def test_damaged_rows_are_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = tmp_path / "i.csv"
    write_iterations(path, ROWS)
    path.write_text(path.read_text(encoding="utf-8").replace(old, new, 1), encoding="utf-8")
    with pytest.raises(FileError, match=message):
        read_iterations(path)


def test_missing_and_binary_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="none: cannot be read: No such file"):
        read_iterations(tmp_path / "none")
    (tmp_path / "b").write_bytes(b"\xff\xfe\n")
    with pytest.raises(FileError, match="b: cannot be read: not UTF-8"):
        read_iterations(tmp_path / "b")


def test_each_loss_is_on_disk_at_once_with_all_its_digits(tmp_path: Path) -> None:
    log = LossLog(tmp_path / "loss.csv")
    for t in range(3):
        log.add(t, 1 / (t + 3))
        lines = (tmp_path / "loss.csv").read_text(encoding="utf-8").splitlines()
        assert lines[0] == "iteration,loss"
        assert [float(line.split(",")[1]) for line in lines[1:]] == [1 / (i + 3) for i in range(t + 1)]
    log.close()


def test_a_resumed_run_keeps_what_came_before_it(tmp_path: Path) -> None:
    path = tmp_path / "loss.csv"
    path.write_text("iteration,loss\n0,2.50\n1,2.0\n2,1.5\n3,1.", encoding="utf-8")
    log = LossLog(path, resume_from=2)
    log.add(2, 1.25)
    log.close()
    assert path.read_text(encoding="utf-8") == "iteration,loss\n0,2.50\n1,2.0\n2,1.25\n"


def test_a_new_run_starts_a_new_log_and_a_resumed_one_may_lack_its_old(tmp_path: Path) -> None:
    path = tmp_path / "loss.csv"
    path.write_text("anything", encoding="utf-8")
    LossLog(path).close()
    assert path.read_text(encoding="utf-8") == "iteration,loss\n"
    LossLog(tmp_path / "new.csv", resume_from=9).close()
    assert (tmp_path / "new.csv").read_text(encoding="utf-8") == "iteration,loss\n"


def test_what_is_no_loss_log_is_not_resumed(tmp_path: Path) -> None:
    path = tmp_path / "loss.csv"
    path.write_text("my notes\n", encoding="utf-8")
    with pytest.raises(FileError, match=r"loss.csv: starts with 'my notes', wanted iteration,loss"):
        LossLog(path, resume_from=1)
    path.write_text("iteration,loss\nx,1\n", encoding="utf-8")
    with pytest.raises(FileError, match=r"loss.csv:2: 'x,1' is not a row of iteration,loss"):
        LossLog(path, resume_from=1)
    path.write_text(f"iteration,loss\n{'9' * 5000},1\n", encoding="utf-8")
    # Of a message that long the middle is left out.
    with pytest.raises(FileError, match=r"loss.csv:2: '9+ \.\.\. 9+,1' is not a row of iteration,loss"):
        LossLog(path, resume_from=1)


def test_a_log_that_cannot_be_written_is_the_users_error(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="cannot be written: No such file"):
        LossLog(tmp_path / "none" / "loss.csv")
    with pytest.raises(FileError, match="is a directory"):
        LossLog(tmp_path)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_full_disk_is_told_in_one_line() -> None:
    with pytest.raises(FileError, match=r"/dev/full: cannot be written: No space left"):
        LossLog("/dev/full").add(0, 1.0)


def test_a_disk_that_fills_up_is_said_once_and_closing_says_nothing(tmp_path: Path) -> None:
    log = LossLog(tmp_path / "losses.csv")
    log.add(0, 1.0)
    held = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    # A limit of the file's size stands for the disk's: part of the line fits.
    resource.setrlimit(resource.RLIMIT_FSIZE, ((tmp_path / "losses.csv").stat().st_size + 3, held[1]))
    try:
        with pytest.raises(FileError, match=r"losses\.csv: cannot be written: File too large"):
            log.add(1, 2.0)
        log.close()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, held)
        signal.signal(signal.SIGXFSZ, before)
    assert (tmp_path / "losses.csv").read_text() == "iteration,loss\n0,1.0\n1,2"
    LossLog(tmp_path / "losses.csv", resume_from=1).close()
    assert (tmp_path / "losses.csv").read_text() == "iteration,loss\n0,1.0\n"
