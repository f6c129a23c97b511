"""What a training run leaves and says: spans, their summary, the run folder, the live line, the final table."""

from runtime.record.final_report import breakdown
from runtime.record.machine import hardware, peak_memory, versions
from runtime.record.merging import from_arrays, merge, to_arrays
from runtime.record.progress import Progress
from runtime.record.recorder import MAIN_STREAM, Mark, Recorder
from runtime.record.rows import IterationRow, LossLog
from runtime.record.run_folder import Run, RunFolder, RunRecord, read_run
from runtime.record.summary import Summary, summarise

__all__ = [
    "MAIN_STREAM",
    "IterationRow",
    "LossLog",
    "Mark",
    "Progress",
    "Recorder",
    "Run",
    "RunFolder",
    "RunRecord",
    "Summary",
    "breakdown",
    "from_arrays",
    "hardware",
    "merge",
    "peak_memory",
    "read_run",
    "summarise",
    "to_arrays",
    "versions",
]
