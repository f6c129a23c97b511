"""What could be otherwise: the host side, the number of GPUs, the partition."""

from gcnsim.alternatives.host_options import (
    KnobChange,
    cores_used,
    gpu_sampler,
    host_steps,
    more_cores,
    more_sampler_threads,
    sampler_decides,
    why_cores_do_not_matter,
)
from gcnsim.alternatives.min_gpus import holds, known_at_other_sizes, least_gpus
from gcnsim.alternatives.partition_variants import (
    PartitionVariant,
    SeedSpread,
    partition_seconds,
    partition_setting,
    partition_variants,
    seeds_of,
)
from gcnsim.alternatives.path_steps import path_steps, staging_decides

__all__ = [
    "KnobChange",
    "PartitionVariant",
    "SeedSpread",
    "cores_used",
    "gpu_sampler",
    "holds",
    "host_steps",
    "known_at_other_sizes",
    "least_gpus",
    "more_cores",
    "more_sampler_threads",
    "partition_seconds",
    "partition_setting",
    "partition_variants",
    "path_steps",
    "sampler_decides",
    "seeds_of",
    "staging_decides",
    "why_cores_do_not_matter",
]
