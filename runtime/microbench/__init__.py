"""Micro-benchmarks of this machine: the kernels of training, timed one by one, as raw measurements.

Every kernel is the code that training runs, never a look-alike, so a measurement moves when the code does. Nothing is
fitted here: `gcnsim` does that from the file. What this room's own modules import of torch is imported by the members
alone; the process that starts them computes nothing.
"""

from runtime.microbench.measurements import (
    FULL,
    KERNELS,
    QUICK,
    TINY,
    Measurement,
    MicrobenchRequest,
    TimeBudget,
    document,
    table,
    write,
)
from runtime.microbench.process_group import ProcessError, measured
