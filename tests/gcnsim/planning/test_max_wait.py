"""A longest wait: which rung is taken by a law that is given, what an answer on it says, and how wide it is."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

import gcnsim
from gcnsim.cli import main
from gcnsim.errors import GcnsimError, ScenarioError, UnitError
from gcnsim.planning import StudyCache, rungs
from gcnsim.planning.durations import FEATURES, Law
from gcnsim.planning.max_wait import exceeded, less, limited, read_max_wait
from gcnsim.planning.patience import Work
from gcnsim.planning.rungs import MeanGraph, Rung, ladder
from gcnsim.results import MaxWait
from gcnsim.scenario import SCHEMA, Scenario, from_mapping, read_injected
from gcnsim.simulation import study
from gcnsim.sources import RangeEnd, open_source
from gcnsim.uncertainty import estimated_counts

ROOT = Path(__file__).resolve().parents[3]


def asked(gpus: int = 4, fidelity: str | None = None, **method: Any) -> Scenario:
    run = {} if fidelity is None else {"fidelity": fidelity}
    given = {
        "schema": SCHEMA,
        "cluster": {"gpus": gpus, "transport": "direct"},
        "method": {"name": "psc-gcn"} | method,
        "run": run,
    }
    return from_mapping(given, "t")


def law(**parts: dict[str, float]) -> Law:
    """One second of every study, nothing else, unless `parts` say other coefficients."""
    nothing = {name: {"one": -100.0} for name in FEATURES}
    return Law(nothing | {"study": {"one": 0.0}} | parts, 0.0)


WORK = Work((asked(),), tried=(asked(tau=1), asked(tau=3)), draws=True, steps=True)
"""Three settings, draws, and six next steps."""

DRAWS = law(draw={"one": 0.0}, iterations={"one": 0.0})
"""A second of every draw, too: 65 of each setting."""


@pytest.mark.parametrize(
    ("max_wait_s", "expected"),
    [
        (1000.0, Rung()),
        (204.0, Rung()),
        (203.0, Rung(draws=False)),
        (9.0, Rung(draws=False)),
        (8.9, Rung(draws=False, graphs=3, mean=True, most=1)),
        (8.0, Rung(draws=False, graphs=3, mean=True, most=1)),
        (7.9, Rung(draws=False, graphs=3, mean=True, most=1, steps=False)),
        (0.1, Rung(draws=False, graphs=3, mean=True, most=1, steps=False)),
    ],
)
def test_the_first_rung_in_time_is_taken_else_the_last(max_wait_s: float, expected: Rung) -> None:
    rung, told = limited(WORK, max_wait_s, DRAWS)
    assert rung == expected
    assert told.left_out == expected.left_out
    assert told.kept == (max_wait_s >= 2.0)
    assert told.max_wait_s == max_wait_s
    assert (exceeded(told) is None) == told.kept


def test_a_mean_graph_and_coarse_runs_are_taken_where_they_are_sooner_done() -> None:
    drawn = law(study={"one": 0.0, "drawn": 2.0})
    fresh = Work((asked(tau=0),), tried=(asked(tau=0, epsilon=0.5),), draws=True, steps=True)
    assert limited(fresh, 10.0, drawn)[0] == Rung(draws=False, graphs=3, mean=True)
    # A stale pipeline settles no sooner.
    assert limited(WORK, 10.0, drawn)[0] == Rung(draws=False, graphs=3, mean=True, most=1, steps=False)
    slow = law(iterations={"one": 0.0}, compiled={"one": 0.0}, coarse={"one": -10.0})
    rung, _ = limited(WORK, 20.0, slow)
    assert rung == Rung(draws=False, graphs=3, mean=True, coarse=True)
    rung, _ = limited(WORK, 20.0, replace(slow, compiled=False))
    assert not rung.coarse
    exactly = Work((asked(fidelity="exact"),), steps=True)
    assert not limited(exactly, 0.1, slow)[0].coarse


def test_a_single_run_has_neither_draws_nor_steps_to_leave_out() -> None:
    rung, told = limited(Work((asked(),)), 0.1, law())
    assert rung == Rung(graphs=3, mean=True)
    assert told.left_out == ("only the mean of 3 drawn graphs simulated",)
    assert not told.kept


def test_graphs_are_fewer_only_where_they_are_drawn_and_no_fault_strikes_one() -> None:
    whole = Work((asked(name="full-graph"),), tried=(asked(name="pipegcn"),), draws=True, steps=True)
    assert limited(whole, 0.1, law())[0] == Rung(draws=False, most=1, steps=False)
    struck = replace(asked(), faults=read_injected(["pause:worker=0,seconds=1s,iteration=20"]))
    assert limited(Work((struck,)), 0.1, law())[0] == Rung()
    answer = gcnsim.what_if(gpus=2, method="psc-gcn", max_wait="1ms", inject=["pause:worker=0,seconds=1s,iteration=20"])
    assert answer.payload["scenario"]["run"]["iterations"] == 30


def test_each_rung_leaves_out_more_and_is_no_later_done() -> None:
    rungs_of = ladder(coarse=True)
    assert [len(each.left_out) for each in rungs_of] == [0, 1, 2, 2, 2, 3, 4, 5]
    given = law(draw={"one": 0.0}, iterations={"one": 1.0, "drawn": 1.0}, compiled={"one": -5.0}, coarse={"one": -6.0})
    seconds = [less(WORK, each).cost(given).seconds for each in rungs_of]
    assert seconds == sorted(seconds, reverse=True)
    few = less(WORK, rungs_of[-1])
    assert (len(few.settings), len(few.tried), few.draws, few.steps) == (1, 1, False, False)
    assert [each.run.iterations for each in few.settings] == [3]


def test_intervals_are_wider_by_what_a_rung_leaves_out_of_a_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rungs, "WIDER_DRAWS", 0.1)
    monkeypatch.setattr(rungs, "WIDER_GRAPHS", {15: 0.01, 8: 0.02, 3: 0.05})
    whole = asked(name="full-graph")
    assert [each.wider(asked()) for each in ladder(coarse=False)] == pytest.approx([0, 0.1, 0.11, 0.12] + 3 * [0.15])
    assert [each.wider(whole) for each in ladder(coarse=False)] == [0.0] + 6 * [0.1]
    scenario = asked(gpus=2)
    plain, limit = StudyCache(scenario), StudyCache(scenario)
    limit.limit(Rung(draws=False), MaxWait(1.0, 1.0, True, (), 0.1))
    before, after = plain.estimate(scenario), limit.estimate(scenario)
    assert after.iteration_s == before.iteration_s
    assert before.low_s is not None
    assert before.high_s is not None
    assert after.low_s == pytest.approx(max(0.9 * before.low_s, before.lower_s), rel=1e-3)
    assert after.high_s == pytest.approx(1.1 * before.high_s)


def test_what_is_measured_is_more_for_fewer_graphs() -> None:
    assert rungs.WIDER_DRAWS > 0.0
    some = [rungs.WIDER_GRAPHS[each] for each in (15, 8, 3)]
    assert some == sorted(some)
    assert 0.0 < some[0] < some[-1] < 0.5


def test_the_mean_graph_is_the_mean_of_the_drawn_ones() -> None:
    scenario = Rung(graphs=3, mean=True).applied(asked())
    accesses = open_source(scenario)
    found = MeanGraph(accesses).counts(scenario, 602, RangeEnd.LIKELY)
    assert found.iterations == 1
    assert (found.rows == estimated_counts(scenario, accesses).rows).all()
    drawn, mean = study(asked(), accesses), study(scenario, MeanGraph(accesses))
    assert mean.run.schedule.demand.shape[0] == 1 < drawn.run.schedule.demand.shape[0]
    assert mean.metrics.iteration_s == pytest.approx(drawn.metrics.iteration_s, rel=0.1)


def test_an_ample_wait_changes_nothing_but_that_it_is_said() -> None:
    question: dict[str, Any] = {"gpus": 2, "method": "pipegcn", "processes": 1}
    free = gcnsim.what_if(**question).payload
    ample = gcnsim.what_if(**question, max_wait="1000s").payload
    told = ample["provenance"].pop("max_wait")
    assert ample == free
    assert (told["max_wait_s"], told["kept"], told["left_out"], told["wider"]) == (1000.0, True, [], 0.0)
    assert 0.1 < told["expected_s"] < 100.0


def test_a_short_wait_is_kept_to_in_the_answer_which_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    noticed: list[str] = []
    question: dict[str, Any] = {"gpus": 4, "method": "psc-gcn", "max_wait": "1ms"}
    answer = gcnsim.what_if(**question, processes=1, notice=noticed.append)
    payload = json.loads(json.dumps(answer.payload))
    schema = json.loads(resources.files("gcnsim.data").joinpath("what-if.schema.json").read_text(encoding="utf-8"))
    Draft202012Validator(schema).validate(payload)
    told = payload["provenance"]["max_wait"]
    assert told["left_out"] == [
        "draws of the assumptions estimated, not simulated",
        "only the mean of 3 drawn graphs simulated",
        "1 candidate tried on each machine",
        "no next steps",
    ]
    assert (told["kept"], told["wider"]) == (False, rungs.WIDER_DRAWS + rungs.WIDER_GRAPHS[3])
    assert payload["next_steps"] == payload["no_effect"] == []
    assert payload["certainty"]["simulated"] == []
    assert payload["scenario"]["run"]["iterations"] == 3
    warnings = payload["provenance"]["warnings"]
    assert any(text.startswith("to answer within 1.00 ms: draws of the assumptions estimated") for text in warnings)
    assert any("on one core, longer than the limit of 1.00 ms" in text for text in warnings)
    assert " ".join(str(answer).split()).count("longer than the limit") == 1
    # Neither processes nor the clock choose.
    assert gcnsim.what_if(**question, processes=2).payload == answer.payload


def test_a_simulated_scenario_has_a_longest_wait_too() -> None:
    given = {"schema": SCHEMA, "cluster": {"gpus": 2}, "method": {"name": "psc-gcn"}}
    free, ample = gcnsim.simulate(given), gcnsim.simulate(given, max_wait="10min")
    assert ample.payload["provenance"].pop("max_wait")["max_wait_s"] == 600.0
    assert ample.payload["result"] == free.payload["result"]
    short = gcnsim.simulate(given, max_wait="1ms")
    schema = json.loads(resources.files("gcnsim.data").joinpath("result.schema.json").read_text(encoding="utf-8"))
    Draft202012Validator(schema).validate(json.loads(json.dumps(short.payload)))
    assert short.payload["provenance"]["max_wait"]["left_out"] == ["only the mean of 3 drawn graphs simulated"]
    assert "max wait: 1.00 ms; about" in str(short)
    assert "warning: to answer within 1.00 ms: only the mean of 3 drawn graphs simulated" in str(short)


@pytest.mark.parametrize(("text", "seconds"), [("30s", 30.0), ("2min", 120.0), ("500 ms", 0.5), ("1h", 3600.0)])
def test_longest_waits_are_times_with_units(text: str, seconds: float) -> None:
    assert read_max_wait(text) == seconds


@pytest.mark.parametrize(
    ("text", "error", "said"),
    [
        ("30", UnitError, "--max-wait: '30': a bare number, a time needs its unit; write e.g. "),
        (30, UnitError, "--max-wait: 30: a bare number, a time needs its unit; write e.g. "),
        ("soon", UnitError, "--max-wait: 'soon': not a time"),
        ("-3s", UnitError, "--max-wait: '-3s': a time cannot be negative; write e.g. "),
        ("0s", ScenarioError, "--max-wait: '0s' is not allowed; a time of at least 1.00 ms"),
    ],
)
def test_other_waits_are_refused(text: object, error: type[GcnsimError], said: str) -> None:
    with pytest.raises(error) as caught:
        read_max_wait(text)
    assert str(caught.value).startswith(said)


@pytest.mark.parametrize("command", [("what-if",), ("simulate", "scenarios/reddit-6xt4.yaml")])
def test_a_bad_wait_is_one_line_and_exit_code_2(
    command: tuple[str, ...], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    assert main([*command, "--max-wait", "30"]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("gcnsim: --max-wait: '30': a bare number, a time needs its unit")
    assert printed.err.count("\n") == 1


def test_the_command_line_has_longest_waits(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["what-if", "--gpus", "2", "--method", "psc-gcn", "--max-wait", "1ms"]) == 0
    assert "to answer within 1.00 ms: draws of the assumptions estimated" in capsys.readouterr().out
    assert main(["what-if", "--gpus", "2", "--method", "pipegcn", "--max-wait", "1h", "--provenance"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "max wait 3600 s; about" in " ".join(printed.split())
    assert "left out: nothing" in printed


def test_a_long_question_says_so_first(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    slow = law(study={"one": 3.0})
    monkeypatch.setattr("gcnsim.planning.patience.fitted_law", lambda: slow)
    assert main(["what-if", "--gpus", "2", "--method", "pipegcn", "--html", str(tmp_path / "page.html")]) == 0
    notes = [line for line in capsys.readouterr().err.splitlines() if line.startswith("note: this takes about ")]
    assert len(notes) == 2
    assert "and the next steps: " in notes[0]
    assert "and the figure of bandwidths: " in notes[1]
    monkeypatch.chdir(ROOT)
    assert main(["simulate", "scenarios/reddit-6xt4.yaml"]) == 0
    assert capsys.readouterr().err.startswith("note: this takes about ")
