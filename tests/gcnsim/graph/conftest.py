"""Graphs that the partition tests share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from gcnsim.core.streams import stream
from gcnsim.graph import Graph, build_csr, load_graph


@pytest.fixture(scope="session")
def real_graph(data_dir: Path) -> Callable[[str], Graph]:
    """Loads a real graph by name; skips where the data folder is absent."""

    def load(name: str) -> Graph:
        return load_graph(data_dir / f"{name}.npz")

    return load


@pytest.fixture
def skewed() -> Graph:
    """400 nodes, low ids with many neighbours, some nodes without any."""
    draw = stream(7, "skewed")
    ends = (400 * draw.random((2, 1500)) ** 2).astype(np.int64)
    return build_csr(ends[0], ends[1], 400, "skewed")
