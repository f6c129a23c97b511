"""Files that hold what ran: spans of a run, simulated or measured, and the norms a training run leaves.

What few commands need resolves on first use: traces of profilers, timelines.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gcnsim.late import late
from gcnsim.record.calibration import (
    Calibration,
    Fitted,
    Residual,
    Source,
    content_hash,
    read_calibration,
    write_calibration,
)
from gcnsim.record.calibration_shape import wrong_figure
from gcnsim.record.cluster import CLUSTER, Cluster, read_cluster, write_cluster
from gcnsim.record.measurements import Measurement, Measurements, read_measurements
from gcnsim.record.norms import read_norms, write_norms
from gcnsim.record.ranges import beyond, settings
from gcnsim.record.run_files import read_text
from gcnsim.record.run_notes import first_repeat, link_notes, trace_notes, version_notes
from gcnsim.record.runs import (
    COMPUTE,
    TIMELINE,
    TRACE,
    LearningCurve,
    RecordedRun,
    Shares,
    evaluated_after,
    read_learning_curve,
    read_recorded_run,
)
from gcnsim.record.schema import mistakes
from gcnsim.record.strict_json import parse_json

if TYPE_CHECKING:
    from gcnsim.record.chrome import write_chrome_trace
    from gcnsim.record.measured import Measured, interval_of_mean, read_measured
    from gcnsim.record.profiled_run import ProfiledRun, is_profiler_trace, read_profiled_run
    from gcnsim.record.run_trace import RunFacts, write_run_trace
    from gcnsim.record.spans import read_spans, write_spans
    from gcnsim.record.trace_names import Names, read_names

__all__ = [
    "CLUSTER",
    "COMPUTE",
    "TIMELINE",
    "TRACE",
    "Calibration",
    "Cluster",
    "Fitted",
    "LearningCurve",
    "Measured",
    "Measurement",
    "Measurements",
    "Names",
    "ProfiledRun",
    "RecordedRun",
    "Residual",
    "RunFacts",
    "Shares",
    "Source",
    "beyond",
    "content_hash",
    "evaluated_after",
    "first_repeat",
    "interval_of_mean",
    "is_profiler_trace",
    "link_notes",
    "mistakes",
    "parse_json",
    "read_calibration",
    "read_cluster",
    "read_learning_curve",
    "read_measured",
    "read_measurements",
    "read_names",
    "read_norms",
    "read_profiled_run",
    "read_recorded_run",
    "read_spans",
    "read_text",
    "settings",
    "trace_notes",
    "version_notes",
    "write_calibration",
    "write_chrome_trace",
    "write_cluster",
    "write_norms",
    "write_run_trace",
    "write_spans",
    "wrong_figure",
]

_LATE: Final = {
    "gcnsim.record.chrome": ("write_chrome_trace",),
    "gcnsim.record.measured": (
        "Measured",
        "interval_of_mean",
        "read_measured",
    ),
    "gcnsim.record.profiled_run": (
        "ProfiledRun",
        "is_profiler_trace",
        "read_profiled_run",
    ),
    "gcnsim.record.run_trace": (
        "RunFacts",
        "write_run_trace",
    ),
    "gcnsim.record.spans": (
        "read_spans",
        "write_spans",
    ),
    "gcnsim.record.trace_names": (
        "Names",
        "read_names",
    ),
}
"""The modules that are imported on first use, and the names that each has."""

__getattr__ = late(__name__, _LATE)
