"""Every scenario of the repository is answered with the same bytes by both engines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gcnsim.cli import main
from gcnsim.engine import compile_now, engine

ROOT = Path(__file__).resolve().parents[3]
SCENARIOS = sorted((ROOT / "scenarios").glob("*.yaml"))
QUICK = ("pagraph-reddit.yaml", "reddit-6xt4.yaml", "reddit-6xt4-full-graph.yaml")
"""Scenarios that the reference engine answers in a moment."""


def answered(name: str, command: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    """What a command prints when the engine `name` simulates."""
    monkeypatch.setenv("GCNSIM_ENGINE", name)
    assert engine().name == name
    assert main(command) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize(
    "file",
    [
        pytest.param(scenario, marks=() if scenario.name in QUICK else pytest.mark.slow, id=scenario.stem)
        for scenario in SCENARIOS
    ],
)
def test_both_engines_answer_alike(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert compile_now() is None
    command = ["simulate", str(file), "--json"]
    both = [answered(name, command, monkeypatch, capsys) for name in ("reference", "compiled")]
    assert both[0] == both[1]
    assert json.loads(both[0])["result"]["iteration_s"] > 0


@pytest.mark.slow  # the reference engine takes most of a minute; test_choice.py has a smaller question
def test_both_engines_answer_the_default_question_alike(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert compile_now() is None
    command = ["what-if", "--bandwidth", "15Gbps", "--gpus", "6", "--json"]
    both = [answered(name, command, monkeypatch, capsys) for name in ("reference", "compiled")]
    assert both[0] == both[1]
