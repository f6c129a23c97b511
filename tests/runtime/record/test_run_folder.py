from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gcnsim.core.errors import FileError
from gcnsim.graph import Graph, build_csr
from gcnsim.timeline import OpKind
from runtime.record import IterationRow, Recorder, RunFolder, RunRecord, read_run

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
