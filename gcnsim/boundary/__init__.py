"""The exchange between workers as counts: of one run, or drawn from a boundary profile without a graph."""

from gcnsim.boundary.bins import MANY_PARTS, towards_one
from gcnsim.boundary.counts import AccessCounts, BatchCounts, Store, batch_counts, count_batches
from gcnsim.boundary.expected import ExpectedAccess
from gcnsim.boundary.packaged import (
    Interpolation,
    Misses,
    by_sizes,
    interpolation,
    left_out_error,
    outline_named,
    outline_of,
    profile_at,
    profile_end,
    profile_without,
    profiled_parts,
    shipped_parts,
    shipped_profile,
)
from gcnsim.boundary.profile import BoundaryProfile, class_inclusion, expected_rows, profile_of
from gcnsim.boundary.rescale import with_cross_edges
from gcnsim.boundary.sample_counts import cached_nodes, draw_access, draw_counts, expected_access, node_counts
from gcnsim.boundary.sizes_only import likely_cross_fraction, mean_ratio, outlined, published_profile
from gcnsim.boundary.stored import (
    ProfileOrigin,
    StoredProfile,
    enlarged,
    is_profile,
    read_profile,
    stored_profile,
    write_profile,
)

__all__ = [
    "MANY_PARTS",
    "AccessCounts",
    "BatchCounts",
    "BoundaryProfile",
    "ExpectedAccess",
    "Interpolation",
    "Misses",
    "ProfileOrigin",
    "Store",
    "StoredProfile",
    "batch_counts",
    "by_sizes",
    "cached_nodes",
    "class_inclusion",
    "count_batches",
    "draw_access",
    "draw_counts",
    "enlarged",
    "expected_access",
    "expected_rows",
    "interpolation",
    "is_profile",
    "left_out_error",
    "likely_cross_fraction",
    "mean_ratio",
    "node_counts",
    "outline_named",
    "outline_of",
    "outlined",
    "profile_at",
    "profile_end",
    "profile_of",
    "profile_without",
    "profiled_parts",
    "published_profile",
    "read_profile",
    "shipped_parts",
    "shipped_profile",
    "stored_profile",
    "towards_one",
    "with_cross_edges",
    "write_profile",
]
