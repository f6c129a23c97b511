"""Access traces: what drawn graphs ask of other workers, recorded from real partitions or drawn from a profile."""

from gcnsim.trace.access import AccessTrace, TraceOrigin, WorkerAccess
from gcnsim.trace.counting import counts
from gcnsim.trace.counts import AccessCounts
from gcnsim.trace.drawing import cached_nodes, draw_counts, node_counts
from gcnsim.trace.files import read_trace, write_trace
from gcnsim.trace.node_recording import record_nodes
from gcnsim.trace.profile import BoundaryProfile, class_inclusion, expected_rows, profile_of
from gcnsim.trace.published import likely_cross_fraction, published_profile
from gcnsim.trace.recording import PreparedSampling, local_norms, prepared_sampling, record_prepared, record_trace
from gcnsim.trace.summary import WorkerSummary, summarise

__all__ = [
    "AccessCounts",
    "AccessTrace",
    "BoundaryProfile",
    "PreparedSampling",
    "TraceOrigin",
    "WorkerAccess",
    "WorkerSummary",
    "cached_nodes",
    "class_inclusion",
    "counts",
    "draw_counts",
    "expected_rows",
    "likely_cross_fraction",
    "local_norms",
    "node_counts",
    "prepared_sampling",
    "profile_of",
    "published_profile",
    "read_trace",
    "record_nodes",
    "record_prepared",
    "record_trace",
    "summarise",
    "write_trace",
]
