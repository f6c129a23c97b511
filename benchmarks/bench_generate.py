"""Drawing a graph as large as Reddit: 114.6 million stored entries, written to a file.

`python -m benchmarks.bench_generate NAME ...`: only these of reddit, or flickr and amazon, two other surrogates.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.measuring import Figure, finished, peak_bytes, report

REDDIT = "reddit"
EDGES = 57_307_946
SURROGATES = {"flickr": 449_878, "amazon": 132_169_734}
"""Edges of surrogates beside reddit; their figures have no limit, but what they take should be known."""


def main(names: Sequence[str]) -> int:
    """Measure one surrogate after another; return the exit code."""
    with tempfile.TemporaryDirectory() as folder:
        figures = [figure for name in names or [REDDIT] for figure in measured(name, Path(folder) / "out.npz")]
    return report("generate", "gcnsim graph generate NAME, new processes", figures)


def measured(name: str, out: Path) -> list[Figure]:
    """Time and memory of one surrogate; asserts that the edges are there."""
    arguments = ("graph", "generate", name, "--out", str(out))
    once = finished(arguments)
    drawn = next(line.split()[1] for line in once.printed.splitlines() if line.startswith("edges"))
    assert abs(int(drawn.replace(",", "")) / SURROGATES.get(name, EDGES) - 1.0) < 1e-3, once.printed
    limits = ("", "") if name in SURROGATES else ("<= 90", "<= 6000")
    return [
        Figure(f"{name}: wall, drawn and written", once.wall_s, "s", limits[0]),
        Figure(f"{name}: peak memory, all processes", peak_bytes(arguments) / 1e6, "MB", limits[1]),
    ]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
