"""The uncertainty of an iteration time that comes from assumptions."""

from gcnsim.uncertainty.assumed import (
    DRAWS,
    NORMAL_90,
    Assumption,
    OtherPath,
    assumptions_of,
    normal_position,
    other_paths,
    path_by_draw,
    position,
    refuse_unused_figures,
    used_figures,
)
from gcnsim.uncertainty.open_assumptions import (
    WORKLOAD,
    DrawnRuns,
    can_batch_draws,
    estimated_counts,
    estimated_s,
    paces_to_factors,
)
from gcnsim.uncertainty.placement import (
    PARTITION,
    PartOrder,
    Placed,
    partition_factors,
    placements,
    scattered,
    statistics_warning,
)
from gcnsim.uncertainty.propagation import TimeFactors, best_lower_s, factors, with_figures

__all__ = [
    "DRAWS",
    "NORMAL_90",
    "PARTITION",
    "WORKLOAD",
    "Assumption",
    "DrawnRuns",
    "OtherPath",
    "PartOrder",
    "Placed",
    "TimeFactors",
    "assumptions_of",
    "best_lower_s",
    "can_batch_draws",
    "estimated_counts",
    "estimated_s",
    "factors",
    "normal_position",
    "other_paths",
    "paces_to_factors",
    "partition_factors",
    "path_by_draw",
    "placements",
    "position",
    "refuse_unused_figures",
    "scattered",
    "statistics_warning",
    "used_figures",
    "with_figures",
]
