"""Commands of this tree beside those of another commit, run in turn: processor time, wall time, memory, as ratios.

    python -m benchmarks.bench_before COMMIT                    all of them: minutes
    python -m benchmarks.bench_before COMMIT what-if sweep      those named

Both print the same bytes, or the benchmark fails. Processor time is that of all processes; a busy machine changes it
less than wall time. Ratios are of medians over `PAIRS` pairs; which tree begins changes from pair to pair.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

from benchmarks import bench_recommend, bench_sweep, bench_what_if
from benchmarks.measuring import Figure, held_bytes, report

HERE: Final = Path(__file__).resolve().parents[1]

PAIRS: Final = 5

SHARE: Final = 0.03
"""Of the points of `bench_sweep`."""

COMMANDS: Final[Mapping[str, Sequence[str]]] = {
    "what-if": bench_what_if.ARGUMENTS,
    "recommend": (*bench_recommend.COMMAND, "--json"),
    "sweep": bench_sweep.arguments(SHARE),
}

LIMITS: Final = {"what-if": "<= 0.55", "recommend": "<= 0.5", "sweep": "<= 0.34"}
"""Of processor time over that of the version before the engine remembered how links were shared."""


class Ran(NamedTuple):
    """Seconds of a command, and what it printed or wrote."""

    processor_s: float
    wall_s: float
    printed: bytes


def ran(tree: Path, arguments: Sequence[str], scratch: Path) -> Ran:
    """Run `gcnsim` of a tree in a new process. Raises CalledProcessError where it fails."""
    out = Path(tempfile.mkdtemp(dir=scratch)) / "out"
    wanted = [*arguments, "--out", str(out)] if arguments[0] == "sweep" else list(arguments)
    before, start = _used(), time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "gcnsim", *wanted], env=_environment(tree, scratch), capture_output=True, check=True
    )
    wall = time.perf_counter() - start
    results = b"".join(file.read_bytes() for file in sorted(out.rglob("*.parquet"))) if out.exists() else done.stdout
    return Ran(_used() - before, wall, results)


def peak_bytes(tree: Path, arguments: Sequence[str], scratch: Path) -> int:
    """The most memory that it and all its processes hold at once, looked at every 10 ms."""
    out = Path(tempfile.mkdtemp(dir=scratch)) / "out"
    wanted = [*arguments, "--out", str(out)] if arguments[0] == "sweep" else list(arguments)
    peak = 0
    with subprocess.Popen(
        [sys.executable, "-m", "gcnsim", *wanted],
        env=_environment(tree, scratch),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        while process.poll() is None:
            peak = max(peak, held_bytes(process.pid))
            time.sleep(0.01)
    return peak


def _environment(tree: Path, scratch: Path) -> dict[str, str]:
    """The tree's own modules, compiled once in a folder of their own."""
    kept = scratch / f"compiled {tree.name}"
    found = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return found | {"PYTHONPATH": str(tree), "PYTHONPYCACHEPREFIX": str(kept)}


def _used() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def older_tree(commit: str, folder: Path) -> Path:
    """The package as it stands in a commit, unpacked in `folder`."""
    archive, found = folder / "tree.tar", folder / "before"
    subprocess.run(["git", "archive", "-o", str(archive), commit, "gcnsim"], cwd=HERE, check=True)
    with tarfile.open(archive) as packed:
        packed.extractall(found, filter="data")
    return found


def compared(name: str, before: Path, scratch: Path) -> list[Figure]:
    """The figures of a command in both trees, and their ratios."""
    trees = (before, HERE)
    runs: dict[Path, list[Ran]] = {tree: [] for tree in trees}
    for tree in trees:
        ran(tree, ("doctor", "--compile"), scratch)
        ran(tree, COMMANDS[name], scratch)  # warms the disk
    for pair in range(PAIRS):
        for tree in trees[:: 1 if pair % 2 == 0 else -1]:
            runs[tree].append(ran(tree, COMMANDS[name], scratch))
    assert len({one.printed for every in runs.values() for one in every}) == 1, f"{name}: other bytes"
    processor = [median(one.processor_s for one in runs[tree]) for tree in trees]
    wall = [median(one.wall_s for one in runs[tree]) for tree in trees]
    held = [peak_bytes(tree, COMMANDS[name], scratch) / 1e6 for tree in trees]
    return [
        Figure(f"{name}: processor time, before", processor[0], "s"),
        Figure(f"{name}: processor time", processor[1], "s"),
        Figure(f"{name}: over that before", processor[1] / processor[0], "", LIMITS[name]),
        Figure(f"{name}: wall, before", wall[0], "s"),
        Figure(f"{name}: wall", wall[1], "s"),
        Figure(f"{name}: wall over that before", wall[1] / wall[0], ""),
        Figure(f"{name}: peak memory over that before", held[1] / held[0], "", "<= 1.02"),
    ]


def main() -> int:
    """Measure; return the exit code."""
    commit, *names = sys.argv[1:]
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory() as folder:
        before = older_tree(commit, Path(folder))
        for name in names or COMMANDS:
            figures += compared(name, before, Path(folder))
    return report("before", f"{' '.join(names or COMMANDS)}, {PAIRS} pairs beside {commit}", figures)


if __name__ == "__main__":
    sys.exit(main())
