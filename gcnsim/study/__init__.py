"""One run: scenario in, result out."""

from gcnsim.study.accesses import Accesses, open_accesses
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
from gcnsim.study.batches import TRAIN, plan_of
from gcnsim.study.corners import Corner
from gcnsim.study.estimated import estimated_counts, estimated_s
from gcnsim.study.expected_batches import WITHIN, degree_law, degree_spreads
from gcnsim.study.faults import refuse_undrawn
from gcnsim.study.graphs import GraphAccesses
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
from gcnsim.study.model import Declared, Model, resolve_model
from gcnsim.study.other_partition import (
    PARTITION,
    partition_factors,
    partition_note,
    scatter_of,
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
from gcnsim.study.published import BOUNDARY, CACHE_HITS, DISPERSION, LOAD, REMOTE, VR_ROWS, PublishedAccesses, Range
from gcnsim.study.recorded import CORE, device_of, scenario_of
from gcnsim.study.replays import TraceAccesses
from gcnsim.study.run_trace import refuse_other_trace
from gcnsim.study.steady import Steady, Window
from gcnsim.study.stored import ProfileAccesses
from gcnsim.study.straggler import EvenPartition, Straggler, evened, straggler_of
from gcnsim.study.study import Result, study, write_schedule
from gcnsim.study.surrogates import SurrogateAccesses, same_evidence
from gcnsim.study.tables import AsPublished, TableAccesses, random_parts
from gcnsim.study.utilization import utilization_of

__all__ = [
    "BOUNDARY",
    "CACHE_HITS",
    "CORE",
    "DISPERSION",
    "DRAWS",
    "LOAD",
    "NORMAL_90",
    "PARTITION",
    "REMOTE",
    "TRAIN",
    "VR_ROWS",
    "WITHIN",
    "WORKLOAD",
    "Accesses",
    "AsPublished",
    "Assumption",
    "Corner",
    "Declared",
    "EvenPartition",
    "Factors",
    "GraphAccesses",
    "HostStep",
    "Limit",
    "Metrics",
    "Model",
    "PartitionVariant",
    "Placed",
    "Placement",
    "ProfileAccesses",
    "PublishedAccesses",
    "Range",
    "Result",
    "SeedSpread",
    "Steady",
    "Straggler",
    "SurrogateAccesses",
    "TableAccesses",
    "TraceAccesses",
    "Window",
    "assumptions_of",
    "best_lower_s",
    "cores_used",
    "degree_law",
    "degree_spreads",
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
    "open_accesses",
    "partition_factors",
    "partition_note",
    "partition_seconds",
    "partition_setting",
    "partition_variants",
    "placements",
    "plan_of",
    "position",
    "random_parts",
    "refuse_other_trace",
    "refuse_undrawn",
    "refuse_unused_figures",
    "resolve_model",
    "same_evidence",
    "sampler_decides",
    "scatter_of",
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
