"""Micro-benchmarks of this machine: the kernels of training, timed one by one, as raw measurements.

Every kernel is the code that training runs, never a look-alike, so a measurement moves when the code does. Nothing is
fitted here: `gcnsim` does that from the file. What this room's own modules import of torch is imported by the members
alone; the process that starts them computes nothing.
"""

from runtime.profiling.asked import FULL, QUICK, TINY, Asked, Budget
from runtime.profiling.crew import MemberError, measured
from runtime.profiling.kernels import KERNELS, Measurement
from runtime.profiling.report import document, table, write

__all__ = [
    "FULL",
    "KERNELS",
    "QUICK",
    "TINY",
    "Asked",
    "Budget",
    "Measurement",
    "MemberError",
    "document",
    "measured",
    "table",
    "write",
]
