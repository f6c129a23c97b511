"""The run folder and the rows of its tables."""

from __future__ import annotations

import json
import math
import resource
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gcnsim.core.errors import FileError
from gcnsim.graph import Graph, build_csr
from gcnsim.timeline import OpKind
from runtime.record import IterationRow, LossLog, Recorder, RunFolder, RunRecord, read_run
from runtime.record.run_folder import read_iterations, write_iterations

ROWS = [IterationRow(t, 0.1, 1.0 - t / 4, None, 0.5, 22, None, 0.01) for t in range(2)]


def ring(nodes: int) -> Graph:
    return build_csr(np.arange(nodes), (np.arange(nodes) + 1) % nodes, nodes, "ring")


@pytest.fixture
def folder(tmp_path: Path, record: RunRecord) -> Path:
    """A finished run with all its files."""
    recorder = Recorder(1)
    recorder.add(OpKind.STEP, "compute", 1, 5, 9)
    run = RunFolder(tmp_path / "a" / "run")
    run.write_record(record)
    run.write_iterations(ROWS)
    run.write_timeline(recorder.timeline(0), {"seed": "3"})
    run.write_norms(0, np.ones(5, np.float32), ring(5).content_hash())
    return run.path


def test_a_run_comes_back_as_it_was(folder: Path, record: RunRecord) -> None:
    run = read_run(folder)
    assert run.record == record
    assert run.iterations == tuple(ROWS)
    assert [(span.kind, span.worker, span.iteration) for span in run.timeline()] == [(OpKind.STEP, 1, 1)]
    assert run.norms(0, ring(5)).tolist() == [1.0] * 5
    names = {path.name for path in folder.iterdir()}
    assert names == {"run.json", "iterations.csv", "timeline.parquet", "norms-0.bin"}


def test_an_unfinished_run_may_have_fewer_rows_and_no_summary(folder: Path, record: RunRecord) -> None:
    RunFolder(folder).write_record(replace(record, finished=False, summary=None, iterations=9))
    run = read_run(folder)
    assert (run.record.finished, run.record.summary, len(run.iterations)) == (False, None, 2)


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("precious", encoding="utf-8")
    with pytest.raises(FileError, match="holds files but no run; allowed: a new or empty folder, or that of a run"):
        RunFolder(tmp_path)
    (tmp_path / "run.json").write_text('{"schema": "of another tool"}', encoding="utf-8")
    with pytest.raises(FileError, match="holds files but no run"):
        RunFolder(tmp_path)
    with pytest.raises(FileError, match="is a file"):
        RunFolder(tmp_path / "thesis.txt")
    with pytest.raises(FileError, match="cannot be used as a folder: Not a directory"):
        RunFolder(tmp_path / "thesis.txt" / "run")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run.json", "thesis.txt"]


def test_an_earlier_run_is_replaced_file_by_file(folder: Path, record: RunRecord) -> None:
    run = RunFolder(folder)
    assert read_run(folder).record.seed == 3
    run.write_record(replace(record, seed=4, norms=()))
    assert (read_run(folder).record.seed, read_run(folder).record.norms) == (4, ())
    assert (folder / "norms-0.bin").exists()


def test_a_resumed_run_finds_the_rows_before_it(folder: Path, tmp_path: Path) -> None:
    assert RunFolder(folder).earlier_iterations(1) == (ROWS[0],)
    assert RunFolder(tmp_path / "new").earlier_iterations(1) == ()


def test_facts_that_break_the_schema_are_our_fault(tmp_path: Path, record: RunRecord) -> None:
    run = RunFolder(tmp_path / "run")
    for broken in (replace(record, inner=(1, 2, 3)), replace(record, seed=-1), replace(record, hit_rate=float("nan"))):
        with pytest.raises(ValueError, match=r"inner has 3 entries|seed is -1|not JSON compliant"):
            run.write_record(broken)
    assert list(run.path.iterdir()) == []


Change = Callable[[dict[str, Any]], object]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda run: run.pop("partition"), "has no partition"),
        (lambda run: run["graph"].pop("hash"), "has no graph.hash"),
        (lambda run: run.update(colour=1), "colour is unknown"),
        (lambda run: run.update(schema="gcnsim.run/2"), 'schema is "gcnsim.run/2", wanted "gcnsim.run/1"'),
        (lambda run: run.update(workers=0), "workers is 0, wanted 1 or more"),
        (lambda run: run.update(workers=3), "inner has 2 entries for 3 workers"),
        (lambda run: run["bytes"].update(ids=[[0, 0], [0]]), r"bytes.ids\[1\] has 1 entries for 2 workers"),
        (lambda run: run["bytes"]["rows"].__setitem__(0, 7), r"bytes.rows\[0\] is 7, wanted array"),
        (lambda run: run.update(finished=1), "finished is 1, wanted boolean"),
        (lambda run: run["accuracy"].update(val=1.5), "accuracy.val is 1.5, wanted 1 or less"),
        (lambda run: run["summary"].update(workers=[]), "summary.workers has 0 items, wanted 1 or more"),
        (lambda run: run.update(iterations=5), "iterations.csv: ends at iteration 1, run.json says 5 are done"),
    ],
)
def test_a_damaged_record_is_refused_with_the_place(folder: Path, change: Change, message: str) -> None:
    document = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    change(document)
    (folder / "run.json").write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(FileError, match=message) as caught:
        read_run(folder)
    assert str(caught.value).startswith(str(folder))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not a JSON document"),
        (b"[1]", r"the document is \[1\], wanted object"),
        (b'{"seed": NaN}', "seed is nan; allowed: finite numbers up to"),
        (b"\xff", "not UTF-8 text"),
        (b"[" * 100_000, "not a JSON document"),
        (b"{}", "has no schema"),
    ],
)
def test_what_is_no_record_is_refused(folder: Path, content: bytes, message: str) -> None:
    (folder / "run.json").write_bytes(content)
    with pytest.raises(FileError, match=rf"run.json: {message}"):
        read_run(folder)


@pytest.mark.parametrize("name", ["run.json", "iterations.csv"])
def test_a_missing_file_is_named(folder: Path, name: str) -> None:
    (folder / name).unlink()
    with pytest.raises(FileError, match=rf"{name}: cannot be read: No such file"):
        read_run(folder)


TABLE_ROWS = (
    IterationRow(4, 0.1, 0.1 + 0.2, None, None, 12345678901234, None, None),
    IterationRow(5, 1e-3, 1 / 3, 0.5, 0.25, 0, 0.125, 1e-9),
    IterationRow(6, 1e-3, None, None, None, 0, None, 0.0),
)


def test_rows_come_back_as_they_were(tmp_path: Path) -> None:
    write_iterations(tmp_path / "i.csv", TABLE_ROWS)
    assert read_iterations(tmp_path / "i.csv") == TABLE_ROWS
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
    write_iterations(tmp_path / "i.csv", [replace(TABLE_ROWS[0], **change)])
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
    write_iterations(path, TABLE_ROWS)
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
