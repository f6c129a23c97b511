"""Access traces: what drawn graphs ask of other workers, recorded from real partitions or drawn from a profile."""

from gcnsim.trace.access import AccessTrace, TraceOrigin, WorkerAccess
from gcnsim.trace.batches import BatchCounts, Store, count_batches
from gcnsim.trace.cache_comparison import CacheCurve, CachePoint, cache_curve
from gcnsim.trace.cache_replay import CacheTally, Replay
from gcnsim.trace.cells import towards_one
from gcnsim.trace.counting import counts
from gcnsim.trace.counts import AccessCounts
from gcnsim.trace.drawing import cached_nodes, draw_counts, node_counts
from gcnsim.trace.files import read_trace, write_trace
from gcnsim.trace.node_recording import record_nodes
from gcnsim.trace.profile import BoundaryProfile, class_inclusion, expected_rows, profile_of
from gcnsim.trace.profile_drawing import ExpectedAccess, draw_access, expected_access
from gcnsim.trace.profile_files import is_profile, read_profile, write_profile
from gcnsim.trace.published import likely_cross_fraction, published_profile
from gcnsim.trace.recording import PreparedSampling, local_norms, prepared_sampling, record_prepared, record_trace
from gcnsim.trace.resizing import with_cross_edges
from gcnsim.trace.shipped import (
    Interpolation,
    Misses,
    interpolation,
    left_out_error,
    profile_at,
    profile_end,
    profile_without,
    profiled_parts,
    shipped_parts,
    shipped_profile,
)
from gcnsim.trace.stored_profile import ProfileOrigin, StoredProfile, enlarged, stored_profile
from gcnsim.trace.summary import WorkerSummary, summarise

__all__ = [
    "AccessCounts",
    "AccessTrace",
    "BatchCounts",
    "BoundaryProfile",
    "CacheCurve",
    "CachePoint",
    "CacheTally",
    "ExpectedAccess",
    "Interpolation",
    "Misses",
    "PreparedSampling",
    "ProfileOrigin",
    "Replay",
    "Store",
    "StoredProfile",
    "TraceOrigin",
    "WorkerAccess",
    "WorkerSummary",
    "cache_curve",
    "cached_nodes",
    "class_inclusion",
    "count_batches",
    "counts",
    "draw_access",
    "draw_counts",
    "enlarged",
    "expected_access",
    "expected_rows",
    "interpolation",
    "is_profile",
    "left_out_error",
    "likely_cross_fraction",
    "local_norms",
    "node_counts",
    "prepared_sampling",
    "profile_at",
    "profile_end",
    "profile_of",
    "profile_without",
    "profiled_parts",
    "published_profile",
    "read_profile",
    "read_trace",
    "record_nodes",
    "record_prepared",
    "record_trace",
    "shipped_parts",
    "shipped_profile",
    "stored_profile",
    "summarise",
    "towards_one",
    "with_cross_edges",
    "write_profile",
    "write_trace",
]
