"""The output of a training run: spans, their summary, the run folder, the progress line, the final table."""

from runtime.record.machine import hardware, peak_memory, versions
from runtime.record.progress import Progress
from runtime.record.recorder import MAIN_STREAM, Mark, Recorder, from_arrays, merge, to_arrays
from runtime.record.run_folder import IterationRow, LossLog, RunFolder, RunRecord, read_run
from runtime.record.summary import Summary, breakdown, summarise

__all__ = [
    "MAIN_STREAM",
    "IterationRow",
    "LossLog",
    "Mark",
    "Progress",
    "Recorder",
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
