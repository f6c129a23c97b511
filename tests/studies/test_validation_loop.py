"""The rule of `make validate`: what is held out is held out, and drawn by its number alone."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from gcnsim.core import units
from gcnsim.core.yaml_files import read_yaml
from gcnsim.records.calibration import write_calibration
from studies import validation_runs
from studies.validate import RULE, judged, main
from studies.validation_runs import SCENARIO_FILE, Planned, finished, make, planned, scenario_text
from tests.gcnsim.evidence.conftest import runs_in
from tests.gcnsim.evidence.made_calibration import calibration

GOOD: dict[str, Any] = {
    "mape": 0.04,
    "p90_ape": 0.1,
    "bias": -0.01,
    "phases": {name: {"bias": 0.0, "p90": 0.1} for name in ("compute", "exposed_comm", "exposed_other")},
    "kendall": 0.95,
    "regret": {"mean": 0.0, "max": 0.01},
    "coverage": 0.9,
}


def rule(**changes: Any) -> dict[str, Any]:
    found: dict[str, Any] = read_yaml(RULE)
    return found | changes


def place(run: Planned) -> tuple[object, ...]:
    return run.graph, run.hosts, run.workers_per_host, run.bandwidth


def test_six_runs_are_seen_and_no_held_out_setting_has_one() -> None:
    runs = planned(rule())
    seen, held_out = [run for run in runs if run.calibration], [run for run in runs if not run.calibration]
    assert len({(place(run), run.args) for run in seen}) <= 6
    assert {place(run) for run in seen}.isdisjoint({place(run) for run in held_out})
    assert len({run.name for run in runs}) == len(runs)


def test_forty_configurations_are_held_out() -> None:
    held_out = [run for run in planned(rule()) if not run.calibration]
    counts = Counter((place(run), run.args) for run in held_out)
    assert len(counts) >= 40
    assert set(counts.values()) == {rule()["repeats"]}
    assert {run.graph for run in held_out} == {"amazon_cs", "acl_papers"}
    assert {(run.hosts, run.workers_per_host) for run in held_out} >= {(2, 1), (2, 2), (3, 2)}


def test_a_draw_decides_the_bandwidths_and_repeats_itself() -> None:
    first, again, other = planned(rule(draw=7)), planned(rule(draw=7)), planned(rule(draw=8))
    assert first == again
    assert [place(run) for run in first] != [place(run) for run in other]
    for run in (*first, *other):
        if not run.calibration:
            assert units.bandwidth("200Mbps") <= units.bandwidth(run.bandwidth) <= units.bandwidth("2Gbps")


def test_the_quick_loop_is_no_validation_to_keep(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["studies.validate", "--quick", "--keep"])
    with pytest.raises(SystemExit) as caught:
        main()
    assert caught.value.code == 2
    assert capsys.readouterr().err.endswith(
        "error: --keep: not with --quick, whose few runs are no validation; allowed: one of the two\n"
    )


def test_every_bound_can_be_missed() -> None:
    assert all(kept for _, kept in judged(GOOD, quick=False))
    worse: list[dict[str, Any]] = [{"mape": 0.06}, {"p90_ape": 0.2}, {"bias": 0.03}, {"bias": -0.03}]
    worse += [{"kendall": 0.8}, {"kendall": None}, {"regret": {"mean": 0.1, "max": 0.1}}, {"regret": None}]
    worse += [{"coverage": 0.5}, {"coverage": 1.0}]
    worse += [{"phases": GOOD["phases"] | {"compute": {"bias": 0.0, "p90": 0.2}}}]
    for change in worse:
        assert [kept for _, kept in judged(GOOD | change, quick=False)].count(False) == 1, change
    assert not all(kept for _, kept in judged(GOOD | {"mape": 0.6}, quick=True))


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of runs as they are made, each of them nothing but a run.json."""
    names: list[str] = []

    def train(runs: Sequence[Planned], _rule: object, _graphs: object, within: Path) -> None:
        for run in runs:
            folder = within / "runs" / run.name
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "run.json").write_text("{}", encoding="utf-8")
            names.append(run.name)

    monkeypatch.setattr(validation_runs, "train", train)
    return names


def graphs() -> dict[str, list[str]]:
    return {name: ["--dataset", name] for name in rule()["iterations"]}


def test_what_is_made_is_not_made_again_unless_something_else_is_asked(trained: list[str], tmp_path: Path) -> None:
    runs = planned(rule())[:7]
    assert make(runs, rule(), graphs(), float("inf"), tmp_path) == runs
    assert sorted(trained) == sorted(run.name for run in runs)
    assert make(runs, rule(), graphs(), float("inf"), tmp_path) == runs
    assert len(trained) == 7
    changed = [replace(runs[0], bandwidth="7Mbps"), *runs[1:]]
    assert make(changed, rule(), graphs(), float("inf"), tmp_path) == changed
    assert trained[7:] == [runs[0].name]
    (tmp_path / "runs" / runs[1].name / SCENARIO_FILE).unlink()
    assert not finished(runs[1], scenario_text(runs[1], []), tmp_path)


def test_no_run_begins_once_time_is_over(trained: list[str], tmp_path: Path) -> None:
    assert not make(planned(rule()), rule(), graphs(), -1.0, tmp_path)
    assert not trained


@pytest.mark.parametrize(("spread", "code"), [(0.02, 0), (0.2, 1)])
def test_another_rule_and_folder_are_followed(
    spread: float, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, out, commands = tmp_path / "own.yaml", tmp_path / "out", []
    short = rule(draw=99, repeats=1, calibrations=1)
    short |= {name: short[name][:2] for name in ("held_out", "methods", "calibration")}
    path.write_text(yaml.safe_dump(short))
    monkeypatch.setattr(sys, "argv", ["validate", "--rule", str(path), "--out", str(out)])
    write_run = runs_in(out / "runs")

    def called(command: Sequence[str], **_: Any) -> None:
        commands.append(command)
        if "--plan" in command:
            for entry in yaml.safe_load(Path(command[command.index("--plan") + 1]).read_text()):
                write_run(Path(entry["out"]).name)
        if "calibrate" in command:
            write_calibration(out / "calibration.json", replace(calibration(), spread=spread))
        if "validate" in command:
            (out / "validation.json").write_text(json.dumps(GOOD))

    monkeypatch.setattr(subprocess, "run", called)
    monkeypatch.delenv("GCNSIM_DATA", raising=False)
    assert main() == code
    requested = [command[command.index("--bandwidth") + 1] for command in commands if "--bandwidth" in command]
    assert set(requested) == {run.bandwidth for run in planned(short)}
    asked = [command for command in commands if "runtime.measure" in command]
    assert [("--links" in command) for command in asked] == [False, False, False, True]
    # The parts of a graph as soon as all that train them are made; at the end whatever is lacking.
    places = [{run.parts for run in planned(short) if str(out / "runs" / run.name) in command} for command in asked[:3]]
    assert places == [{("amazon_cs", 2)}, {("amazon_cs", 4)}, {("amazon_cs", 2), ("amazon_cs", 4)}]
    assert asked[2].count("--runs") == len(planned(short))
    for word in ("calibrate", "validate"):
        command = next(command for command in commands if word in command)
        assert command[command.index("--measured-compute") + 1] == str(out / "measured")
