"""Drawing graphs as large as Reddit with every model: 114.6 million stored entries, written to a file.

`python -m benchmarks.bench_generate NAME ...`: only these of block, rmat and configuration, or flickr and amazon, two
other surrogates.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.measuring import Figure, finished, peak_bytes, report
from gcnsim.streams import stream

NODES, EDGES = 232_965, 57_307_946
SPREAD = 1.2
"""Standard deviation of the log of the configuration model's degrees: that of reddit's surrogate."""


MODELS = ("block", "rmat", "configuration")
SURROGATES = {"flickr": 449_878, "amazon": 132_169_734}
"""Edges of surrogates beside reddit; their figures have no limit, but what they take should be known."""


def main(names: Sequence[str]) -> int:
    """Measure one model after another; return the exit code."""
    with tempfile.TemporaryDirectory() as folder:
        sequence = Path(folder) / "degrees.npy"
        np.save(sequence, degrees())
        models = {
            "block": ("reddit",),
            "rmat": ("rmat", "--nodes", str(NODES), "--edges", str(EDGES)),
            "configuration": ("configuration", "--degrees", str(sequence)),
            **{name: (name,) for name in SURROGATES},
        }
        figures = [each for name in names or MODELS for each in measured(name, models[name], Path(folder) / "out.npz")]
    return report("generate", "gcnsim graph generate MODEL at the size of reddit, new processes", figures)


def measured(name: str, model: tuple[str, ...], out: Path) -> list[Figure]:
    """Time and memory of one model; asserts that the edges are there."""
    arguments = ("graph", "generate", *model, "--out", str(out))
    once = finished(arguments)
    drawn = next(line.split()[1] for line in once.printed.splitlines() if line.startswith("edges"))
    assert abs(int(drawn.replace(",", "")) / SURROGATES.get(name, EDGES) - 1.0) < 1e-3, once.printed
    limits = ("", "") if name in SURROGATES else ("<= 90", "<= 6000")
    return [
        Figure(f"{name}: wall, drawn and written", once.wall_s, "s", limits[0]),
        Figure(f"{name}: peak memory, all processes", peak_bytes(arguments) / 1e6, "MB", limits[1]),
    ]


def degrees() -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Lognormal degrees of the nodes, at most a fifth of them, whose sum is twice the edges."""
    weight = np.exp(SPREAD * stream(0, "bench", "degrees").standard_normal(NODES))
    low, high = 0.0, 2.0 * EDGES
    for _ in range(100):
        scale = (low + high) / 2.0
        low, high = (scale, high) if np.minimum(scale * weight, NODES / 5.0).sum() < 2.0 * EDGES else (low, scale)
    found = np.floor(np.minimum(high * weight, NODES / 5.0)).astype(np.int64)
    found[: 2 * EDGES - int(found.sum())] += 1
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
