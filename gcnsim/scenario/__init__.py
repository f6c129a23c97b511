"""The scenario: one validated question, read from YAML and written back without loss."""

from __future__ import annotations

from gcnsim.caching import CacheSize
from gcnsim.scenario.load import (
    SCHEMA,
    describe_schema,
    from_mapping,
    load_scenario,
    scenario_hash,
    to_mapping,
)
from gcnsim.scenario.rules import parse_cache
from gcnsim.scenario.specs import MOST_GPUS, ClusterSpec, MethodSpec, PartitionSpec, RunSpec, Scenario, WorkloadSpec

__all__ = [
    "MOST_GPUS",
    "SCHEMA",
    "CacheSize",
    "ClusterSpec",
    "MethodSpec",
    "PartitionSpec",
    "RunSpec",
    "Scenario",
    "WorkloadSpec",
    "describe_schema",
    "from_mapping",
    "load_scenario",
    "parse_cache",
    "scenario_hash",
    "to_mapping",
]
