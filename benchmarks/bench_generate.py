"""Drawing a graph as large as Reddit: 114.6 million stored entries, written to a file."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from benchmarks.measuring import Figure, finished, peak_bytes, report

EDGES = "57,307,946"
"""Undirected edges of Reddit, as the command prints them."""


def main() -> int:
    """Measure; return the exit code."""
    with tempfile.TemporaryDirectory() as folder:
        arguments = ("graph", "generate", "reddit", "--out", str(Path(folder) / "reddit.npz"))
        once = finished(arguments)
        assert f"edges         {EDGES}" in once.printed, once.printed
        peak = peak_bytes(arguments)
    figures = [
        Figure("wall, drawn and written", once.wall_s, "s", "<= 90"),
        Figure("peak memory, all processes", peak / 1e6, "MB", "<= 6000"),
    ]
    return report("generate", "gcnsim graph generate reddit, a new process", figures)


if __name__ == "__main__":
    sys.exit(main())
