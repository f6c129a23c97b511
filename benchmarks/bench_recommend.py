"""A recommendation over some 500 settings, `gcnsim recommend --target-iteration 0.5s`, cold, in two processes.

`python -m benchmarks.bench_recommend`. Processor time is what is limited, since wall times depend on what else runs.
"""

from __future__ import annotations

import json
import resource
import sys

from benchmarks.measuring import Figure, finished, report

LIMIT_S = 20.0
"""Of processor time: ten seconds of two cores."""

COMMAND = ("recommend", "--dataset", "reddit", "--target-iteration", "0.5s", "--cache", "0%,30%", "--processes", "2")
"""Two caches in place of three, so that there are about 500 settings."""

RUNS = 3


def main() -> int:
    """Measure the least of a few runs; return the exit code."""
    seconds, wall = [], []
    for _ in range(RUNS):
        before = _used()
        done = finished([*COMMAND, "--json"])
        seconds.append(_used() - before)
        wall.append(done.wall_s)
    content = json.loads(done.printed)
    search = content["search"]
    assert [entry["same"] for entry in content["confirmed"]] == [True] * 3, content["confirmation"]
    assert search["settings"] >= 450, search
    figures = [
        Figure("processor time, least of three", min(seconds), "s", f"<= {LIMIT_S:g}"),
        Figure("wall, least of three", min(wall), "s"),
        Figure("settings", search["settings"], ""),
        Figure("simulated", search["simulated"], ""),
    ]
    return report("recommend", f"gcnsim {' '.join(COMMAND)}", figures)


def _used() -> float:
    """Seconds of processor time of all processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    sys.exit(main())
