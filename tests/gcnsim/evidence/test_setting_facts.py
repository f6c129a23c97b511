"""What a side was asked of, field by field."""

from __future__ import annotations

from gcnsim.evidence.setting_facts import differing, facts_of, facts_of_row
from gcnsim.results import Row
from tests.gcnsim.results.made import DOCUMENT


def test_a_row_has_its_own_machine_not_that_of_the_first() -> None:
    scenario = {"cluster": {"gpus": 2, "bandwidth": "10Gbps", "device": "t4"}, "method": {"name": "full-graph"}}
    found = facts_of_row(scenario, Row.read(DOCUMENT | {"device": "a100-40"}))
    machine = [found[f"cluster.{name}"] for name in ("gpus", "bandwidth", "device")]
    assert machine == ["4", "25Gbps", "a100-40"]
    first = facts_of_row(scenario, Row.read(DOCUMENT))
    assert differing(found, first, alike=True) == [{"field": "cluster.device", "a": "a100-40", "b": "t4"}]


def test_a_fault_is_written_as_it_is_asked_for_also_where_a_file_left_its_kind_out() -> None:
    faults = [{"kind": "slow-worker", "worker": 1, "factor": 2.0}, {"worker": 0}]
    assert facts_of({"faults": faults}) == {"faults": "slow-worker:worker=1,factor=2; unset:worker=0"}
