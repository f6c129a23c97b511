"""The sub-graph on some nodes, against a dense matrix."""

from __future__ import annotations

import numpy as np
import pytest

from gcnsim.graph import Graph, build_csr, induced


@pytest.mark.parametrize("seed", range(4))
def test_it_is_the_matrix_without_the_others_rows_and_columns(seed: int) -> None:
    generator = np.random.default_rng(seed)
    ends = generator.integers(0, 40, (2, 120))
    graph = build_csr(ends[0], ends[1], 40, "random")
    kept = generator.random(40) < (0.0, 0.3, 0.7, 1.0)[seed]
    found = induced(graph, kept, "some")
    assert found.name == "some"
    np.testing.assert_array_equal(dense(found), dense(graph)[kept][:, kept])


def dense(graph: Graph) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    matrix = np.zeros((graph.nodes, graph.nodes), np.bool_)
    matrix[np.repeat(np.arange(graph.nodes), graph.degrees), graph.indices] = True
    return matrix
