"""A sweep of 10,000 points of 6 to 16 GPUs, and what it costs to start it again when it is finished.

    python -m benchmarks.bench_sweep            all points, minutes
    python -m benchmarks.bench_sweep 0.1        a tenth: fewer sampling rates; of less, fewer bandwidths too

Points are grouped as a planner's grid is: 25 bandwidths of 4 machines for each setting of the methods.
"""

from __future__ import annotations

import resource
import sys
import tempfile
from pathlib import Path

from benchmarks.measuring import Figure, finished, peak_bytes, report

POINTS = 10_000
MACHINES = 100
OTHERS = 5
"""Settings of the methods beside psc-gcn."""


def arguments(share: float) -> list[str]:
    """The options of a sweep of about this share of `POINTS`."""
    bandwidths = max(2, min(25, round(250 * share)))
    rates = max(1, round((share * POINTS / MACHINES - OTHERS) / 5))
    return [
        "sweep",
        "--axis",
        "cluster.gpus=6,8,12,16",
        "--axis",
        f"cluster.bandwidth=linear(1Gbps,100Gbps,{bandwidths})",
        "--axis",
        "method.name=psc-gcn,full-graph,pipegcn,bns-gcn",
        "--axis",
        "method.tau=0..4",
        "--axis",
        f"method.epsilon=linear(0.05,0.95,{rates})" if rates > 1 else "method.epsilon=0.1",
        "--axis",
        "method.rate=0.1,0.2,0.5",
    ]


def _processor_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> int:
    """Measure; return the exit code."""
    share = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
    with tempfile.TemporaryDirectory() as folder:
        requested = [*arguments(share), "--out", str(Path(folder) / "out")]
        before = _processor_s()
        first = finished(requested)
        taken = _processor_s() - before
        count = int(
            next(line for line in first.printed.splitlines() if line.startswith("done")).split()[1].replace(",", "")
        )
        again = min(finished(requested).wall_s for _ in range(3))
        held = peak_bytes([*arguments(min(share, 0.3)), "--out", str(Path(folder) / "small")])
    figures = [
        Figure("points", count, ""),
        Figure("wall", first.wall_s, "s"),
        Figure("a point, of one core", 1e3 * taken / count, "ms"),
        Figure("finished, started again", again, "s", "<= 2.0"),
        Figure("peak memory, all processes", held / 1e6, "MB", "<= 1500"),
    ]
    return report("sweep", f"gcnsim {' '.join(requested)}", figures)


if __name__ == "__main__":
    sys.exit(main())
