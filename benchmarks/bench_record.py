"""Recording accesses of a graph as large as Reddit: its surrogate in six METIS parts, 30 graphs at epsilon 0.1.

`python -m benchmarks.bench_record [FOLDER]`: FOLDER keeps the graph and its partition (some minutes, 8 GB to make) for
the next time. Not in `make bench`.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from benchmarks.measuring import Figure, finished, peak_bytes, report
from gcnsim.trace import read_trace

PARTS, ITERATIONS = 6, 30
SAMPLERS = ("vr", "uniform")


def main(folder: Path) -> int:
    """Measure both samplers; return the exit code."""
    graph, partition = made(folder)
    figures = [figure for sampler in SAMPLERS for figure in measured(graph, partition, sampler, folder / "out.trace")]
    question = f"gcnsim trace record: the surrogate of reddit, {PARTS} workers, {ITERATIONS} graphs, new processes"
    return report("record", question, figures)


def made(folder: Path) -> tuple[Path, Path]:
    """The graph and its partition, made where they are not there yet."""
    graph, partition = folder / "reddit.npz", folder / f"reddit-{PARTS}.part"
    if not graph.is_file():
        finished(("graph", "generate", "reddit", "--out", str(graph)))
    if not partition.is_file():
        finished(("graph", "partition", str(graph), "--parts", str(PARTS), "--out", str(partition)))
    return graph, partition


def measured(graph: Path, partition: Path, sampler: str, out: Path) -> list[Figure]:
    """Time, memory and size of one sampler; asserts that one process writes the same bytes."""
    arguments = ["trace", "record", str(graph), "--partition", str(partition), "--sampler", sampler]
    arguments += ["--epsilon", "0.1", "--iterations", str(ITERATIONS), "--out", str(out)]
    once = finished(arguments)
    written = out.read_bytes()
    trace = read_trace(out)
    assert (trace.parts, trace.iterations) == (PARTS, ITERATIONS), once.printed
    kept = trace.edges.sum() / (ITERATIONS * trace.entries.sum())
    assert abs(kept / 0.1 - 1.0) < 1e-3, kept
    alone = finished([*arguments, "--processes", "1"])
    assert out.read_bytes() == written
    return [
        Figure(f"{sampler}: wall, loaded, drawn, written", once.wall_s, "s", "<= 120"),
        Figure(f"{sampler}: the same in one process", alone.wall_s, "s"),
        Figure(f"{sampler}: peak memory, all processes", peak_bytes(arguments) / 1e6, "MB", "<= 10000"),
        Figure(f"{sampler}: file", len(written) / 1e6, "MB", "<= 40"),
    ]


if __name__ == "__main__":
    if len(sys.argv) > 1:
        sys.exit(main(Path(sys.argv[1])))
    with tempfile.TemporaryDirectory() as temporary:
        sys.exit(main(Path(temporary)))
