"""One run: scenario in, result out."""

from gcnsim.study.assumed import (
    DRAWS,
    NORMAL_90,
    Assumption,
    assumptions_of,
    normal_position,
    position,
    refuse_unused_figures,
    used_figures,
)
from gcnsim.study.estimated import estimated_counts, estimated_s
from gcnsim.study.faults import refuse_undrawn
from gcnsim.study.host_steps import (
    HostStep,
    cores_used,
    gpu_sampler,
    host_steps,
    more_cores,
    more_sampler_threads,
    sampler_decides,
    why_cores_do_not_matter,
)
from gcnsim.study.least import holds, least_gpus, told_at_any
from gcnsim.study.limit import Limit
from gcnsim.study.memory import fits, memory_of, tightest
from gcnsim.study.metrics import Metrics, link_units, measure
from gcnsim.study.other_partition import (
    PARTITION,
    partition_factors,
    scattered,
    statistics_warning,
)
from gcnsim.study.partitions import (
    PartitionVariant,
    SeedSpread,
    partition_seconds,
    partition_setting,
    partition_variants,
    seeds_of,
)
from gcnsim.study.parts import made_up, worker_parts
from gcnsim.study.placement import Placed, Placement, placements
from gcnsim.study.propagation import (
    WORKLOAD,
    Factors,
    best_lower_s,
    factors,
    with_figures,
)
from gcnsim.study.recorded import CORE, device_of, scenario_of
from gcnsim.study.run_trace import refuse_other_trace
from gcnsim.study.steady import Steady, Window
from gcnsim.study.straggler import EvenPartition, Straggler, evened, straggler_of
from gcnsim.study.study import Result, study, write_schedule
from gcnsim.study.utilization import utilization_of

__all__ = [
    "CORE",
    "DRAWS",
    "NORMAL_90",
    "PARTITION",
    "WORKLOAD",
    "Assumption",
    "EvenPartition",
    "Factors",
    "HostStep",
    "Limit",
    "Metrics",
    "PartitionVariant",
    "Placed",
    "Placement",
    "Result",
    "SeedSpread",
    "Steady",
    "Straggler",
    "Window",
    "assumptions_of",
    "best_lower_s",
    "cores_used",
    "device_of",
    "estimated_counts",
    "estimated_s",
    "evened",
    "factors",
    "fits",
    "gpu_sampler",
    "holds",
    "host_steps",
    "least_gpus",
    "link_units",
    "made_up",
    "measure",
    "memory_of",
    "more_cores",
    "more_sampler_threads",
    "normal_position",
    "partition_factors",
    "partition_seconds",
    "partition_setting",
    "partition_variants",
    "placements",
    "position",
    "refuse_other_trace",
    "refuse_undrawn",
    "refuse_unused_figures",
    "sampler_decides",
    "scattered",
    "scenario_of",
    "seeds_of",
    "statistics_warning",
    "straggler_of",
    "study",
    "tightest",
    "told_at_any",
    "used_figures",
    "utilization_of",
    "why_cores_do_not_matter",
    "with_figures",
    "worker_parts",
    "write_schedule",
]
