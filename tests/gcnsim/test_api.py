"""The Python API: a what-if in three lines, the same answers as the command line."""

from __future__ import annotations

import json

import pytest

import gcnsim
from gcnsim.cli import main


def test_what_if_in_three_lines_equals_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    answer = gcnsim.what_if(bandwidth="10Gbps", gpus=2, method="psc-gcn")
    assert main(["what-if", "--bandwidth", "10Gbps", "--gpus", "2", "--method", "psc-gcn", "--json"]) == 0
    assert dict(answer.payload) == json.loads(capsys.readouterr().out)
    assert answer.recommendation["iteration_s"] > 0
    assert "Recommendation" in str(answer)


def test_simulate_takes_a_mapping() -> None:
    mapping = {"schema": "gcnsim.scenario/1", "cluster": {"gpus": 2}, "method": {"name": "pipegcn"}}
    simulation = gcnsim.simulate(mapping)
    assert simulation.payload["result"]["method"] == "pipegcn"
    assert simulation.result.metrics.iteration_s == simulation.payload["result"]["iteration_s"]
    assert "pipegcn" in str(simulation)


def test_an_empty_list_and_a_bad_value_are_refused() -> None:
    from gcnsim.errors import GcnsimError

    with pytest.raises(GcnsimError, match="empty list"):
        gcnsim.what_if(gpus=[])
    with pytest.raises(GcnsimError, match="needs its unit"):
        gcnsim.what_if(bandwidth="10")


def test_long_work_tells_how_many_runs_are_done() -> None:
    said: list[str] = []
    gcnsim.what_if(dataset="reddit", gpus=2, iterations=1, processes=1, progress=said.append)
    counted = [line for line in said if "runs done" in line]
    assert counted[0].startswith("simulating 4 settings and 3 candidates: 1 of ")
    assert any(line.startswith("trying the next step of each knob: ") for line in counted)
    done, total = counted[-1].split(": ")[1].split(" runs")[0].split(" of ")
    assert done == total
