"""What the benchmarks share: a process timed from outside, a table, and the same figures as JSON in out/.

Only the standard library is imported: the peak memory that Linux reports for a child starts at what its parent held.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

OUT = Path(__file__).resolve().parents[1] / "out"


@dataclass(frozen=True, slots=True)
class Finished:
    """One process that has ended: its wall time, its largest resident set (bytes), and what it printed."""

    wall_s: float
    peak_bytes: int
    printed: str


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured figure, its unit, and the limit it must keep (`<= 2.0`, `>= 40000`; empty: none)."""

    name: str
    value: float
    unit: str
    limit: str = ""

    @property
    def kept(self) -> bool:
        """Whether the limit is kept."""
        if not self.limit:
            return True
        sign, bound = self.limit.split()
        return self.value <= float(bound) if sign == "<=" else self.value >= float(bound)


def finished(arguments: Sequence[str]) -> Finished:
    """Run `gcnsim` with `arguments` in a new process. Raises RuntimeError when it fails."""
    program = str(Path(sys.executable).with_name("gcnsim"))
    with tempfile.TemporaryFile("w+") as printed:
        start = time.perf_counter()
        process = subprocess.Popen([program, *arguments], stdout=printed, stderr=subprocess.STDOUT)
        _, status, used = os.wait4(process.pid, 0)
        wall = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        printed.seek(0)
        text = printed.read()
    if process.returncode != 0:
        raise RuntimeError(f"gcnsim {' '.join(arguments)}: exit code {process.returncode}: {text}")
    return Finished(wall, used.ru_maxrss * 1024, text)


def medians(arguments: Sequence[str], runs: int, wall_limit: str, peak_limit: str = "") -> list[Figure]:
    """Median wall time and peak memory of `runs` new processes, after one that warms the disk cache."""
    finished(arguments)
    all_runs = [finished(arguments) for _ in range(runs)]
    walls = [each.wall_s for each in all_runs]
    return [
        Figure("wall, median", median(walls), "s", wall_limit),
        Figure("wall, least", min(walls), "s"),
        Figure("wall, most", max(walls), "s"),
        Figure("peak memory, median", median(each.peak_bytes for each in all_runs) / 1e6, "MB", peak_limit),
    ]


def report(name: str, question: str, figures: Sequence[Figure]) -> int:
    """Print the figures and write out/NAME.json; return the exit code: 1 when a limit is missed."""
    sys.stdout.write(f"{name}: {question}\n")
    for each in figures:
        verdict = "" if not each.limit else f"   {each.limit} {'kept' if each.kept else 'MISSED'}"
        sys.stdout.write(f"  {each.name:<34} {each.value:>12,.4g} {each.unit}{verdict}\n")
    OUT.mkdir(exist_ok=True)
    content = {
        "benchmark": name,
        "question": question,
        "machine": machine(),
        "figures": [asdict(each) | {"kept": each.kept} for each in figures],
    }
    (OUT / f"{name}.json").write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    return 0 if all(each.kept for each in figures) else 1


def machine() -> dict[str, str | int | float]:
    """What the figures were measured on, and how busy it was."""
    model = next(
        (
            line.partition(":")[2].strip()
            for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
            if line.startswith("model name")
        ),
        platform.processor(),
    )
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "cpu": model,
        "cores": os.cpu_count() or 0,
        "memory_gib": round(memory, 1),
        "python": platform.python_version(),
        "load_1min": round(os.getloadavg()[0], 2),
    }
