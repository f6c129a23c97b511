from __future__ import annotations

import numpy as np

from gcnsim.graph import build_csr
from gcnsim.graph.csr import Cleaning


def test_counts_and_degrees_of_a_path() -> None:
    graph = build_csr(np.array([0, 1]), np.array([1, 2]), 4, "path")
    assert (graph.nodes, graph.entries) == (4, 4)
    assert graph.degrees.tolist() == [1, 2, 1, 0]


def test_the_content_hash_depends_on_the_structure_alone() -> None:
    rows, cols = np.array([0, 1]), np.array([1, 2])
    graph = build_csr(rows, cols, 3, "a", features=5)
    assert graph.content_hash() == build_csr(cols, rows, 3, "b").content_hash()
    assert graph.content_hash() != build_csr(rows, cols, 4, "a").content_hash()


def test_cleaning_speaks_in_one_line() -> None:
    assert str(Cleaning()) == "already clean"
    assert str(Cleaning(3, 2000, 1, ignored=("id", "weights"))) == (
        "dropped 3 self-loops, dropped 2,000 duplicates, added 1 reverse entry, ignored: id, weights"
    )
