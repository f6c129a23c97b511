"""`gcnsim compare` from the outside."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gcnsim.cli import main

SCENARIOS = Path(__file__).resolve().parents[3] / "scenarios"
A, B = str(SCENARIOS / "reddit-6xt4-full-graph.yaml"), str(SCENARIOS / "reddit-6xt4.yaml")


def test_two_scenarios_as_text_and_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "compared.json"
    assert main(["compare", A, B, "--json-out", str(out)]) == 0
    text = capsys.readouterr().out
    found = json.loads(out.read_text())
    assert text.splitlines()[0] == f"A  {A}: full-graph on 6 GPUs at 15Gbps"
    assert found["says"][0].startswith("B takes ")
    for word in ("exposed communication", "all-reduce", "nic0.tx", "worker 5"):
        assert word in text
    assert max(map(len, text.splitlines())) <= 110
    assert main(["compare", A, B, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == found


@pytest.mark.parametrize("path", ["nowhere", "nowhere.yaml", "nowhere.json#2"])
def test_a_source_that_is_not_there(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", A, path]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(f"gcnsim: {path}: ")
    assert captured.err.count("\n") == 1
