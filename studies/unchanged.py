"""Whether two versions of gcnsim answer alike, byte for byte.

    python -m studies.unchanged COMMIT            answers of COMMIT against those of this tree
    python -m studies.unchanged COMMIT --quick    without the long ones (a minute instead of ten)

Answers: every scenario of the older version, the default question, recommendations, a sweep, an own graph in every
form that is read, all methods on three datasets, the reproduced tables, and for runs that are trained once, for both:
validation, timeline and comparison. Each is asked as a user would, as a command in its own process. What changed on
purpose stands in `ON_PURPOSE` with its reason. Keys that were renamed on purpose stand in `RENAMED`, each with its line
in CHANGELOG.md: old answers are compared under the new names, without the keys that were added (`ADDED`) or removed
(`REMOVED`) since, and under the places of today of programs that moved (`MOVED`). Exit code 1 where an answer differs.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from difflib import unified_diff
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from pyarrow import parquet

from studies.written_graphs import write_graphs

HERE: Final = Path(__file__).resolve().parents[1]

RENAMED: Final[Mapping[str, str]] = {}
"""Keys of JSON answers by their old names."""

ADDED: Final = frozenset({"simulated", "by_period", "fidelity", "placed_s", "known_loss"})
"""Keys of JSON answers that older versions do not have: where they have none, today's are not compared."""

REMOVED: Final = frozenset({"usd_per_1000_iterations", "usd"})
"""Keys of JSON answers of older versions that are gone on purpose: they are not compared."""

MOVED: Final[Mapping[str, str]] = {
    f"benchmarks{dot}{name}": f"studies{dot}{name}"
    for dot in "/."
    for name in ("cross_edges", "fit_published", "fit_surrogates", "partition_spread", "two_statistics")
}
"""Programs that answers name as their source, by their old places."""

SHOWN: Final = 12
"""Lines of a difference that are printed."""

TRAINED: Final[Mapping[str, Sequence[str]]] = {
    "full-graph": ("--method", "full-graph"),
    "pipegcn": ("--method", "pipegcn"),
    "bns-gcn": ("--method", "bns-gcn", "--rate", "0.5"),
    "psc-gcn": ("--method", "psc-gcn", "--tau", "2", "--epsilon", "0.3", "--cache", "20%"),
}
"""Recorded runs, by name: options of `runtime.train` besides those that all have."""

WHAT_IF: Final = ("what-if", "--bandwidth", "15Gbps", "--gpus", "6", "--json")

RECOMMEND: Final[Mapping[str, Sequence[str]]] = {
    "iteration": ("--device", "t4,a10g", "--gpus", "2,4", "--target-iteration", "1s"),
    "epoch": ("--device", "v100", "--gpus", "4,8", "--bandwidth", "10Gbps,25Gbps", "--target-epoch", "1s"),
    "hours": ("--host", "g4dn.xlarge,g5.xlarge", "--gpus", "4", "--target-hours", "2h", "--iterations-needed", "3000"),
    "budget": ("--device", "t4", "--gpus", "2,4,6", "--minimise", "time", "--budget", "2000USD/month"),
    "fewest GPUs": ("--device", "t4", "--gpus", "2,4,8", "--minimise", "gpus", "--target-iteration", "2s"),
    "products": ("--dataset", "ogbn-products", "--device", "a100-40", "--gpus", "4", "--minimise", "time"),
}
"""Questions for a machine, by what limits them."""

SWEEP: Final = (
    "sweep",
    *("--axis", "cluster.bandwidth=5Gbps,15Gbps"),
    *("--axis", "method.tau=1,2"),
    *("--out", "points"),
)

SHAPE: Final = ("--set", "workload.features=32", "--set", "workload.classes=4")
"""Widths of the own graph, of which some forms hold none."""

ON_PURPOSE: Final[Mapping[str, str]] = {
    "knobs": "the values that were asked for have the caches once, as caches; so the hash of the question differs",
}
"""Why an answer differs from older ones, by a text in its question's name."""


def questions(tree: Path, inputs: Path, runs: Sequence[Path], *, quick: bool) -> dict[str, Sequence[str]]:
    """The commands to compare, by what they ask: of the scenarios in `tree`, the graphs of `inputs` and `runs`."""
    question: dict[str, Sequence[str]] = {"default": WHAT_IF}
    question["text"] = WHAT_IF[:-1]
    question["knobs"] = (*WHAT_IF, "--tau", "1,2", "--epsilon", "0.1,1", "--cache", "0%,30%")
    for name in sorted(path.name for path in (tree / "scenarios").glob("*.yaml")):
        question[f"scenarios/{name}"] = ("simulate", f"scenarios/{name}", "--json")
    question["sweep"] = SWEEP
    for name in sorted(path.name for path in inputs.iterdir()):
        question[f"own graph {name}"] = ("graph", "info", str(inputs / name), "--json")
    question["own graph, what-if"] = ("what-if", "--graph", str(inputs / "ring.npz"), "--gpus", "4", "--json", *SHAPE)
    for run in runs:
        with_times = (str(run), "--measured-compute", str(run.parent / "measured"))
        question[f"run {run.name}"] = ("validate", *with_times, "--json")
        question[f"timeline {run.name}"] = ("timeline", *with_times)
    for one, other in pairwise(runs):
        question[f"compare {one.name}, {other.name}"] = ("compare", str(one), str(other), "--json")
    if not quick:
        for name, options in RECOMMEND.items():
            question[f"recommend, {name}"] = ("recommend", *options, "--json")
        for dataset in ("reddit", "ogbn-products", "yelp"):
            question[f"all methods on {dataset}"] = (*WHAT_IF, "--dataset", dataset, "--method", "all")
        question["reproduce"] = ("reproduce", "--json")
        question["cells"] = ("reproduce", "--csv", "cells.csv")
    return question


def answer(tree: Path, command: Sequence[str]) -> str:
    """What `gcnsim` of `tree` prints, or writes to cells.csv or as points of a sweep; else the error."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "scenarios").symlink_to(tree / "scenarios")
        done = run_python(tree, ["-m", "gcnsim", *command], place)
        cells = place / "cells.csv"
        written = cells.read_text(encoding="utf-8") if cells.exists() else ""
        points = place / "points" / "results.parquet"
        if points.exists():
            written += json.dumps(parquet.read_table(points).to_pylist(), default=str)
        return done.stdout + written if done.returncode == 0 else f"exit {done.returncode}: {done.stderr}"


def run_python(tree: Path, command: Sequence[str], place: Path) -> subprocess.CompletedProcess[str]:
    """Python with the packages of `tree`, in the folder `place`."""
    environment = {**os.environ, "PYTHONPATH": str(tree), "COLUMNS": "120"}
    return subprocess.run(
        [sys.executable, *command], cwd=place, env=environment, capture_output=True, text=True, check=False
    )


def train(runs: Sequence[Path]) -> None:
    """Record short runs of this tree's runtime on two workers, and beside them, in `measured`, their compute times."""
    folder = runs[0].parent
    folder.mkdir()
    for run in runs:
        common = ("--workers", "2", "--threads", "1", "--iterations", "30", "--eval-every", "30")
        done = run_python(HERE, ["-m", "runtime.train", *TRAINED[run.name], *common, "--out", str(run)], folder)
        if done.returncode:
            raise SystemExit(f"{run.name}: {done.stderr.strip()}")
    measure = ["-m", "runtime.measure", "--seconds", "20", "--out", str(folder / "measured")]
    done = run_python(HERE, [*measure, "--runs", str(folder)], folder)
    if done.returncode:
        raise SystemExit(f"runtime.measure: {done.stderr.strip()}")


def renamed(value: Any) -> Any:
    """An old answer under today's keys."""
    if isinstance(value, dict):
        return {RENAMED.get(key, key): renamed(item) for key, item in value.items() if key not in REMOVED}
    return [renamed(item) for item in value] if isinstance(value, list) else value


def without_added(new: Any, old: Any) -> Any:
    """A new answer without the keys of `ADDED` that the old one has not."""
    if isinstance(new, dict) and isinstance(old, dict):
        return {key: without_added(value, old.get(key)) for key, value in new.items() if key in old or key not in ADDED}
    if isinstance(new, list) and isinstance(old, list) and len(new) == len(old):
        return [without_added(*pair) for pair in zip(new, old, strict=True)]
    return new


def comparable(old: str, new: str) -> tuple[str, str]:
    """Two answers in lines: JSON one value a line, under today's keys in order; other text as it is."""
    try:
        before, now = renamed(json.loads(old)), json.loads(new)
    except ValueError:
        return old, new
    lines = (before, without_added(now, before))
    one, other = (json.dumps(entry, indent=1, ensure_ascii=False, sort_keys=True) for entry in lines)
    return one, other


def differences(old: str, new: str) -> Iterator[str]:
    """The lines that differ; none where the answers are the same bytes."""
    for place, now in MOVED.items():
        old = old.replace(place, now)
    if old == new:
        return
    before, after = (text.splitlines() for text in comparable(old, new))
    yield from (line for line in unified_diff(before, after, "before", "now", lineterm="", n=0))


def say(line: str) -> None:
    """One line, at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def compare(before: Path, *, quick: bool, only: str, processes: int) -> int:
    """Ask both versions everything; the number of answers that differ."""
    differing = 0
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(processes) as pool:
        inputs = write_graphs(Path(folder) / "graphs")
        runs = [] if quick else [Path(folder) / "runs" / name for name in TRAINED]
        question = questions(before, inputs, runs, quick=quick)
        chosen = {name: command for name, command in question.items() if only in name}
        if any(str(run) in command for command in chosen.values() for run in runs):
            train(runs)
        both = [
            (name, [pool.submit(answer, tree, command) for tree in (before, HERE)]) for name, command in chosen.items()
        ]
        for name, (old, new) in both:
            lines = list(differences(old.result(), new.result()))
            differing += bool(lines)
            say(f"{'differs' if lines else 'same   '}  {len(new.result()):>9,} bytes  {name}")
            for why in (why for text, why in ON_PURPOSE.items() if lines and text in name):
                say(f"    on purpose: {why}")
            for line in lines[:SHOWN]:
                say(f"    {line[:200]}")
    say(f"{len(both) - differing} of {len(both)} answers are the same")
    return differing


def main() -> int:
    """Compare as the command line asks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commit", help="the version to compare this tree with")
    parser.add_argument("--quick", action="store_true", help="without all methods, tables and recorded runs")
    parser.add_argument("--only", default="", metavar="TEXT", help="only questions with this in their name")
    parser.add_argument("--processes", type=int, default=2, help="questions asked at once (2)")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "before"
        subprocess.run(["git", "worktree", "add", "--detach", "--quiet", str(tree), given.commit], cwd=HERE, check=True)
        try:
            return min(1, compare(tree, quick=given.quick, only=given.only, processes=given.processes))
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", str(tree)], cwd=HERE, check=True)


if __name__ == "__main__":
    sys.exit(main())
