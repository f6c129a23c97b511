"""`gcnsim compare` from the outside."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gcnsim.cli import main
from tests.gcnsim.cli.conftest import Refused
from tests.gcnsim.records.made_traces import folder

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
def test_a_source_that_is_not_there(path: str, refused: Refused) -> None:
    assert refused("compare", A, path).startswith(f"gcnsim: {path}: ")


def test_a_trace_of_a_profiler_and_what_is_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], refused: Refused
) -> None:
    traces = folder(tmp_path / "traces")
    names = tmp_path / "names.yaml"
    names.write_text("schema: gcnsim.trace-names/1\nnames: {sample: my_*}\n")
    assert main(["compare", str(traces), str(traces), "--names", str(names)]) == 0
    assert "2 GPUs, 4 iterations, measured by the PyTorch profiler" in capsys.readouterr().out
    bad = tmp_path / "bad.json"
    bad.write_text('{"traceEvents": [')
    for given in ([str(bad), A], [str(traces), str(traces), "--names", str(bad)]):
        assert refused("compare", *given).startswith(f"gcnsim: {bad}:")
    text = refused("compare", traces, traces, "--names", names, "--json-out", names)
    assert "is read by this command and would be replaced" in text


def test_a_result_that_lacks_a_part_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], refused: Refused
) -> None:
    assert main(["simulate", B, "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    path = tmp_path / "result.json"
    del content["scenario"]["cluster"]["gpus"]
    path.write_text(json.dumps(content))
    assert main(["compare", str(path), A]) == 0
    assert "cluster.gpus" in capsys.readouterr().out
    del content["memory"]["tightest"]
    path.write_text(json.dumps(content))
    assert refused("compare", path, A) == f"gcnsim: {path}: memory: lacks 'tightest'; not what gcnsim simulate writes\n"
