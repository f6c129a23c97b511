from __future__ import annotations

import numpy as np
import pytest

from gcnsim.graph import Graph
from gcnsim.partition import Part
from gcnsim.sampling import edge_weights


def test_weights_are_the_rows_of_the_normalised_adjacency(graph: Graph, parts: tuple[Part, ...]) -> None:
    dense = np.eye(graph.nodes)
    dense[np.repeat(np.arange(graph.nodes), graph.degrees), graph.indices] = 1.0
    scale = 1.0 / np.sqrt(dense.sum(axis=1))
    propagation = scale[:, None] * dense * scale
    for part in parts:
        ids = np.concatenate([part.inner, part.boundary])
        rows = np.repeat(part.inner, np.diff(part.indptr))
        assert edge_weights(part) == pytest.approx(propagation[rows, ids[part.columns]], rel=1e-6)
