"""A longest wait: it ends the simulated draws and nothing else, which the answer counts; only it looks at a clock."""

from __future__ import annotations

import json
from importlib import resources
from itertools import count
from typing import Any

import numpy as np
import pytest
from jsonschema import Draft202012Validator

import gcnsim
from gcnsim.cli import main
from gcnsim.core import clock
from gcnsim.core.errors import GcnsimError, ScenarioError, UnitError
from gcnsim.planning.candidate import placements_of
from gcnsim.planning.simulated_draws import AT_A_TIME, Deadline, read_max_wait, simulate_draws
from gcnsim.planning.study_cache import StudyCache
from gcnsim.results import MaxWait
from gcnsim.scenario import SCHEMA, Scenario, from_mapping
from gcnsim.simulation.assumed import DRAWS

QUESTION: dict[str, Any] = {"gpus": 2, "gpus_per_server": 1, "method": "pipegcn", "iterations": 4}


def make_scenario(**cluster: Any) -> Scenario:
    given = {"gpus": 2, "gpus_per_server": 1, "bandwidth": "10Gbps"} | cluster
    run = {"iterations": 4}
    return from_mapping({"schema": SCHEMA, "cluster": given, "method": {"name": "full-graph"}, "run": run}, "t")


def ends_after(looks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wait is over when somebody has looked so often whether it is."""
    looked = count()
    monkeypatch.setattr(Deadline, "over", property(lambda self: next(looked) >= looks))


def test_a_wait_is_over_when_its_time_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "now", iter((100.0, 129.0, 130.0)).__next__)
    deadline = Deadline.after(30.0)
    assert deadline.max_wait_s == 30.0
    assert [deadline.over, deadline.over] == [False, True]


def test_the_first_draws_are_simulated_and_the_others_estimated(monkeypatch: pytest.MonkeyPatch) -> None:
    whole, some = StudyCache(make_scenario()), StudyCache(make_scenario())
    assert simulate_draws(whole, whole.candidate(make_scenario()), [])
    ends_after(31, monkeypatch)
    # The stated values and 30 draws.
    assert simulate_draws(some, some.candidate(make_scenario()), [], deadline=Deadline(5.0, 0.0))
    assert some.max_wait == MaxWait(5.0, 30, DRAWS)
    full, candidate = whole.candidate(make_scenario()), some.candidate(make_scenario())
    assert full.simulated is not None
    assert candidate.simulated is not None
    assert candidate.simulated[:30].tobytes() == full.simulated[:30].tobytes()
    assert candidate.simulated[30:].tobytes() == candidate.estimated[30:].tobytes()
    assert not np.array_equal(full.simulated[30:], full.estimated[30:])


def test_of_every_order_of_the_parts_as_many_draws_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = make_scenario(devices="t4,a100-40")
    studies = StudyCache(scenario)
    # Each order has its first share of draws, and one of them four more.
    ends_after(len(placements_of(scenario)) * AT_A_TIME + 4, monkeypatch)
    assert simulate_draws(studies, studies.candidate(scenario), [], deadline=Deadline(5.0, 0.0))
    assert studies.max_wait == MaxWait(5.0, AT_A_TIME - 1, DRAWS)


@pytest.mark.parametrize("looks", [0, 1])
def test_where_no_draw_is_simulated_all_are_estimated(looks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    studies = StudyCache(make_scenario())
    ends_after(looks, monkeypatch)
    assert not simulate_draws(studies, studies.candidate(make_scenario()), [], deadline=Deadline(5.0, 0.0))
    assert studies.max_wait == MaxWait(5.0, 0, DRAWS)
    assert studies.candidate(make_scenario()).simulated is None


def test_a_wait_that_was_not_needed_leaves_nothing_out() -> None:
    scenario = make_scenario(sockets="cores")
    studies = StudyCache(scenario)
    assert not simulate_draws(studies, studies.candidate(scenario), [], deadline=Deadline(5.0, 0.0))
    assert studies.max_wait == MaxWait(5.0, 0, 0)
    assert studies.max_wait.complete


def test_an_ample_wait_changes_nothing_but_that_it_is_said() -> None:
    free = gcnsim.what_if(**QUESTION, processes=1).payload
    ample = gcnsim.what_if(**QUESTION, processes=2, max_wait="1000s").payload
    assert ample["provenance"].pop("max_wait") == {"max_wait_s": 1000.0, "draws": DRAWS, "wanted": DRAWS}
    assert ample == free


def test_an_answer_says_how_many_draws_there_was_time_for(monkeypatch: pytest.MonkeyPatch) -> None:
    ends_after(40, monkeypatch)
    answer = gcnsim.what_if(**QUESTION, processes=1, max_wait="2s")
    payload = json.loads(json.dumps(answer.payload))
    schema = json.loads(resources.files("gcnsim.data").joinpath("what-if.schema.json").read_text(encoding="utf-8"))
    Draft202012Validator(schema).validate(payload)
    content = payload["provenance"]["max_wait"]
    assert (content["max_wait_s"], content["wanted"]) == (2.0, DRAWS)
    assert 0 < content["draws"] < 40
    line = f"{content['draws']} of {DRAWS} draws of the assumptions simulated within 2.00 s, the others estimated; "
    assert any(text.startswith(line) for text in payload["provenance"]["warnings"])
    assert line in " ".join(str(answer).split()) + " "
    assert (
        f"the first {content['draws']} are simulated for {payload['certainty']['simulated'][0]}"
        in (payload["certainty"]["method"])
    )


def test_a_wait_that_is_over_at_once_leaves_all_draws_estimated_and_all_else_as_it_is() -> None:
    free = gcnsim.what_if(**QUESTION, processes=1).payload
    short = [gcnsim.what_if(**QUESTION, processes=number, max_wait="1ms").payload for number in (1, 2)]
    assert short[0] == short[1]
    assert short[0]["provenance"]["max_wait"] == {"max_wait_s": 1e-3, "draws": 0, "wanted": DRAWS}
    assert short[0]["certainty"]["simulated"] == []
    assert short[0]["next_steps"] != []
    assert [row["iteration_s"] for row in short[0]["results"]] == [row["iteration_s"] for row in free["results"]]


def test_without_a_wait_no_clock_changes_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    before = gcnsim.what_if(**QUESTION, processes=1).payload
    steps = count()
    monkeypatch.setattr(clock, "now", lambda: 1e9 * (-1.0) ** next(steps))
    monkeypatch.setattr(Deadline, "over", property(lambda self: pytest.fail("a wait that nobody limited is over")))
    assert gcnsim.what_if(**QUESTION, processes=1).payload == before


@pytest.mark.parametrize(("text", "seconds"), [("30s", 30.0), ("2min", 120.0), ("500 ms", 0.5), ("1h", 3600.0)])
def test_longest_waits_are_times_with_units(text: str, seconds: float) -> None:
    assert read_max_wait(text) == seconds


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("30", UnitError, "--max-wait: '30' has no unit; write a time with its unit, e.g. "),
        (30, UnitError, "--max-wait: 30 has no unit; write a time with its unit, e.g. "),
        ("soon", UnitError, "--max-wait: 'soon': not a time"),
        ("-3s", UnitError, "--max-wait: '-3s': a time cannot be negative; write e.g. "),
        ("0s", ScenarioError, "--max-wait: '0s' is not allowed; a time of at least 1.00 ms"),
    ],
)
def test_other_waits_are_refused(text: object, error: type[GcnsimError], message: str) -> None:
    with pytest.raises(error) as caught:
        read_max_wait(text)
    assert str(caught.value).startswith(message)


def test_a_bad_wait_is_one_line_and_exit_code_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["what-if", "--max-wait", "30"]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("gcnsim: --max-wait: '30' has no unit; write a time with its unit")
    assert printed.err.count("\n") == 1


def test_the_command_line_has_longest_waits(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["what-if", "--gpus", "2", "--gpus-per-server", "1", "--method", "pipegcn", "--iterations", "4"]
    assert main([*command, "--max-wait", "1ms"]) == 0
    printed = capsys.readouterr()
    assert f"0 of {DRAWS} draws of the assumptions simulated within 1.00 ms" in " ".join(printed.out.split())
    assert printed.err == ""
    assert main([*command, "--max-wait", "1h", "--provenance"]) == 0
    printed = capsys.readouterr()
    assert f"1 h; draws of the assumptions simulated: {DRAWS} of {DRAWS}" in " ".join(printed.out.split())
