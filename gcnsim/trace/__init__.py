"""Rows that workers need of one another: access traces of drawn graphs, boundary profiles, and their counts."""

from gcnsim.trace.access import (
    AccessTrace,
    TraceOrigin,
    WorkerAccess,
    WorkerSummary,
    read_trace,
    summarise,
    write_trace,
)
from gcnsim.trace.batches import BatchOrigin, BatchTrace, packed, read_batch_trace, write_batch_trace
from gcnsim.trace.cache_replay import CacheCurve, CachePoint, CacheTally, Replay, cache_curve
from gcnsim.trace.recording import (
    AccessRecorder,
    PreparedSampling,
    local_norms,
    prepared_sampling,
    record_nodes,
    record_prepared,
    record_trace,
    recorded_trace,
)

__all__ = [
    "AccessRecorder",
    "AccessTrace",
    "BatchOrigin",
    "BatchTrace",
    "CacheCurve",
    "CachePoint",
    "CacheTally",
    "PreparedSampling",
    "Replay",
    "TraceOrigin",
    "WorkerAccess",
    "WorkerSummary",
    "cache_curve",
    "local_norms",
    "packed",
    "prepared_sampling",
    "read_batch_trace",
    "read_trace",
    "record_nodes",
    "record_prepared",
    "record_trace",
    "recorded_trace",
    "summarise",
    "write_batch_trace",
    "write_trace",
]
