"""Answers in Python: what-if, options, timelines."""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import gcnsim
from gcnsim.api import question, run_timeline, setting_run, what_if
from gcnsim.api.iterations import compare
from gcnsim.cli import main
from gcnsim.core.errors import FileError, GcnsimError, GraphError, ScenarioError
from gcnsim.methods import COMPARED, methods
from gcnsim.planning.space import Space
from gcnsim.report.figures.timeline import timeline_of_result
from gcnsim.report.page.sections import DrawnTimeline, write_timelines_csv
from gcnsim.scenario import SCHEMA
from gcnsim.scenario.what_if import WhatIf
from tests.gcnsim.evidence.conftest import WriteRun, parts_measured, write_run
from tests.gcnsim.evidence.test_compare import recorded


def test_what_if_in_three_lines_equals_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    answer = gcnsim.what_if(bandwidth="10Gbps", gpus=2, method="psc-gcn")
    assert main(["what-if", "--bandwidth", "10Gbps", "--gpus", "2", "--method", "psc-gcn", "--json"]) == 0
    assert dict(answer.payload) == json.loads(capsys.readouterr().out)
    assert answer.recommendation["iteration_s"] > 0
    assert "Recommendation" in str(answer)


def test_simulate_takes_a_mapping() -> None:
    mapping = {"schema": "gcnsim.scenario/1", "cluster": {"gpus": 2}, "method": {"name": "pipegcn"}}
    simulation = gcnsim.simulate(mapping)
    assert simulation.payload["result"]["method"] == "pipegcn"
    assert simulation.result.metrics.iteration_s == simulation.payload["result"]["iteration_s"]
    assert "pipegcn" in str(simulation)


def test_long_work_tells_how_many_runs_are_done() -> None:
    lines: list[str] = []
    gcnsim.what_if(dataset="reddit", gpus=2, iterations=1, processes=1, progress=lines.append)
    counted = [line for line in lines if re.search(r": \d+ of \d+ runs\b", line)]
    assert re.match("simulating 4 settings and [1-9][0-9]* candidates: 1 of ", counted[0])
    assert any(line.startswith("trying the next step of each knob: ") for line in counted)
    done, total = counted[-1].split(": ")[1].split(" runs")[0].split(" of ")
    assert done == total


@pytest.fixture(scope="module")
def answer() -> gcnsim.Answer:
    return gcnsim.what_if(bandwidth="10Gbps", gpus=2, method="pipegcn", iterations=2)


def test_rows_as_tables_of_other_libraries(answer: gcnsim.Answer, monkeypatch: pytest.MonkeyPatch) -> None:
    table = answer.to_arrow()
    assert table.column_names[:5] == ["dataset", "host", "gpus", "gpus_per_server", "device"]
    assert table.column("iteration_s")[0].as_py() == answer.results[0]["iteration_s"]
    monkeypatch.setitem(sys.modules, "pandas", SimpleNamespace(DataFrame=dict))
    assert answer.to_frame() == table.to_pydict()
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ScenarioError, match="to_frame: needs pandas"):
        answer.to_frame()


def test_an_answer_is_written_to_files(answer: gcnsim.Answer, tmp_path: Path) -> None:
    answer.to_csv(tmp_path / "rows.csv")
    answer.to_timeline(tmp_path / "timeline.json")
    assert (
        (tmp_path / "rows.csv")
        .read_text(encoding="utf-8")
        .startswith("dataset,host,gpus,gpus_per_server,device,bandwidth,")
    )
    assert json.loads((tmp_path / "timeline.json").read_text(encoding="utf-8"))["traceEvents"]


def test_the_curve_ends_at_the_fastest_network_that_may_be_asked_for(tmp_path: Path) -> None:
    fast = gcnsim.what_if(gpus=2, method="pipegcn", bandwidth="1600Gbps")
    assert max(gcnsim.api.bandwidth_curve(fast).series[0].values) == pytest.approx(6400e9 / 8)
    fast.to_html(tmp_path / "fast.html")


def test_a_sparse_matrix_is_a_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    class AskedError(Exception):
        """The question was put together."""

    def requested(space: object, progress: object, processes: int, graph: gcnsim.Graph, *_: object) -> None:
        assert (graph.name, graph.nodes, graph.entries) == ("scipy", 3, 4)
        raise AskedError

    monkeypatch.setattr("gcnsim.api.question._what_if", requested)
    with pytest.raises(AskedError):
        gcnsim.what_if(graph=sp.csr_array(np.array([[0, 1, 0], [1, 0, 1], [0, 0, 0]])), gpus=2)
    with pytest.raises(GraphError, match="'int' is not a graph"):
        gcnsim.what_if(graph=3)


BASE = {"schema": SCHEMA, "cluster": {"gpus": 6, "bandwidth": "15Gbps"}}


def space(*method: str, **knobs: Any) -> Space:
    return question.asked(method=list(method), gpus=6, bandwidth="15Gbps", **knobs)[0]


def test_all_methods_may_leave_out_those_that_nobody_named_or_compares() -> None:
    found = space("all")
    assert set(found.methods) == set(methods())
    assert found.optional == set(methods()) - set(COMPARED)
    assert space("all", "cagnet-1d").optional == found.optional - {"cagnet-1d"}
    assert space("cagnet-1d").optional == frozenset(), "who is named must have a row"


def test_values_are_taken_once_and_in_their_order() -> None:
    found = space("psc-gcn", tau=[2, 0, 2], epsilon=[0.5, 0.1], cache=["30%"])
    assert [(row.method.tau, row.method.epsilon) for row in found.settings()] == [
        (tau, epsilon) for tau in (2, 0) for epsilon in (0.5, 0.1)
    ]
    assert {row.method.cache.fraction for row in found.settings()} == {0.3}
    (machine,) = found.machines
    assert (machine.gpus, machine.device, machine.bandwidth) == (6, "t4", 15e9 / 8)
    several, _ = question.asked(gpus=[1, 2, 2, 3, 2], overrides=["cluster.gpus=6"])
    assert [one.gpus for one in several.machines] == [6, 2, 3], "the first as the scenario has it"


def test_a_knob_that_few_methods_have_takes_several_values_too() -> None:
    own, others = question._own_knobs(["method.batch=500,1000,500", "method.subgraph=5%,10%", "run.seed=3"])
    assert own == {"method.batch": (500, 1000), "method.subgraph": (0.05, 0.1)}
    assert others == ["run.seed=3"]
    assert question._own_knobs(["method.layer_sizes=400,200"])[0] == {"method.layer_sizes": ((400, 200),)}, (
        "one list, not two values"
    )
    with pytest.raises(ScenarioError, match=r"method\.batch: 'x' is not a whole number"):
        question._own_knobs(["method.batch=500,x"])
    found = space("graphsage", batch=[500, 1000])
    assert [row.method.values()["batch"] for row in found.settings()] == [500, 1000]


def test_a_knob_of_a_scenario_stands_for_every_method_that_has_it_as_in_a_sweep(tmp_path: Path) -> None:
    base = {"cluster": {"gpus": 2}, "method": {"name": "graphsage", "batch": 512}}
    found, _ = question.asked(scenario={"schema": SCHEMA, **base}, method=["graphsage", "dgl", "pagraph"], cache="10%")
    assert [row.method.values()["batch"] for row in found.settings()] == [512] * 3
    asked = gcnsim.api.ask(axes={"method.name": "graphsage,dgl"}, question={"base": base})
    points = gcnsim.api.plan_sweep(asked).points
    assert [point.scenario.method for point in points if point.scenario] == [row.method for row in found.settings()[:2]]


def test_a_knob_that_is_set_replaces_that_of_the_scenario() -> None:
    base = {"schema": SCHEMA, "cluster": {"gpus": 2}, "method": {"name": "bns-gcn", "rate": 0.5, "sample": "nodes"}}
    found, _ = question.asked(scenario=base, method="bns-gcn", overrides=["method.sample=edges"])
    assert [row.method.values() for row in found.settings()] == [{"rate": 0.5, "sample": "edges"}]


@pytest.mark.parametrize(
    ("knobs", "message"),
    [
        ({"tau": [True]}, "method.tau: True is not a whole number"),
        ({"tau": [1.5]}, "method.tau: 1.5 is not a whole number"),
        ({"epsilon": ["x"]}, "method.epsilon: 'x' is not a number"),
        ({"cache": [30]}, r"method.cache: 30 has no unit; write 30% or 0.3"),
        ({"cache": [True]}, r"method.cache: True has no unit"),
    ],
)
def test_values_of_another_kind_are_refused(knobs: dict[str, list[Any]], message: str) -> None:
    with pytest.raises(GcnsimError, match=message):
        space("psc-gcn", **knobs)


@pytest.mark.parametrize("least", [0, -0.1, 1.01, True, "x"])
def test_a_least_rate_is_above_0_and_at_most_1(least: Any) -> None:
    with pytest.raises(ScenarioError, match="--min-sampling-rate"):
        question._rule(None, WhatIf(min_sampling_rate=least))
    assert question._rule(None, WhatIf(min_sampling_rate=1)).min_sampling_rate == 1.0


@pytest.mark.parametrize("most", [-1, 1.5, True, "2"])
def test_a_most_staleness_is_a_whole_number_of_iterations(most: Any) -> None:
    with pytest.raises(ScenarioError, match=f"--max-staleness: {most!r} is not allowed; a whole number"):
        question._rule(None, WhatIf(max_staleness=most))
    assert question._rule(None, WhatIf(max_staleness=0)).max_staleness == 0


def test_who_may_be_recommended() -> None:
    usual, named = question._rule(None, WhatIf()), question._rule(["all", "pipegcn"], WhatIf())
    assert (usual.methods, usual.named) == (COMPARED, False)
    assert (named.methods, named.named) == (("pipegcn",), True)
    assert set(question._rule(["pipegcn"], WhatIf(allow="all")).methods) == set(methods())


@pytest.mark.parametrize(
    ("question", "message"),
    [
        ({"target_accuracy": 1.01}, "--target-accuracy: 1.01"),
        ({"target_accuracy": 0}, "--target-accuracy: 0"),
        ({"iterations_needed": {"psc-gcn": 0}}, "--iterations-needed: psc-gcn=0"),
        ({"iterations_needed": -1}, "--iterations-needed: -1"),
        ({"mtbf": "90d"}, "--mtbf: applies to a whole training; give --iterations-needed, or --target-accuracy"),
        ({"runs": ["a"]}, "--runs: only valid with --target-accuracy"),
        ({"gpus": []}, "an empty list of values"),
    ],
)
def test_what_a_question_cannot_ask(question: dict[str, Any], message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        gcnsim.what_if(**question)


def test_names_are_of_a_profilers_trace(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="--names: neither A nor B is a profiler's trace"):
        compare(BASE, BASE, names=tmp_path / "names.yaml")
    (tmp_path / "result.json").write_text("{}")
    with pytest.raises(ScenarioError, match="--names: neither"):
        compare(tmp_path, BASE, names=tmp_path / "names.yaml")


@pytest.mark.parametrize(("source", "message"), [(" ", "is not a path"), ("no/such", "no/such: does not exist")])
def test_sides_that_are_not_there_are_refused(source: str, message: str) -> None:
    with pytest.raises(FileError, match=message):
        compare(source, BASE)


__all__ = ["write_run"]


def test_a_setting_is_the_run_that_what_if_writes() -> None:
    options: dict[str, Any] = {"gpus": 2, "bandwidth": "15Gbps", "method": "psc-gcn", "tau": 1}
    (row,) = what_if(**options).rows
    run = setting_run(**options)
    assert run.result.metrics.iteration_s == run.row.iteration_s == row.iteration_s
    assert run.row.iteration_s_low is not None
    with pytest.raises(ScenarioError, match="2 settings are asked for"):
        setting_run(gpus=2, method=["psc-gcn", "pipegcn"])


def test_measured_and_predicted_have_the_same_tracks(
    write_run: WriteRun, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = recorded(write_run, "run")
    trace, page = tmp_path / "both.json", tmp_path / "both.html"
    words = [f"--out={trace}", f"--html={page}"]
    words += [f"--measured-compute={path}" for path in parts_measured(tmp_path, folder)]
    assert main(["timeline", str(folder), *words]) == 0
    measured, predicted = capsys.readouterr().out.splitlines()
    assert measured == "measured   100 ms an iteration; steady: iteration 9"
    assert predicted.startswith("predicted  ")
    events = json.loads(trace.read_text())["traceEvents"]
    named = {event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"}
    tracks = [
        {e["args"]["name"] for e in events if e["name"] == "thread_name" and named[e["pid"]].startswith(side)}
        for side in ("measured", "predicted")
    ]
    assert tracks[0] == {"iterations", "compute", "send", "receive", "all-reduce"}
    assert tracks[0] <= tracks[1]
    assert "<h1>full-graph on small, 2 workers, measured</h1>" in page.read_text()


def test_a_run_on_cores_is_shown_and_what_would_predict_it_is_named(
    write_run: WriteRun, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = recorded(write_run, "run")
    trace, page = tmp_path / "run.json", tmp_path / "run.html"
    assert main(["timeline", str(folder), f"--out={trace}", f"--html={page}"]) == 0
    printed = capsys.readouterr()
    assert printed.out == "measured   100 ms an iteration; steady: iteration 9\n"
    assert (
        f"measure it: python -m runtime.measure --runs {folder} --out measured, then --measured-compute" in printed.err
    )
    assert json.loads(trace.read_text())["otherData"]["title"] == "full-graph on small, 2 workers, measured"
    assert "predicted" not in page.read_text()


def test_measure_now_measures_what_the_runs_trained_beside_the_first(
    write_run: WriteRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = recorded(write_run, "run")
    (made,) = parts_measured(tmp_path, folder)
    beside = folder.parent / "measured"

    def measure(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        assert command[1:] == ["-m", "runtime.measure", "--runs", str(folder), "--out", str(beside)]
        beside.mkdir(exist_ok=True)
        made.rename(beside / made.name)
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(subprocess, "run", measure)
    assert main(["timeline", str(folder), "--measure-now"]) == 0
    assert capsys.readouterr().out.splitlines()[1].startswith("predicted  ")
    monkeypatch.setattr(subprocess, "run", lambda command, **_: subprocess.CompletedProcess(command, 2))
    assert main(["validate", str(folder), "--measure-now"]) == 2
    assert "--measure-now: python -m runtime.measure ended with exit code 2" in capsys.readouterr().err


def test_what_cannot_be_a_timeline_is_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words, text in (
        ([str(tmp_path)], "run.json: cannot be read"),
        ([str(tmp_path), "--timeline-detail"], "--timeline-detail: describes a file"),
    ):
        assert main(["timeline", *words]) == 2
        line = capsys.readouterr().err
        assert text in line
        assert line.count("\n") == 1


def test_blocks_are_lines_of_a_table(write_run: WriteRun, tmp_path: Path) -> None:
    folder = recorded(write_run, "run")
    found = run_timeline(folder, measured_compute=parts_measured(tmp_path, folder))
    measured, predicted = found.data().values()
    assert measured.unit == predicted.unit
    write_timelines_csv(
        tmp_path / "out.csv", [DrawnTimeline("measured", measured), DrawnTimeline("predicted", predicted)]
    )
    with open(tmp_path / "out.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(measured.blocks) + len(predicted.blocks)
    first = measured.blocks[0]
    assert rows[0]["row"] == measured.rows[first.row]
    assert float(rows[0]["start_s"]) == first.start_s
    assert found.predicted is not None
    assert timeline_of_result(found.predicted).blocks == predicted.blocks


def test_rows_of_mini_batches_say_batch_and_fan_out_and_both_can_be_varied() -> None:
    plain = gcnsim.what_if(dataset="ogbn-products", gpus=2, method=["dgl", "distdgl"], gpus_per_server=2)
    assert {row.setting for row in plain.rows} == {"batch 1024, fanout 5,10,15"}
    varied = gcnsim.what_if(
        dataset="ogbn-products", gpus=2, method="dgl", batch=[512, 1024], fanout=["5,10,15", "10,10,10"]
    )
    assert sorted(row.setting for row in varied.rows) == [
        "batch 1024, fanout 10,10,10",
        "batch 1024, fanout 5,10,15",
        "batch 512, fanout 10,10,10",
        "batch 512, fanout 5,10,15",
    ]


def test_a_knob_that_is_set_belongs_to_the_method_that_is_named() -> None:
    found = gcnsim.recommend(
        dataset="ogbn-products", device="t4", gpus=2, method="dgl", overrides=["method.fanout=3,3,3"]
    )
    assert "fanout 3,3,3" in found.told.choice.row.setting
