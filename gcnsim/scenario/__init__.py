"""The scenario: one validated question, its fields and options, and the machine that it resolves to."""

from gcnsim.scenario.brought import of_host
from gcnsim.scenario.catalogue_fields import figure_text
from gcnsim.scenario.faults import (
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
from gcnsim.scenario.load import (
    SCHEMA,
    from_mapping,
    load_scenario,
    paths,
    put_over,
    read_knob,
    rule_at,
    scenario_hash,
    section_text,
    to_mapping,
)
from gcnsim.scenario.measured import fill_measured
from gcnsim.scenario.method_section import from_knobs, knob_text, setting_text
from gcnsim.scenario.partition import AS_NUMBERED, BALANCED, IMBALANCE, PLACEMENTS, RANDOM, PartitionSpec
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
    ClusterSpec,
    Scenario,
    WorkloadSpec,
)
