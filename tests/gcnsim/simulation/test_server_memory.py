from __future__ import annotations

from typing import Any

import gcnsim
from gcnsim.planning.study import Studies
from gcnsim.results import Row
from gcnsim.scenario import Scenario, from_mapping
from gcnsim.simulation import Result
from gcnsim.simulation.server_memory import least_servers


def asked(method: str, host: str, gpus: int, **cluster: Any) -> Scenario:
    raw = {
        "schema": "gcnsim.scenario/1",
        "cluster": {"host": host, "gpus": gpus} | cluster,
        "workload": {"dataset": "ogbn-papers100M"},
        "method": {"name": method},
    }
    return from_mapping(raw, "test")


def result(scenario: Scenario) -> Result:
    return Studies(scenario).result(scenario)


def test_a_whole_graph_does_not_fit_a_small_server_however_many_there_are() -> None:
    found = result(asked("dgl", "g4dn.xlarge", 1))
    memory, room = found.server_memory, found.machine.server_capacity
    assert memory is not None
    assert room == 16 * 2**30
    assert memory[0].total > 70e9
    assert found.server_fits is False
    assert found.fits is False, "whatever its GPU has room for"
    assert least_servers(found.scenario, memory, room) is None


def test_parts_fit_more_servers() -> None:
    found = result(asked("distdgl", "g4dn.12xlarge", 8, gpus_per_server=1))
    memory, room = found.server_memory, found.machine.server_capacity
    assert memory is not None
    assert room is not None
    assert len(memory) == 8
    assert found.server_fits
    two = result(asked("distdgl", "g5.xlarge", 2))
    assert two.server_memory is not None
    assert two.machine.server_capacity is not None
    least = least_servers(two.scenario, two.server_memory, two.machine.server_capacity)
    assert least is not None
    enough = result(asked("distdgl", "g5.xlarge", least))
    assert enough.server_fits


def only_row(**question: Any) -> tuple[Row, str]:
    answer = gcnsim.what_if(dataset="ogbn-papers100M", **question)
    return answer.rows[0], answer.told.recommendation.verdict


def test_mini_batches_need_no_boundary() -> None:
    """papers100M has no published boundary below 32 parts; DGL reads none."""
    row, verdict = only_row(host="p4d.24xlarge", gpus=4, method="dgl")
    assert row.fits
    assert row.speedup_vs_full_graph is None
    assert verdict.startswith("Use dgl")


def test_what_does_not_fit_is_not_recommended() -> None:
    row, verdict = only_row(host="g4dn.xlarge", gpus=1, method="dgl")
    assert row.fits is False
    assert verdict.startswith(
        "None of the settings fits. Dgl on 1 GPU does not fit the server's memory (g4dn.xlarge): "
    )
    assert "of 16" in verdict
