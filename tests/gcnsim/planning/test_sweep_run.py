"""A sweep from its question to its results: resumed, killed, by several executors, and equal to what-if."""

from __future__ import annotations

import gc
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import gcnsim
from gcnsim.core.errors import GcnsimError
from gcnsim.core.processes import parallel_stream
from gcnsim.planning.sweep_folder import Folder
from gcnsim.planning.sweep_points import points_of
from gcnsim.planning.sweep_question import read_question
from gcnsim.planning.sweep_run import run
from gcnsim.planning.sweep_work import DONE, LOST, REFUSED, TOO_LARGE, Cores, answer
from gcnsim.report.result import row_of_record
from gcnsim.results import OF_SETTING
from gcnsim.scenario import Scenario

AXES = {"cluster.bandwidth": "5Gbps,10Gbps", "method.name": "psc-gcn,pipegcn", "method.tau": "0,1", "run.seed": "0..2"}
SMALL = ["cluster.gpus=2", "cluster.gpus_per_server=1", "run.iterations=4"]


class Counted:
    """Answers in this process and keeps what it was asked; `stops` after so many chunks."""

    def __init__(self, stops: int | None = None, lost: Sequence[int] = ()) -> None:
        self.asked: list[int] = []
        self.stops, self.lost = stops, lost

    def answers(self, chunks: Sequence[str]) -> Iterator[tuple[int, str | None]]:
        # The last first: no result depends on the order.
        for place in reversed(range(len(chunks))):
            if self.stops is not None and place < len(chunks) - self.stops:
                raise KeyboardInterrupt
            self.asked += [index for index, _ in json.loads(chunks[place])["points"]]
            yield place, None if place in self.lost else answer(chunks[place])


def small(**more: Any) -> Any:
    return read_question(more, SMALL, AXES)


def bytes_of(folder: Folder) -> str:
    return hashlib.sha256(folder.results.read_bytes()).hexdigest()


def test_a_point_is_the_row_of_what_if(tmp_path: Path) -> None:
    axes = {
        "cluster.gpus": "2,6",
        "cluster.bandwidth": "2Gbps,10Gbps,40Gbps",
        "method.name": "full-graph,pipegcn,psc-gcn,bns-gcn",
        "method.tau": "0,2",
        "method.epsilon": "0.1,1",
    }
    found = gcnsim.sweep(axes=axes, out=tmp_path / "out", processes=2)
    answered = gcnsim.what_if(
        gpus=[2, 6],
        bandwidth=["2Gbps", "10Gbps", "40Gbps"],
        method=axes["method.name"].split(","),
        tau=[0, 2],
        epsilon=[0.1, 1.0],
    )
    points = {_setting(row): row for row in found.rows()}
    assert len(points) == len(answered.rows) == 42
    for row in answered.rows:
        point = points[_setting(row)]
        assert {name: getattr(point, name) for name in OF_SETTING} == {name: getattr(row, name) for name in OF_SETTING}


def _setting(row: Any) -> Any:
    return row.gpus, row.bandwidth_bytes_per_s, row.method, row.tau, row.epsilon


def test_what_is_done_is_not_asked_again(tmp_path: Path) -> None:
    question, whole, first, rest = small(), Counted(), Counted(stops=3), Counted()
    expected = run(question, tmp_path / "whole", lambda: whole)
    with pytest.raises(KeyboardInterrupt):
        run(question, tmp_path / "out", lambda: first)
    assert not (tmp_path / "out" / "results.parquet").exists()
    found = run(question, tmp_path / "out", lambda: rest)
    assert 0 < len(first.asked) < found.points
    assert sorted([*first.asked, *rest.asked]) == sorted(whole.asked) == list(range(found.points))
    assert bytes_of(found) == bytes_of(expected)
    assert not (tmp_path / "out" / "parts").exists()
    again = Counted()
    assert bytes_of(run(question, tmp_path / "out", lambda: again)) == bytes_of(expected)
    assert again.asked == []


def test_a_point_that_is_answered_leaves_no_garbage(tmp_path: Path) -> None:
    """What points keep alive until garbage is looked for adds up to gigabytes over ten thousand of them."""
    left: list[int] = []

    class Watched(Counted):
        def answers(self, chunks: Sequence[str]) -> Iterator[tuple[int, str | None]]:
            answer(chunks[0])  # what is kept for all that follow
            gc.collect()
            gc.freeze()  # what there is beforehand is not looked through each time
            gc.disable()
            try:
                for place, text in super().answers(chunks):
                    left.append(gc.collect())
                    yield place, text
            finally:
                gc.enable()
                gc.unfreeze()

    run(small(), tmp_path / "out", Watched)
    assert len(left) >= 4
    assert max(left) < 10


def test_the_number_of_processes_changes_no_byte(tmp_path: Path) -> None:
    one = run(small(), tmp_path / "one", lambda: Cores(1))
    two = run(small(), tmp_path / "two", lambda: Cores(2))
    assert bytes_of(one) == bytes_of(two)


def test_a_sweep_that_is_killed_goes_on(tmp_path: Path) -> None:
    out = tmp_path / "out"
    question = tmp_path / "question.yaml"
    axes = AXES | {"run.seed": "0..5"}
    question.write_text(f"schema: gcnsim.sweep/1\naxes: {json.dumps(axes)}\n", encoding="utf-8")
    overrides = [word for text in SMALL for word in ("--set", text)]
    command = [sys.executable, "-m", "gcnsim", "sweep", str(question), "--out", str(out), *overrides]
    environment = os.environ | {"GCNSIM_COMPILE": "no"}
    before = 0
    for kill in range(2):
        with subprocess.Popen([*command, "--processes", "2"], env=environment, start_new_session=True) as process:
            while process.poll() is None and _parts(out) < before + 1 + kill:
                time.sleep(0.002)
            process.send_signal(signal.SIGKILL)
        # Its processes end with it, and write nothing.
        before = _parts(out)
    assert before > 0
    assert not (out / "results.parquet").exists()
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert "done    36" in done.stdout
    whole = run(read_question({}, SMALL, axes), tmp_path / "whole", lambda: Cores(1))
    assert hashlib.sha256((out / "results.parquet").read_bytes()).hexdigest() == bytes_of(whole)


def _parts(out: Path) -> int:
    return len(list((out / "parts").glob("*.parquet")))


def test_lost_points_are_listed_and_asked_again_next_time(tmp_path: Path) -> None:
    lost, rest, whole = Counted(lost=[1]), Counted(), Counted()
    folder = run(small(), tmp_path / "out", lambda: lost)
    states = folder.table()["state"].to_pylist()
    assert states.count(LOST) > 0
    assert states.count(LOST) + states.count(DONE) == folder.points
    assert bytes_of(run(small(), tmp_path / "out", lambda: rest)) == bytes_of(
        run(small(), tmp_path / "w", lambda: whole)
    )
    assert len(rest.asked) == states.count(LOST)


def test_an_item_whose_process_ends_is_retried_then_given_up(tmp_path: Path) -> None:
    def work(item: int) -> int:
        mark = tmp_path / str(item)
        if item == 3 or (item == 5 and not mark.exists()):
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return item * item

    found = dict(parallel_stream(work, range(12), 2, 3))
    assert found == {item: None if item == 3 else item * item for item in range(12)}


def test_what_the_machine_does_not_allow_is_a_row_that_says_so(tmp_path: Path) -> None:
    axes = {
        "method.name": "pipegcn,psc-gcn",
        "workload.model": "gcn,gat",
        "cluster.gpus": "2",
        "workload.hidden": "64,400000",
    }
    sweep = gcnsim.sweep({"constraints": ["fits"]}, axes=axes, out=tmp_path / "out", processes=1)
    rows = sweep.to_arrow().to_pylist()
    assert {row["state"] for row in rows} >= {DONE, TOO_LARGE}
    assert all(row["fits"] is not False for row in rows if row["state"] == DONE)
    assert all(row["iteration_s"] is None and row["reason"] for row in rows if row["state"] != DONE)
    content = sweep.status()
    assert content["points"] == len(rows) == sum(content[state] for state in (DONE, REFUSED, TOO_LARGE))


def test_without_an_interval_the_rest_is_the_same(tmp_path: Path) -> None:
    full = run(small(), tmp_path / "full", lambda: Cores(2)).table().to_pylist()
    plain = run(small(interval="none"), tmp_path / "none", lambda: Cores(2)).table().to_pylist()
    ends = ("iteration_s_low", "iteration_s_high")
    assert all(row[end] is None for row in plain for end in ends)
    assert [row | dict.fromkeys(ends) for row in full] == plain
    assert row_of_record(plain[0]).iteration_s_low is None


def test_the_file_says_what_it_answers(tmp_path: Path) -> None:
    folder = run(small(), tmp_path / "out", lambda: Cores(1))
    about = {key.decode(): value.decode() for key, value in pq.read_schema(folder.results).metadata.items()}
    assert about["question_hash"] == small().hash
    assert json.loads(about["versions"])["gcnsim"] == gcnsim.__version__
    assert read_question(json.loads(about["question"])).hash == small().hash
    ids = [point.id for point in points_of(small())]
    assert folder.table()["id"].to_pylist() == ids
    assert gcnsim.open_sweep(tmp_path / "out").dataset().count_rows() == len(ids)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"versions": {"gcnsim": "0.0"}}, "gcnsim "),
        ({"files": {"no-such-file": "00"}}, "no-such-file: cannot be read"),
    ],
)
def test_a_worker_that_would_answer_otherwise_is_refused(tmp_path: Path, change: dict[str, Any], says: str) -> None:
    class Other(Counted):
        def answers(self, chunks: Sequence[str]) -> Iterator[tuple[int, str | None]]:
            for index, text in enumerate(chunks):
                yield index, answer(json.dumps(json.loads(text) | change))

    with pytest.raises(GcnsimError, match=f"--executor: {says}"):
        run(small(), tmp_path / "out", Other)


def test_a_folder_of_another_question_is_refused(tmp_path: Path) -> None:
    run(small(), tmp_path / "out", lambda: Cores(1))
    other = read_question({}, SMALL, AXES | {"method.tau": "0,2"})
    with pytest.raises(GcnsimError, match="holds the results of another question"):
        run(other, tmp_path / "out", lambda: Cores(1))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").touch()
    with pytest.raises(GcnsimError, match="is not a folder of a sweep"):
        run(other, tmp_path / "mine", lambda: Cores(1))
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["file"]
    manifest = tmp_path / "out" / "sweep.json"
    content = json.loads(manifest.read_text(encoding="utf-8"))
    manifest.write_text(json.dumps(content | {"versions": content["versions"] | {"gcnsim": "0.0"}}), encoding="utf-8")
    with pytest.raises(GcnsimError, match=r"was started with gcnsim 0\.0"):
        run(small(), tmp_path / "out", lambda: Cores(1))


def test_a_scenario_is_that_of_its_values() -> None:
    points = points_of(small())
    assert all(isinstance(point.scenario, Scenario) for point in points)
    assert {point.scenario.cluster.gpus for point in points if point.scenario} == {2}


def _own_graph(path: Path, nodes: int) -> Path:
    path.write_text("".join(f"{node} {(node + 1) % nodes}\n" for node in range(nodes)), encoding="utf-8")
    return path


def test_a_folder_of_a_file_that_has_changed_since_is_refused(tmp_path: Path) -> None:
    graph = _own_graph(tmp_path / "g.txt", 40)
    base = {"workload": {"graph": str(graph)}, "cluster": {"gpus": 2, "gpus_per_server": 1}, "run": {"iterations": 2}}
    question = read_question(
        {"schema": "gcnsim.sweep/1", "base": base, "axes": {"cluster.bandwidth": ["5Gbps", "9Gbps"]}}
    )
    run(question, tmp_path / "out", Counted)
    run(question, tmp_path / "out", Counted)
    _own_graph(graph, 60)
    with pytest.raises(GcnsimError, match=r"was started with other contents of .*g\.txt; allowed: a new folder"):
        run(question, tmp_path / "out", Counted)


def test_a_file_that_is_not_there_leaves_no_folder(tmp_path: Path) -> None:
    base = {"workload": {"graph": str(tmp_path / "none.txt")}, "cluster": {"gpus": 2}}
    question = read_question(
        {"schema": "gcnsim.sweep/1", "base": base, "axes": {"cluster.bandwidth": ["5Gbps", "9Gbps"]}}
    )
    with pytest.raises(GcnsimError, match=r"none\.txt: cannot be read"):
        run(question, tmp_path / "out", Counted)
    assert not (tmp_path / "out").exists()
