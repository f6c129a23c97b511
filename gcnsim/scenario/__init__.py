"""The scenario: one validated question, read from YAML and written back without loss."""

from __future__ import annotations

from gcnsim.caching import CacheSize, parse_cache
from gcnsim.scenario.faults import (
    FAULTS,
    Background,
    Fault,
    Jitter,
    LossyLink,
    Pause,
    SlowGpu,
    SlowLink,
    fault_lines,
    fault_words,
    read_injected,
)
from gcnsim.scenario.figures import figure_text
from gcnsim.scenario.load import (
    SCHEMA,
    describe_schema,
    from_mapping,
    load_scenario,
    read_knob,
    scenario_hash,
    to_mapping,
)
from gcnsim.scenario.method_section import written_knobs
from gcnsim.scenario.partition import IMBALANCE, PartitionSpec
from gcnsim.scenario.specs import (
    AUTO,
    COARSE,
    COARSE_FROM,
    EXACT,
    MOST_GPUS,
    ClusterSpec,
    RunSpec,
    Scenario,
    WorkloadSpec,
)
from gcnsim.scenario.words import knob_text, setting_text

__all__ = [
    "AUTO",
    "COARSE",
    "COARSE_FROM",
    "EXACT",
    "FAULTS",
    "IMBALANCE",
    "MOST_GPUS",
    "SCHEMA",
    "Background",
    "CacheSize",
    "ClusterSpec",
    "Fault",
    "Jitter",
    "LossyLink",
    "PartitionSpec",
    "Pause",
    "RunSpec",
    "Scenario",
    "SlowGpu",
    "SlowLink",
    "WorkloadSpec",
    "describe_schema",
    "fault_lines",
    "fault_words",
    "figure_text",
    "from_mapping",
    "knob_text",
    "load_scenario",
    "parse_cache",
    "read_injected",
    "read_knob",
    "scenario_hash",
    "setting_text",
    "to_mapping",
    "written_knobs",
]
