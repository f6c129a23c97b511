"""The cold main command: `gcnsim what-if --bandwidth 15Gbps --gpus 6` in a new process, wall time and peak memory; then
the wall time of 24 GPUs."""

from __future__ import annotations

import sys
from statistics import median

from benchmarks.measuring import Figure, finished, medians, report

ARGUMENTS = ("what-if", "--bandwidth", "15Gbps", "--gpus", "6")
RUNS, LARGER_RUNS = 7, 3


def main() -> int:
    """Measure; return the exit code."""
    printed = finished(ARGUMENTS).printed
    assert all(method in printed for method in ("full-graph", "pipegcn", "psc-gcn")), printed
    assert "Recommendation" in printed, printed
    figures = medians(ARGUMENTS, RUNS, wall_limit="<= 1.0", peak_limit="<= 130")
    larger = median(finished((*ARGUMENTS[:-1], "24")).wall_s for _ in range(LARGER_RUNS))
    figures.append(Figure("24 GPUs: wall, median", larger, "s", "<= 10"))
    return report("what_if", f"gcnsim {' '.join(ARGUMENTS)}, {RUNS} new processes", figures)


if __name__ == "__main__":
    sys.exit(main())
