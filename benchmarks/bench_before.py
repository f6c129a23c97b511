"""Commands of this tree beside those of another commit, run in turn: processor time, wall time, memory, as ratios.

    python -m benchmarks.bench_before COMMIT                    all of them: minutes
    python -m benchmarks.bench_before COMMIT what-if sweep      those named

It fails where a number of an answer is another in both. Processor time is that of all processes; a busy machine changes
it less than wall time. Ratios are of medians over `PAIRS` pairs; which tree begins changes from pair to pair.
"""

from __future__ import annotations

import json
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
from typing import Any, Final, NamedTuple

import pyarrow.parquet as pq

from benchmarks import bench_recommend, bench_sweep, bench_what_if
from benchmarks.measuring import Figure, held_bytes, report

HERE: Final = Path(__file__).resolve().parents[1]

PAIRS: Final = 5

SHARE: Final = 0.03
"""Of the points of `bench_sweep`."""

COMMANDS: Final[Mapping[str, Sequence[str]]] = {
    "what-if": (*bench_what_if.ARGUMENTS, "--json"),
    "recommend": (*bench_recommend.COMMAND, "--json"),
    "sweep": bench_sweep.arguments(SHARE),
}

AIMS: Final = {"what-if": 0.55, "recommend": 0.5, "sweep": 0.34}
"""What is to be reached: processor time over that of the version before the engine remembered how links were shared."""

CHILD: Final = """
import sys
import gcnsim
tree = sys.argv.pop(1)
assert gcnsim.__file__.startswith(tree + "/"), f"{gcnsim.__file__} is not of {tree}"
from gcnsim.cli import main
sys.exit(main())
"""


class Ran(NamedTuple):
    """Seconds of a command, and the numbers of its answer by their place in it."""

    processor_s: float
    wall_s: float
    numbers: dict[str, str]


def started(tree: Path, arguments: Sequence[str], scratch: Path) -> tuple[subprocess.Popen[bytes], Path]:
    """A new process of a tree's own `gcnsim`, and the file that has its answer when it has ended."""
    folder = Path(tempfile.mkdtemp(dir=scratch))
    sweep = arguments[0] == "sweep"
    wanted = [*arguments, *(["--out", str(folder / "out")] if sweep else [])]
    found = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    # Nothing of the folder it is started in, and modules compiled once in a folder of their own.
    own = {
        "PYTHONPATH": str(tree),
        "PYTHONSAFEPATH": "1",
        "PYTHONPYCACHEPREFIX": str(scratch / f"compiled {tree.name}"),
    }
    with (folder / "printed").open("wb") as printed:
        process = subprocess.Popen([sys.executable, "-c", CHILD, str(tree), *wanted], env=found | own, stdout=printed)
    return process, folder / "out" / "results.parquet" if sweep else folder / "printed"


def ran(tree: Path, arguments: Sequence[str], scratch: Path) -> Ran:
    """Run `gcnsim` of a tree in a new process. Raises CalledProcessError where it fails."""
    before, start = _used(), time.perf_counter()
    process, answer = started(tree, arguments, scratch)
    if code := process.wait():
        raise subprocess.CalledProcessError(code, ["gcnsim", *arguments])
    wall = time.perf_counter() - start
    return Ran(_used() - before, wall, numbers_of(_content(answer)))


def _content(answer: Path) -> object:
    if answer.suffix == ".parquet":
        return pq.read_table(answer).to_pydict()
    return json.loads(answer.read_bytes())


def numbers_of(content: Any, place: str = "") -> dict[str, str]:
    """All numbers in mappings and lists, by their place; texts, which two versions may write differently, are none."""
    if isinstance(content, int | float):
        return {place: repr(float(content))}
    items = content.items() if isinstance(content, Mapping) else enumerate(content) if isinstance(content, list) else ()
    return {at: number for key, value in items for at, number in numbers_of(value, f"{place}/{key}").items()}


def compared_numbers(name: str, every: Sequence[dict[str, str]]) -> list[Figure]:
    """How many numbers all of the answers have, and how many of those are not the same in all."""
    common = set(every[0]).intersection(*every)
    assert common, f"{name}: no numbers to compare"
    differ = sum(len({one[place] for one in every}) > 1 for place in common)
    return [
        Figure(f"{name}: numbers in both", len(common), ""),
        Figure(f"{name}: numbers in one alone", len(set().union(*every)) - len(common), ""),
        Figure(f"{name}: numbers that differ", differ, "", "<= 0"),
    ]


def peak_bytes(tree: Path, arguments: Sequence[str], scratch: Path) -> int:
    """The most memory that it and all its processes hold at once, looked at every 10 ms."""
    peak = 0
    process, _ = started(tree, arguments, scratch)
    while process.poll() is None:
        peak = max(peak, held_bytes(process.pid))
        time.sleep(0.01)
    return peak


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
        process, _ = started(tree, ("doctor", "--compile"), scratch)
        assert process.wait() == 0, f"{tree}: no compiled engine"
        ran(tree, COMMANDS[name], scratch)  # warms the disk
    for pair in range(PAIRS):
        for tree in trees[:: 1 if pair % 2 == 0 else -1]:
            runs[tree].append(ran(tree, COMMANDS[name], scratch))
    processor = [median(one.processor_s for one in runs[tree]) for tree in trees]
    wall = [median(one.wall_s for one in runs[tree]) for tree in trees]
    held = [peak_bytes(tree, COMMANDS[name], scratch) / 1e6 for tree in trees]
    ratio = processor[1] / processor[0]
    return [
        *compared_numbers(name, [one.numbers for every in runs.values() for one in every]),
        Figure(f"{name}: processor time, before", processor[0], "s"),
        Figure(f"{name}: processor time", processor[1], "s"),
        Figure(f"{name}: over that before", ratio, ""),
        Figure(f"{name}: that over the aim", ratio / AIMS[name], f"of {AIMS[name]}"),
        Figure(f"{name}: wall, before", wall[0], "s"),
        Figure(f"{name}: wall", wall[1], "s"),
        Figure(f"{name}: wall over that before", wall[1] / wall[0], ""),
        Figure(f"{name}: memory over that before", held[1] / held[0], ""),
    ]


def main() -> int:
    """Measure; return the exit code: 1 where numbers differ."""
    commit, *names = sys.argv[1:] or [""]
    if not commit or not set(names) <= set(COMMANDS):
        sys.stderr.write(f"usage: python -m benchmarks.bench_before COMMIT [{' | '.join(COMMANDS)}]...\n")
        return 2
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory() as folder:
        before = older_tree(commit, Path(folder))
        for name in names or COMMANDS:
            figures += compared(name, before, Path(folder))
    return report("before", f"{' '.join(names or COMMANDS)}, {PAIRS} pairs beside {commit}", figures)


if __name__ == "__main__":
    sys.exit(main())
