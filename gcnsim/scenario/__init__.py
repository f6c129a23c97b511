"""The scenario: one validated question, read from YAML and written back without loss."""

from __future__ import annotations

from gcnsim.caching import CacheSize, parse_cache
from gcnsim.scenario.brought import of_host
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
from gcnsim.scenario.field_rules import rule_at
from gcnsim.scenario.figures import figure_text
from gcnsim.scenario.load import (
    SCHEMA,
    describe_schema,
    from_mapping,
    load_scenario,
    paths,
    put_over,
    read_knob,
    scenario_hash,
    section_text,
    to_mapping,
)
from gcnsim.scenario.measured import fill_measured
from gcnsim.scenario.method_section import from_knobs, read_method, written_knobs
from gcnsim.scenario.partition import IMBALANCE, PartitionSpec
from gcnsim.scenario.specs import (
    AUTO,
    COARSE,
    COARSE_FROM,
    DEFAULT_DATASET,
    DIRECT,
    EXACT,
    LEAN,
    MOST_GPUS,
    RELEASED,
    SOURCES,
    STAGED,
    TRANSPORTS,
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
    "DEFAULT_DATASET",
    "DIRECT",
    "EXACT",
    "FAULTS",
    "IMBALANCE",
    "LEAN",
    "MOST_GPUS",
    "RELEASED",
    "SCHEMA",
    "SOURCES",
    "STAGED",
    "TRANSPORTS",
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
    "fill_measured",
    "from_knobs",
    "from_mapping",
    "knob_text",
    "load_scenario",
    "of_host",
    "parse_cache",
    "paths",
    "put_over",
    "read_injected",
    "read_knob",
    "read_method",
    "rule_at",
    "scenario_hash",
    "section_text",
    "setting_text",
    "to_mapping",
    "written_knobs",
]
