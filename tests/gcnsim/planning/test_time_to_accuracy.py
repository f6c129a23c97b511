"""Time to accuracy: iterations from recorded runs, or a plain word that none says."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from jsonschema import validate

import gcnsim
from gcnsim.core.errors import FileError, ScenarioError
from gcnsim.core.schemas import schema_of
from gcnsim.hardware import prices
from gcnsim.planning.time_to_accuracy import Subject, Target
from gcnsim.records.recorded_run import LearningCurve, read_learning_curve
from gcnsim.report.figures.convergence import convergence_of
from gcnsim.scenario import SCHEMA, WorkloadSpec, from_mapping
from gcnsim.simulation.model import Declared, resolve_model
from runtime.options import Options
from tests.gcnsim.evidence.conftest import WriteRun, evaluated, small_graph

RISING = ((10, 0.5), (20, 0.8), (30, 0.91), (40, 0.89))
MODEL = resolve_model(WorkloadSpec(model="gcn", layers=2, hidden=32, features=32, classes=8), Declared())
SUBJECT = Subject("feed", "small", MODEL)

Points = tuple[tuple[int, float], ...]
Reached = tuple[int | None, str]


def curve(
    name: str = "a",
    method: str = "full-graph",
    points: Points = RISING,
    workers: int = 2,
    options: Mapping[str, object] | None = None,
    **knobs: object,
) -> LearningCurve:
    document = Options(norm="layer").asdict() | {"method": method, "knobs": knobs} | dict(options or {})
    return LearningCurve(Path(name), document, workers, (32, 32, 8), {"name": "small", "hash": "feed"}, points)


def reached(target: Target, method: str = "full-graph", subject: Subject = SUBJECT, **knobs: object) -> Reached:
    mapping = {"schema": SCHEMA, "cluster": {"gpus": 2}, "method": {"name": method, **knobs}}
    return target.reached(from_mapping(mapping, "test"), subject)


def test_the_first_time_an_accuracy_is_seen_counts_and_the_step_of_evaluation_is_its_resolution() -> None:
    assert curve().first(0.8) == 20
    assert curve().first(0.9) == 30
    assert curve().first(0.95) is None
    assert reached(Target(0.9, (curve(),))) == (30, "a, to within 10 iterations")
    assert reached(Target(0.9, (curve(points=((1, 0.5), (2, 0.9))),))) == (2, "a")
    assert reached(Target(0.4, (curve(points=((7, 0.5), (14, 0.9))),))) == (7, "a, to within 7 iterations")


def test_several_runs_give_their_median() -> None:
    late, later = ((10, 0.1), (50, 0.9)), ((10, 0.1), (70, 0.9))
    target = Target(0.9, (curve("a"), curve("b", points=late), curve("c", points=later)))
    assert reached(target) == (50, "median of 3 runs, b, to within 40 iterations")


def test_what_most_runs_never_reached_is_not_reached() -> None:
    low = ((10, 0.4), (20, 0.6))
    target = Target(0.9, (curve("a"), curve("b", points=low), curve("c", points=low)))
    assert reached(target) == (None, "not reached: at most 91.0 % in 3 recorded runs")


def test_one_evaluation_at_the_end_does_not_tell_the_iterations_needed() -> None:
    once = curve(points=((200, 0.93),))
    assert reached(Target(0.9, (once,))) == (
        None,
        "iterations needed are not known: evaluated once alone, 93.0 % after 200",
    )
    assert reached(Target(0.9, (once, curve("b")))) == (30, "b, to within 10 iterations")


def test_runs_of_other_methods_or_knobs_say_nothing() -> None:
    target = Target(0.9, (curve("a", "psc-gcn", tau=2, epsilon=0.1, sampler="vr", cache="30%"),))
    assert reached(target, "psc-gcn", tau=2, epsilon=0.1)[0] == 30
    assert reached(target, "psc-gcn", tau=1, epsilon=0.1) == (
        None,
        "no recorded curve for it: tau 2 in the run, 1 asked",
    )
    assert reached(target, "psc-gcn", tau=2, epsilon=0.3)[1].endswith("epsilon 0.1 in the run, 0.3 asked")
    assert reached(target, "pipegcn") == (None, "no recorded run of this method")
    nodes = Target(0.9, (curve("a", "bns-gcn", rate=0.1, boundary_scale="rate"),))
    assert reached(nodes, "bns-gcn", rate=0.1)[0] == 30
    assert reached(nodes, "bns-gcn", rate=0.2)[0] is None


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (curve("a", "bns-gcn", rate=0.1, boundary_scale="ratio"), "boundary_scale ratio in the run, rate asked"),
        (curve("a", "bns-gcn", rate=0.1, workers=4), "workers 4 in the run, 2 asked"),
        (curve("a", "bns-gcn", options={"model": "sage"}, rate=0.1), "model sage in the run, gcn asked"),
        (replace(curve("a", "bns-gcn", rate=0.1), widths=(32, 64, 8)), "hidden 64 in the run, 32 asked"),
        (
            replace(curve("a", "bns-gcn", rate=0.1), graph={"name": "small", "hash": "dead"}),
            "graph small in the run, another of that name asked",
        ),
        (
            replace(curve("a", "bns-gcn", rate=0.1), graph={"name": "big", "hash": "dead"}),
            "graph big in the run, small asked",
        ),
    ],
)
def test_what_differs_is_named_and_no_number_told(made: LearningCurve, words: str) -> None:
    count, why = reached(Target(0.9, (made,)), "bns-gcn", rate=0.1)
    assert count is None
    assert why.startswith("no recorded curve for it: ")
    assert words in why


def test_another_estimator_is_another_curve() -> None:
    made = curve("a", "psc-gcn", tau=2, epsilon=0.1, estimator="self-normalised")
    assert "estimator self-normalised in the run, unbiased asked" in reached(Target(0.9, (made,)), "psc-gcn")[1]


@pytest.mark.parametrize(
    ("ran", "question", "words"),
    [
        ({}, {"dropout": "50%"}, "dropout 0% in the run, 50% asked"),
        ({"dropout": 0.5}, {"dropout": "0%"}, "dropout 50% in the run, 0% asked"),
        (
            {"dropout": 0.5, "dropout_order": "dropout-first"},
            {"dropout": "50%"},
            "dropout_order dropout-first in the run, exchange-first asked",
        ),
        ({"dropout": 0.5}, {"dropout": "50%"}, None),
        ({"dropout": 0.5}, {}, None),
        ({"dropout_order": "dropout-first"}, {"dropout": "0%"}, None),
    ],
)
def test_what_is_dropped_must_be_what_is_asked_where_it_is_asked(
    ran: dict[str, Any], question: dict[str, str], words: str | None
) -> None:
    mapping = {"schema": SCHEMA, "cluster": {"gpus": 2}, "method": {"name": "full-graph"}, "workload": question}
    found = Target(0.9, (curve(options=ran),)).reached(from_mapping(mapping, "test"), SUBJECT)
    expected = (30, "a, to within 10 iterations") if words is None else (None, f"no recorded curve for it: {words}")
    assert found == expected


def test_a_graph_known_by_statistics_has_no_curve() -> None:
    unknown = Subject(None, "yelp", MODEL)
    assert reached(Target(0.9, (curve(),)), subject=unknown) == (
        None,
        "no recorded curve for it: yelp is known by statistics, the run's graph is small",
    )


def test_runs_of_several_recipes_are_not_put_together() -> None:
    target = Target(0.9, (curve("a"), curve("b", options={"lr": 0.003})))
    assert reached(target) == (None, "the runs differ among themselves in lr; give those of one recipe")


def test_full_graph_training_does_not_depend_on_the_number_of_workers() -> None:
    assert reached(Target(0.9, (curve(workers=8),)))[0] == 30
    assert reached(Target(0.9, (curve(method="pipegcn", workers=8),)), "pipegcn")[0] is None


def test_a_curve_is_read_from_a_run_folder(write_run: WriteRun) -> None:
    folder = write_run("a", method="pipegcn")
    with pytest.raises(FileError, match="accuracy was never evaluated"):
        read_learning_curve(folder)
    evaluated(folder, ["", "0.5", "0.75"])
    learning_curve = read_learning_curve(folder)
    assert (learning_curve.options["method"], learning_curve.points, learning_curve.best) == (
        "pipegcn",
        ((2, 0.5), (3, 0.75)),
        0.75,
    )


def _question(tmp_path: Path) -> dict[str, Any]:
    """The graph and model that the runs of `write_run` were trained on, as a question."""
    graph = small_graph()
    np.savez(tmp_path / "small.npz", allow_pickle=False, indptr=graph.indptr, indices=graph.indices)
    widths = ["workload.features=32", "workload.classes=8", "workload.norm=none"]
    return {"graph": str(tmp_path / "small.npz"), "layers": 2, "hidden": 32, "overrides": widths}


def test_what_if_tells_time_and_cost_where_a_run_does(write_run: WriteRun, tmp_path: Path) -> None:
    folder = write_run("a", method="full-graph")
    evaluated(folder, ["0.2", "0.9"])
    question = _question(tmp_path)
    answer = gcnsim.what_if(gpus=2, method=["full-graph", "pipegcn"], target_accuracy=0.9, runs=[folder], **question)
    target = answer.payload["target"]
    first, second = target["rows"]
    row = answer.results[0]
    assert first["iterations"] == 2
    assert first["seconds"] == pytest.approx(2 * row["iteration_s"])
    assert first["seconds_high"] == pytest.approx(2 * row["iteration_s_high"])
    price = min(item.usd_per_gpu_hour for item in prices("t4") if item.pricing == "on-demand")
    assert first["cost"] == pytest.approx(first["seconds"] / 3600 * 2 * price)
    assert (second["iterations"], second["seconds"], second["cost"]) == (None, None, None)
    schema = dict(schema_of("what-if"))
    validate(dict(answer.payload), schema)
    text = str(answer)
    assert "Time to 90 % validation accuracy" in text
    assert "2 iterations (a)" in text
    assert "no recorded run of this method" in text


def test_the_page_draws_accuracy_against_time_and_cost_of_every_method_that_was_run(
    write_run: WriteRun, tmp_path: Path
) -> None:
    runs = [
        write_run("full", method="full-graph"),
        write_run("batches", method="graphsage", knobs={"batch": 100, "fanout": "5,5"}),
    ]
    evaluated(runs[0], ["0.2", "", "0.9"])
    evaluated(runs[1], ["0.3", "0.91"])
    question = _question(tmp_path)
    question["overrides"] = [*question["overrides"], "method.batch=100", "method.fanout=5,5"]
    asked: dict[str, Any] = {"method": ["full-graph", "graphsage", "pipegcn"], "target_accuracy": 0.9, "runs": runs}
    answer = gcnsim.what_if(gpus=2, **asked, **question)
    first, second, third = answer.payload["target"]["rows"]
    assert first["curves"] == [{"run": "full", "iterations": [1, 3], "accuracy": [0.2, 0.9]}]
    assert second["curves"] == [{"run": "batches", "iterations": [1, 2], "accuracy": [0.3, 0.91]}]
    assert "curves" not in third
    schema = dict(schema_of("what-if"))
    validate(dict(answer.payload), schema)
    data = convergence_of(answer.told)
    assert data is not None
    assert [line.name for line in data.lines] == ["full-graph", "graphsage"]
    row = answer.rows[1]
    assert row.cost_per_hour is not None
    assert data.lines[1].seconds == pytest.approx([row.iteration_s, 2 * row.iteration_s])
    assert data.lines[1].price == pytest.approx(row.cost_per_hour / 3600)
    answer.to_html(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert all(name in page for name in ('id="accuracy-time"', 'id="accuracy-cost"'))
    answer = gcnsim.what_if(gpus=2, **asked, **question | {"overrides": question["overrides"][:-2]})
    source = answer.payload["target"]["rows"][1]["source"]
    assert source.endswith("batch 100 in the run, 1024 asked; fanout 5,5 in the run, 10,25 asked")


@pytest.mark.parametrize("accuracy", [0.0, float("nan")])
def test_an_accuracy_is_a_share(accuracy: float) -> None:
    with pytest.raises(ScenarioError, match=r"--target-accuracy: .* a share above 0% and at most 100%"):
        gcnsim.what_if(gpus=2, target_accuracy=accuracy)


def test_runs_alone_are_refused(write_run: WriteRun) -> None:
    with pytest.raises(ScenarioError, match="--runs: only valid with --target-accuracy"):
        gcnsim.what_if(gpus=2, runs=[write_run("a")])


def test_given_iterations_stand_in_where_no_run_tells_and_say_so() -> None:
    answer = gcnsim.what_if(
        gpus=2, method=["full-graph", "pipegcn"], target_accuracy=0.9, iterations_needed={"pipegcn": 500}, processes=1
    )
    vanilla, pipelined = answer.payload["target"]["rows"]
    assert (vanilla["iterations"], vanilla["source"]) == (None, "no recorded run of this method")
    assert (pipelined["iterations"], pipelined["source"]) == (
        500,
        "your figure",
    )
    assert pipelined["seconds"] == 500 * answer.results[1]["iteration_s"]


def test_a_recorded_run_goes_before_a_given_number() -> None:
    target = Target(0.9, (curve(),), {"full-graph": 7})
    assert reached(target)[0] == 30


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"gcn": 5}, "method.name: unknown method 'gcn'"),
        ({"graphsage": 100}, "--iterations-needed: graphsage is not compared; compared: full-graph, "),
        ({"pipegcn": 0}, "--iterations-needed: pipegcn=0 is not allowed"),
        ({"pipegcn": True}, "--iterations-needed: pipegcn=True is not allowed"),
    ],
)
def test_given_iterations_are_of_methods_and_whole(given: dict[str, int], words: str) -> None:
    with pytest.raises(ScenarioError, match=re.escape(words)):
        gcnsim.what_if(gpus=2, target_accuracy=0.9, iterations_needed=given)


def test_iterations_alone_are_a_training() -> None:
    answer = gcnsim.what_if(gpus=2, method=["full-graph", "pipegcn"], iterations_needed=500, processes=1)
    target = answer.payload["target"]
    assert target["accuracy"] is None
    assert [(row["iterations"], row["source"]) for row in target["rows"]] == [(500, "your figure for every method")] * 2
    assert target["rows"][0]["seconds"] == pytest.approx(500 * answer.results[0]["iteration_s"])
    assert "Time until done" in str(answer)
    own = gcnsim.what_if(gpus=2, method=["full-graph", "pipegcn"], iterations_needed={"pipegcn": 9}, processes=1)
    assert [row["iterations"] for row in own.payload["target"]["rows"]] == [None, 9]


def test_the_recommended_setting_has_its_own_time_where_it_is_no_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    answer = gcnsim.what_if(gpus=2, method=["full-graph", "psc-gcn"], iterations_needed=500, processes=1)
    best, done = answer.payload["recommendation"], answer.payload["target"]["recommended"]
    assert best["in_results"] is None
    assert (done["method"], done["tau"], done["epsilon"]) == (best["method"], best["tau"], best["epsilon"])
    assert done["seconds"] == pytest.approx(500 * best["iteration_s"])
    assert done["seconds_low"] < done["seconds"] < done["seconds_high"]
    assert done["cost"] is not None
    text = str(answer)
    assert f"psc-gcn (tau {best['tau']}, eps {best['epsilon']:g}), recommended  " in text
    assert "psc-gcn (tau 2, eps 0.1)  " in text
    one = gcnsim.what_if(gpus=2, method="full-graph", iterations_needed=500, processes=1)
    assert "recommended" not in one.payload["target"]
