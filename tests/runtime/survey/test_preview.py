"""`--dry-run`: what would be done, from the rule and the machine alone; nothing is written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from runtime.launch import Place
from runtime.record import hardware, versions
from runtime.survey import ONE_WORKER, RULE, SurveyRequest, read_rule
from runtime.survey.folder import SurveyFolder, note_failure
from runtime.survey.preview import preview, preview_text

TINY = Path(__file__).with_name("tiny.yaml")


def survey_request(out: Path, rule: Path = RULE, **fields: Any) -> SurveyRequest:
    return SurveyRequest(out, read_rule(rule), **fields)


def here(rule: Path, **changes: Any) -> dict[str, Any]:
    """What a survey of this machine's cores must keep."""
    facts: dict[str, Any] = {"rule": read_rule(rule).sha256, "device": "cpu", "workers": 2, "servers": [hardware()]}
    return facts | {"versions": versions(), "bandwidth": None, "emulated": None} | changes


@pytest.mark.parametrize("workers", [1, 2, 4, 8])
@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_the_rules_that_ship_fit_into_half_an_hour(device: str, workers: int, tmp_path: Path) -> None:
    rule = RULE if workers > 1 else ONE_WORKER
    found = preview(survey_request(tmp_path / "s", rule, device=device, workers=workers), None)
    assert found["left_out"] == []
    assert 0 < found["seconds"] < 1800
    assert {run["workers"] for run in found["runs"]} == {workers}
    assert {run["use"] for run in found["runs"]} == {"calibrate", "judge"}
    assert len(found["runs"]) == 54
    assert found["bytes"] == pytest.approx(sum(run["bytes"] for run in found["runs"]) + 1e6)


def test_a_run_says_what_it_trains(tmp_path: Path) -> None:
    first = preview(survey_request(tmp_path / "s"), None)["runs"][1]
    assert {name: first[name] for name in ("name", "use", "graph", "method", "model", "layers", "hidden", "state")} == {
        "name": "calibration-1", "use": "calibrate", "graph": "near", "method": "psc-gcn", "model": "gcn",
        "layers": 3, "hidden": 256, "state": "train",
    }  # fmt: skip
    assert (first["iterations"], first["args"][-2:]) == (24, ["--epsilon", "0.2"])


def test_in_a_short_time_third_repeats_are_left_out_first(tmp_path: Path) -> None:
    whole = preview(survey_request(tmp_path / "s"), None)
    shorter = preview(survey_request(tmp_path / "s", minutes=whole["seconds"] / 60 - 0.3), None)
    assert shorter["left_out"]
    assert all(name.endswith("-r2") for name in shorter["left_out"])
    assert shorter["seconds"] <= whole["seconds"] - 18
    assert shorter["bytes"] < whole["bytes"]
    nothing = preview(survey_request(tmp_path / "s", minutes=0.9), None)
    assert len(nothing["left_out"]) == 54, "micro-benchmarks alone take longer"


def test_an_unfinished_survey_shows_what_is_left(tmp_path: Path) -> None:
    request = survey_request(tmp_path / "s", TINY)
    folder = SurveyFolder(request, here(TINY))
    first, second, third = request.rule.planned()
    folder.begin(first)
    folder.admit(first, 10.0)
    note_failure(folder.path, second, ValueError("no"))
    before = sorted(tmp_path.rglob("*"))
    found = preview(request, None)
    assert sorted(tmp_path.rglob("*")) == before
    assert [run["state"] for run in found["runs"]] == ["done", "failed", "train"]
    assert found["runs"][0]["seconds"] == 10.0
    # The one that is left takes as much longer than was expected as the first one did.
    fresh = preview(survey_request(tmp_path / "new", TINY), None)["runs"]
    wanted = 10.0 * fresh[2]["seconds"] / fresh[0]["seconds"]
    assert found["runs"][2]["seconds"] == pytest.approx(wanted)
    assert found["seconds"] == pytest.approx(wanted + 5.0), "micro-benchmarks are still to take"
    assert "--runs runs/calibration-0" in found["afterwards"][2]
    assert third.name not in found["left_out"]


def test_of_several_servers_the_others_are_not_known_yet(tmp_path: Path) -> None:
    SurveyFolder(survey_request(tmp_path / "s", TINY), here(TINY, servers=[hardware(), {"cpu": "another"}]))
    found = preview(survey_request(tmp_path / "s", TINY), Place(0, 2, 0, 1, launched=False))
    assert (found["servers"], found["workers"]) == (2, 2)


def test_graphs_that_are_not_made_up_have_no_size(tmp_path: Path) -> None:
    path = tmp_path / "rule.yaml"
    text = TINY.read_text(encoding="utf-8")
    line = next(line for line in text.splitlines() if line.startswith("  near:"))
    path.write_text(text.replace(line, "  near: {args: [--dataset, digits]}"), encoding="utf-8")
    found = preview(survey_request(tmp_path / "s", path), None)
    assert {(run["seconds"], run["bytes"], run["state"]) for run in found["runs"]} == {(None, None, "train")}
    assert any(note.startswith("times and sizes of runs on graphs") for note in found["notes"])
    assert "?" in preview_text(found)


def test_the_text_says_all_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    minutes = round(preview(survey_request(Path("s")), None)["seconds"] / 60 - 0.5, 1)
    found = preview(survey_request(Path("s"), minutes=minutes), None)
    text = preview_text(found)
    for words in (
        "nothing is started, nothing is written", "2 on 1 server", f"rule.yaml, within {minutes} minutes",
        "full, about 1.0 minutes", f"Left out within {minutes} minutes: held-out-",
        "not included: names of servers, users",
        f"{hardware()['cpu']}, {hardware()['cores']} cores", f"torch {versions()['torch']}",
        "gcnsim calibrate profile.json --runs runs/calibration-0", "tar -czf s.tar.gz --exclude=graphs s",
        "gcnsim validate runs/held-out-* --calibration calibration.json --out report --measured-compute measured",
        "(cd .. && python -m runtime.measure --runs s/runs --out s/measured)",
    ):  # fmt: skip
        assert words in text
    rows = {line.split()[0]: line.split() for line in text.splitlines() if line.startswith(("calibration-", "held-"))}
    assert len(rows) == 6 + 16, "a line for each configuration"
    assert rows["calibration-0"][1:4] == ["1", "calibrate", "near"]
    assert rows["held-out-1-m7"][-2:] != ["?", "?"]
    assert " 2 of 3 " in text, "a third repeat is left out"
    assert str(tmp_path) not in text
    json.dumps(found, allow_nan=False)


def test_what_its_owner_should_know_is_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runtime.survey.preview.hardware", lambda cuda: hardware() | {"gpus": ["Made-up GPU"]})
    notes = preview(survey_request(tmp_path / "s", device="cuda"), None)["notes"]
    assert "tried on one GPU, not on several" in notes[0]
    assert "gcnsim calibrate will refuse the folder as it is: this machine: the catalogue has no GPU" in notes[1]
    assert notes[2].startswith(f"--out: records contain paths as typed, so they would contain {tmp_path / 's'}")
    monkeypatch.setattr("runtime.survey.preview.hardware", lambda cuda: hardware() | {"gpus": ["Tesla T4"]})
    assert len(preview(survey_request(Path("s"), device="cuda"), None)["notes"]) == 1
