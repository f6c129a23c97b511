"""Files that hold what ran: spans of a run, simulated or measured, and the norms a training run leaves."""

from gcnsim.record.chrome import write_chrome_trace
from gcnsim.record.norms import read_norms, write_norms
from gcnsim.record.spans import read_spans, write_spans

__all__ = ["read_norms", "read_spans", "write_chrome_trace", "write_norms", "write_spans"]
