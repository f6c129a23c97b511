"""Time to accuracy: iterations from recorded runs, or a plain word that none says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from jsonschema import validate

import gcnsim
from gcnsim.cli.what_if import command
from gcnsim.errors import FileError, ScenarioError
from gcnsim.planning import Target
from gcnsim.profile import prices
from gcnsim.record import LearningCurve, read_learning_curve
from gcnsim.scenario import SCHEMA, from_mapping
from tests.gcnsim.validation.conftest import WriteRun

RISING = ((10, 0.5), (20, 0.8), (30, 0.91), (40, 0.89))


Points = tuple[tuple[int, float], ...]
Reached = tuple[int | None, str]


def curve(name: str = "a", method: str = "full-graph", points: Points = RISING, **knobs: object) -> LearningCurve:
    return LearningCurve(Path(name), method, knobs, "feed", points)


def reached(target: Target, method: str = "full-graph", graph: str | None = None, **knobs: object) -> Reached:
    scenario = from_mapping({"schema": SCHEMA, "method": {"name": method, **knobs}}, "test")
    return target.reached(scenario, graph)


def test_the_first_time_an_accuracy_is_seen_counts() -> None:
    assert curve().first(0.8) == 20
    assert curve().first(0.9) == 30
    assert curve().first(0.95) is None
    assert reached(Target(0.9, (curve(),))) == (30, "a")


def test_several_runs_give_their_median() -> None:
    late, later = ((10, 0.1), (50, 0.9)), ((10, 0.1), (70, 0.9))
    target = Target(0.9, (curve("a"), curve("b", points=late), curve("c", points=later)))
    assert reached(target) == (50, "median of 3 runs, b")


def test_what_most_runs_never_reached_is_not_reached() -> None:
    low = ((10, 0.4), (20, 0.6))
    target = Target(0.9, (curve("a"), curve("b", points=low), curve("c", points=low)))
    assert reached(target) == (None, "not reached: at most 91.0 % in 3 recorded run(s)")


def test_runs_of_other_knobs_or_graphs_say_nothing() -> None:
    target = Target(0.9, (curve("a", "psc-gcn", tau=2, epsilon=0.1, sampler="vr"),))
    none = (None, "no recorded run of this method and these knobs")
    assert reached(target, "psc-gcn", tau=2, epsilon=0.1) == (30, "a")
    assert reached(target, "psc-gcn", graph="feed", tau=2, epsilon=0.1) == (30, "a")
    assert reached(target, "psc-gcn", graph="other", tau=2, epsilon=0.1) == none
    assert reached(target, "psc-gcn", tau=1, epsilon=0.1) == none
    assert reached(target, "psc-gcn", tau=2, epsilon=0.3) == none
    assert reached(target, "pipegcn") == none
    nodes = Target(0.9, (curve("a", "bns-gcn", rate=0.1, boundary_scale="rate"),))
    assert reached(nodes, "bns-gcn", rate=0.1) == (30, "a")
    assert reached(nodes, "bns-gcn", rate=0.2) == none


def _evaluated(folder: Path, accuracies: list[str]) -> None:
    """Give a written run an accuracy in some of its iterations."""
    path = folder / "iterations.csv"
    head, *rows = path.read_text().splitlines()
    place = head.split(",").index("val_accuracy")
    changed = []
    for row, accuracy in zip(rows, accuracies, strict=False):
        cells = row.split(",")
        cells[place] = accuracy
        changed.append(",".join(cells))
    path.write_text("\n".join([head, *changed, *rows[len(changed) :]]) + "\n")


def test_a_curve_is_read_from_a_run_folder(write_run: WriteRun) -> None:
    folder = write_run("a", method="pipegcn")
    with pytest.raises(FileError, match="accuracy was never evaluated"):
        read_learning_curve(folder)
    _evaluated(folder, ["", "0.5", "0.75"])
    found = read_learning_curve(folder)
    assert (found.method, found.points, found.best) == ("pipegcn", ((2, 0.5), (3, 0.75)), 0.75)


def test_what_if_tells_time_and_cost_where_a_run_does(write_run: WriteRun) -> None:
    folder = write_run("a", method="full-graph")
    _evaluated(folder, ["0.2", "0.9"])
    answer = gcnsim.what_if(gpus=2, method=["full-graph", "pipegcn"], target_accuracy=0.9, runs=[folder])
    target = answer.payload["target"]
    first, second = target["rows"]
    row = answer.results[0]
    assert first["iterations"] == 2
    assert first["seconds"] == pytest.approx(2 * row["iteration_s"])
    assert first["seconds_high"] == pytest.approx(2 * row["iteration_s_high"])
    price = min(each.usd_per_gpu_hour for each in prices("t4"))
    assert first["usd"] == pytest.approx(first["seconds"] / 3600 * 2 * price)
    assert (second["iterations"], second["seconds"], second["usd"]) == (None, None, None)
    schema = json.loads((Path(gcnsim.__file__).parent / "data" / "what-if.schema.json").read_text())
    validate(dict(answer.payload), schema)
    text = str(answer)
    assert "Time to 90 % validation accuracy" in text
    assert "2 iterations (a)" in text
    assert "no recorded run of this method" in text


def test_without_the_question_nothing_is_told() -> None:
    answer = gcnsim.what_if(gpus=2, method="pipegcn")
    assert "target" not in answer.payload
    assert "validation accuracy" not in str(answer)


@pytest.mark.parametrize("accuracy", [0.0, -0.5, 1.5, float("nan")])
def test_an_accuracy_is_a_share(accuracy: float) -> None:
    with pytest.raises(ScenarioError, match=r"--target-accuracy: .* a share above 0% and at most 100%"):
        gcnsim.what_if(gpus=2, target_accuracy=accuracy)


def test_runs_alone_are_refused(write_run: WriteRun) -> None:
    with pytest.raises(ScenarioError, match="--runs: are read for --target-accuracy alone"):
        gcnsim.what_if(gpus=2, runs=[write_run("a")])


def test_the_option_needs_its_unit() -> None:
    result = CliRunner().invoke(command, ["--target-accuracy", "0.9"])
    assert result.exception is not None
    assert "--target-accuracy" in str(result.exception)
