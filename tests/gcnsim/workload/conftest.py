"""Small partitioned graphs."""

from __future__ import annotations

import numpy as np
import pytest

from gcnsim.graph import Graph, build_csr
from gcnsim.graph.assign import partition_graph
from gcnsim.graph.parts import Part, split


@pytest.fixture(scope="session")
def graph() -> Graph:
    """300 nodes, about 2,000 edges, some nodes with hardly any."""
    rng = np.random.default_rng(11)
    ends = (300 * rng.random((2000, 2)) ** 1.5).astype(np.int64)
    return build_csr(ends[:, 0], ends[:, 1], 300, "small")


@pytest.fixture(scope="session")
def parts(graph: Graph) -> tuple[Part, ...]:
    """Its three random parts."""
    return split(graph, partition_graph(graph, 3, "random", seed=1))
