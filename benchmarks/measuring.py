"""What the benchmarks share: a command timed from outside, a table, and the same figures as JSON in out/."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

from gcnsim.core.resources import usable_resources

OUT = Path(__file__).resolve().parents[1] / "out"


@dataclass(frozen=True, slots=True)
class Finished:
    """One command that has ended: its wall time, and what it printed."""

    wall_s: float
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


def finished(arguments: Sequence[str], watch: Callable[[int], None] = lambda _: None) -> Finished:
    """Run `gcnsim` with `arguments` in a new process; `watch` is called with its id while it runs.

    Raises RuntimeError when it fails.
    """
    program = str(Path(sys.executable).with_name("gcnsim"))
    with tempfile.TemporaryFile("w+") as printed:
        start = time.perf_counter()
        process = subprocess.Popen([program, *arguments], stdout=printed, stderr=subprocess.STDOUT)
        watch(process.pid)
        code = process.wait()
        wall = time.perf_counter() - start
        printed.seek(0)
        text = printed.read()
    if code != 0:
        raise RuntimeError(f"gcnsim {' '.join(arguments)}: exit code {code}: {text}")
    return Finished(wall, text)


def peak_bytes(arguments: Sequence[str]) -> int:
    """Most memory that `gcnsim` with `arguments` and all its processes held at once, looked at every 10 ms.

    The sum of their proportional set sizes: a page that several share counts once. Looking costs time, so a run that is
    looked at is not timed.
    """
    peak = 0

    def watch(pid: int) -> None:
        nonlocal peak
        while held := held_bytes(pid):
            peak = max(peak, held)
            time.sleep(0.01)

    finished(arguments, watch)
    return peak


def held_bytes(pid: int) -> int:
    """Proportional set sizes of a process and all that descend from it, added up, in bytes; 0 when they have ended."""
    return sum(map(_held_bytes, _family(pid)))


def spent_s(pid: int) -> float:
    """Processor time of a process and all that descend from it and have not ended, in seconds."""
    found = 0
    for number in _family(pid):
        try:
            fields = Path(f"/proc/{number}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        except OSError:
            continue
        found += int(fields[11]) + int(fields[12])
    return found / os.sysconf("SC_CLK_TCK")


def _family(pid: int) -> list[int]:
    """A process and all that descend from it."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
    except OSError:
        return []
    return [pid, *(number for child in children for number in _family(int(child)))]


def _held_bytes(pid: int) -> int:
    """Proportional set size of a process; 0 when it has ended."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)


def medians(arguments: Sequence[str], runs: int, wall_limit: str, peak_limit: str = "") -> list[Figure]:
    """Median wall time of `runs` new processes after one that warms the disk cache; peak memory of two more."""
    finished(arguments)
    walls = [finished(arguments).wall_s for _ in range(runs)]
    return [
        Figure("wall, median", median(walls), "s", wall_limit),
        Figure("wall, least", min(walls), "s"),
        Figure("wall, most", max(walls), "s"),
        Figure("peak memory, all processes", max(peak_bytes(arguments) for _ in range(2)) / 1e6, "MB", peak_limit),
    ]


def report(name: str, question: str, figures: Sequence[Figure]) -> int:
    """Print the figures and write out/NAME.json; return the exit code: 1 when a limit is missed."""
    sys.stdout.write(f"{name}: {question}\n")
    for figure in figures:
        verdict = "" if not figure.limit else f"   {figure.limit} {'kept' if figure.kept else 'MISSED'}"
        sys.stdout.write(f"  {figure.name:<34} {figure.value:>12,.4g} {figure.unit}{verdict}\n")
    OUT.mkdir(exist_ok=True)
    content = {
        "benchmark": name,
        "question": question,
        "date": datetime.now(UTC).date().isoformat(),
        "machine": machine(),
        "figures": [asdict(figure) | {"kept": figure.kept} for figure in figures],
    }
    (OUT / f"{name}.json").write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    return 0 if all(figure.kept for figure in figures) else 1


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
    usable = usable_resources()
    return {
        "cpu": model,
        "cores": usable.cores,
        "memory_gib": round((usable.memory_bytes or 0) / 2**30, 1),
        "python": platform.python_version(),
        "load_1min": round(os.getloadavg()[0], 2),
    }
