"""A small partitioned graph, its traces, and the real graphs where they are at hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from gcnsim.graph import Graph, build_csr, load_graph
from gcnsim.graph.assign import partition_graph
from gcnsim.graph.parts import Part, Partitioning, split


@dataclass(frozen=True, slots=True)
class Case:
    """A graph, who owns its nodes, and the parts."""

    graph: Graph
    owners: Partitioning
    parts: tuple[Part, ...]


@pytest.fixture(scope="session")
def small() -> Case:
    """300 nodes in four parts; nodes 0 to 9 border on few, so that some pairs of parts share little."""
    rng = np.random.default_rng(11)
    ends = (300 * rng.random((1500, 2)) ** 1.5).astype(np.int64)
    graph = build_csr(ends[:, 0], ends[:, 1], 300, "small")
    owners = partition_graph(graph, 4, "block")
    return Case(graph, owners, split(graph, owners))


@pytest.fixture(scope="session")
def line() -> Case:
    """A path of 12 nodes in four blocks: every part borders on its neighbours only, so some owners hold nothing."""
    graph = build_csr(np.arange(11), np.arange(1, 12), 12, "line")
    owners = partition_graph(graph, 4, "block")
    return Case(graph, owners, split(graph, owners))


@pytest.fixture(scope="session")
def real(data_dir: Path) -> Callable[[str], Case]:
    """A real graph in four METIS parts, by name."""

    def load(name: str) -> Case:
        graph = load_graph(data_dir / f"{name}.npz")
        owners = partition_graph(graph, 4)
        return Case(graph, owners, split(graph, owners))

    return load
