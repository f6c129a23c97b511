"""Files that hold what ran: spans of a run, simulated or measured, and the norms a training run leaves."""

from gcnsim.record.calibration import (
    Calibration,
    Fitted,
    Residual,
    Source,
    content_hash,
    read_calibration,
    write_calibration,
)
from gcnsim.record.chrome import write_chrome_trace
from gcnsim.record.norms import read_norms, write_norms
from gcnsim.record.runs import RecordedRun, Shares, read_recorded_run
from gcnsim.record.spans import read_spans, write_spans

__all__ = [
    "Calibration",
    "Fitted",
    "RecordedRun",
    "Residual",
    "Shares",
    "Source",
    "content_hash",
    "read_calibration",
    "read_norms",
    "read_recorded_run",
    "read_spans",
    "write_calibration",
    "write_chrome_trace",
    "write_norms",
    "write_spans",
]
