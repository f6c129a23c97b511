"""One scenario simulated from Python: from a file or a mapping, with overrides, and what is written of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import gcnsim
from gcnsim.api import write_result
from gcnsim.core.errors import ScenarioError

SMALL: dict[str, Any] = {
    "schema": "gcnsim.scenario/1",
    "name": "small",
    "cluster": {"gpus": 2, "gpus_per_server": 1},
    "method": {"name": "full-graph"},
    "run": {"iterations": 2},
}


def test_a_file_and_its_mapping_are_one_scenario(tmp_path: Path) -> None:
    path = tmp_path / "small.yaml"
    path.write_text(json.dumps(SMALL))
    overrides = ["cluster.bandwidth=5Gbps"]
    one, other = (gcnsim.simulate(source, overrides).payload for source in (path, SMALL))
    assert one == other
    assert one["scenario"]["cluster"]["bandwidth"] == "5Gbps"
    assert one["result"]["iteration_s"] > gcnsim.simulate(path).payload["result"]["iteration_s"]


def test_faults_are_those_of_the_scenario_and_those_injected() -> None:
    content = gcnsim.simulate(SMALL | {"faults": [{"kind": "slow-gpu"}]}, inject=["slow-link:link=nic0"]).payload
    assert [fault["kind"] for fault in content["scenario"]["faults"]] == ["slow-gpu", "slow-link"]
    with pytest.raises(ScenarioError, match=r"--inject pause.worker: 2: no such worker; allowed: 0 to 1"):
        gcnsim.simulate(SMALL, inject=["pause:worker=2"])


def test_the_result_and_its_spans_are_written_into_a_folder(tmp_path: Path) -> None:
    simulation = gcnsim.simulate(SMALL)
    write_result(simulation, tmp_path / "new")
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == ["result.json", "spans.parquet"]
    content = json.loads((tmp_path / "new" / "result.json").read_text())
    assert content["result"] == json.loads(json.dumps(simulation.payload["result"]))
    stored = pq.read_schema(tmp_path / "new" / "spans.parquet").metadata
    assert stored[b"scenario_hash"].decode() == content["provenance"]["scenario_hash"]
    assert stored[b"seed"] == b"0"
