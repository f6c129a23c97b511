"""What tests of faults ask: one scenario, and its study with faults injected."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gcnsim.scenario import from_mapping, read_injected
from gcnsim.simulation import Result, simulate_scenario

REDDIT: dict[str, Any] = {
    "schema": "gcnsim.scenario/1",
    "cluster": {"gpus": 4, "bandwidth": "15Gbps"},
    "workload": {"dataset": "reddit"},
    "run": {"iterations": 12},
}


def studied(question: dict[str, Any], *injected: str) -> Result:
    """One study, without the corners and the baseline of a whole answer."""
    return simulate_scenario(replace(from_mapping(question, "test"), faults=read_injected(injected)))
