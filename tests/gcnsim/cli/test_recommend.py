from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import gcnsim
from gcnsim.cli import main
from gcnsim.io.json_files import mistake

SMALL = ("--device", "t4,a10g", "--gpus", "2,4", "--iterations", "5")


def answer(capsys: pytest.CaptureFixture[str], *argv: str) -> dict[str, Any]:
    assert main(["recommend", *SMALL, *argv, "--json"]) == 0
    told: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert mistake(told, "recommend") is None
    return told


def test_the_cheapest_that_meets_a_target(capsys: pytest.CaptureFixture[str]) -> None:
    told = answer(capsys, "--target-iteration", "1.8s")
    choice = told["choice"]
    assert choice["meets"]
    assert choice["seconds"] <= 1.8
    assert all(each["cost"] >= choice["cost"] for each in told["front"])
    assert choice["name"] in {each["name"] for each in told["front"]}
    assert [each["same"] for each in told["confirmed"]] == [True] * len(told["confirmed"])
    assert "same picoseconds" in told["confirmation"]
    assert told["search"]["missed"] > 0
    assert told["verdict"].startswith(f"Use {choice['name']}: ")
    assert told["runner_up"]["point"]["machine"] != choice["machine"]


def test_other_things_are_minimised(capsys: pytest.CaptureFixture[str]) -> None:
    fastest, fewest = answer(capsys, "--minimise", "time"), answer(capsys, "--minimise", "gpus")
    assert fastest["choice"]["seconds"] == min(each["seconds"] for each in fastest["front"])
    assert fewest["choice"]["row"]["gpus"] == 2


def test_budgets_hold(capsys: pytest.CaptureFixture[str]) -> None:
    told = answer(capsys, "--minimise", "time", "--budget-per-hour", "2.1USD/h")
    assert told["choice"]["row"]["cost"]["per_hour"] <= 2.1
    inside = answer(capsys, "--minimise", "time", "--budget-per-hour", "2.1EUR/h", "--currency", "EUR")
    assert inside["goal"]["per_hour"] == pytest.approx(2.1)
    assert inside["choice"]["row"]["cost"]["currency"] == "EUR"


def test_a_training_counts_its_iterations(capsys: pytest.CaptureFixture[str]) -> None:
    needed = ("--target-accuracy", "90%", "--target-iterations", "pipegcn=4000", "--target-hours", "3h")
    told = answer(capsys, *needed, "--max-cost", "5USD")
    assert told["compared"] == "a training"
    assert told["choice"]["row"]["method"] == "pipegcn"
    assert told["choice"]["seconds"] == pytest.approx(4000 * told["choice"]["row"]["iteration_s"])
    assert told["choice"]["cost"] <= 5.0
    assert told["search"]["unpriced"] > 0, "methods whose iterations nobody knows"


def test_a_target_that_nothing_meets(capsys: pytest.CaptureFixture[str]) -> None:
    told = answer(capsys, "--target-iteration", "0.75s", "--method", "pipegcn")
    assert not told["choice"]["meets"]
    assert told["verdict"].startswith("Nothing meets the goal; the closest is ")
    assert told["missed"]["excess"] == pytest.approx(told["choice"]["row"]["iteration_s"] / 0.75)
    changes = told["missed"]["changes"]
    assert changes == sorted(changes, key=lambda each: each["excess"])
    assert any(each["meets"] for each in changes)
    assert all(each["meets"] == (each["excess"] <= 1) for each in changes)
    assert "a single change would meet it" in told["missed"]["text"]


def test_the_tables_mark_what_meets_a_missed_goal(capsys: pytest.CaptureFixture[str]) -> None:
    argv = ("--target-iteration", "0.75s", "--method", "pipegcn,bns-gcn")
    told = answer(capsys, *argv)
    options = [each["option"] for each in told["held"]["relaxed"] if each["meets"]]
    assert options
    assert f"allowing more approximation would meet it: {' or '.join(options)}" in told["missed"]["text"]
    assert main(["recommend", *SMALL, *argv]) == 0
    lines = capsys.readouterr().out.splitlines()
    marked = sum(line.rstrip().endswith("meets the goal") for line in lines)
    changes = told["missed"]["changes"]
    assert marked == len(options) + sum(each["meets"] for each in changes)
    assert marked < len(changes) + len(told["held"]["relaxed"])


def test_accuracy_is_never_traded_silently(capsys: pytest.CaptureFixture[str]) -> None:
    told = answer(capsys, "--minimise", "time", "--epsilon", "0.1,1")
    assert (told["choice"]["row"]["epsilon"], told["choice"]["row"]["rate"]) == (1.0, 1.0)
    assert told["choice"]["row"]["tau"] <= 1
    assert {each["option"] for each in told["held"]["relaxed"]} >= {"--least-epsilon 0.1"}
    assert any(each["shorter"] > 0.3 for each in told["held"]["relaxed"])
    allowed = answer(capsys, "--minimise", "time", "--epsilon", "0.1,1", "--least-epsilon", "0.1")
    assert allowed["choice"]["seconds"] < told["choice"]["seconds"]


def test_the_text_has_the_choice_and_its_confirmation(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["recommend", *SMALL, "--target-iteration", "1.8s"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    for words in ("Use ", "runner-up", "same picoseconds", "miss a limit even at their analytic bound", "held fixed",
                  "What moves the time", "If more approximation were allowed"):  # fmt: skip
        assert words in text


def test_what_costs_nothing_is_said_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ("--device", "t4,a10g", "--gpus", "2", "--method", "full-graph", "--iterations", "5")
    free, none = ("--price", "t4=0USD/h"), "networks and GPUs per server are not priced"
    assert main(["recommend", *asked, *free, "--price", "a10g=0USD/h"]) == 0
    both = " ".join(capsys.readouterr().out.split())
    assert "on 2 x a10g" in both
    assert "runner-up full-graph on 2 x t4 at 15Gbps: both cost nothing; " in both
    assert none in both
    assert main(["recommend", *asked, *free]) == 0
    one = " ".join(capsys.readouterr().out.split())
    assert "Use full-graph on 2 x t4" in one
    assert "dearer, since the choice costs nothing; " in one
    assert main(["recommend", "--host", "g5.12xlarge", "--method", "full-graph", "--iterations", "5"]) == 0
    assert none not in " ".join(capsys.readouterr().out.split())


def test_the_same_question_has_the_same_bytes(capsys: pytest.CaptureFixture[str]) -> None:
    several = [answer(capsys, "--target-iteration", "1.8s", "--processes", count) for count in ("1", "2")]
    assert json.dumps(several[0]) == json.dumps(several[1])


def test_from_python_and_into_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = {"device": "t4", "gpus": [2, 4], "method": "pipegcn", "iterations": 5}
    found = gcnsim.recommend(**asked, minimise="time")  # type: ignore[arg-type]
    assert repr(found) == found.told.verdict
    assert found.chosen.metrics.iteration_s == found.told.choice.row.iteration_s
    file = tmp_path / "answer.json"
    argv = ["recommend", "--device", "t4", "--gpus", "2,4", "--method", "pipegcn", "--iterations", "5"]
    assert main([*argv, "--minimise", "time", "--out", str(file)]) == 0
    assert json.loads(file.read_text(encoding="utf-8")) == json.loads(json.dumps(found.payload))


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("--target-iteration", "0.5"), "--target-iteration: '0.5': a bare number, a time needs its unit"),
        (("--target-iteration", "0s"), "a time above 0"),
        (("--budget-per-hour", "10"), "--budget-per-hour: '10': a bare number, a price per hour needs its unit"),
        (("--max-cost", "10"), "--max-cost: '10' is not an amount with its currency"),
        (("--target-hours", "10h"), "--target-hours: is of a training; give its accuracy"),
        (("--max-cost", "10USD"), "--max-cost: is of a training; give its accuracy"),
        (("--minimise", "cots"), "did you mean 'cost'"),
        (("--device", "rxt-4090"), "unknown device 'rxt-4090'; did you mean 'rtx-4090'"),
        (("--host", "g4dn.12xlrge"), "unknown host 'g4dn.12xlrge'; did you mean 'g4dn.12xlarge'"),
        (("--host", "generic-16"), "generic-16 has no GPUs of its own"),
        (("--host", "g4dn.12xlarge", "--device", "t4"), "--device contradicts it"),
        (("--target-iteration", "2s", "--target-epoch", "1s"), "an epoch has one iteration or more"),
        (("--epsilon", "0.1", "--least-epsilon", "0.5"), "--epsilon: 0.1 is below --least-epsilon 0.5"),
        (("--tau", "3", "--most-tau", "2"), "--tau: 3 is more than --most-tau 2"),
        (("--least-epsilon", "2"), "--least-epsilon: 2.0 is not allowed"),
        (("--method", "psc-gnc"), "did you mean 'psc-gcn'"),
        (("--device", "rtx-4090", "--gpus", "2"), "--minimise: of no setting both price and iterations are known"),
        (("--price", "t4=1"), "needs its unit"),
        (("--set", "method.tau=0"), "--set method.tau: is chosen, so it would be replaced; allowed: --tau"),
        (("--set", "cluster.gpus=2"), "--set cluster.gpus: is chosen, so it would be replaced; allowed: --gpus"),
        (("--set", "cluster.device=t4"), "--set cluster.device: is chosen, so it would be replaced; allowed: --device"),
        (("--device", "t4", "--bandwidth", "5Gbps", "--set", "cluster.bandwidth=9Gbps"), "allowed: --bandwidth"),
    ],
)
def test_bad_input_is_one_line(argv: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["recommend", *argv]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
