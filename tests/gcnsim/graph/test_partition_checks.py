from __future__ import annotations

import numpy as np
import pytest

from gcnsim.graph import Graph, build_csr
from gcnsim.graph.partition_facts import partition_warnings
from gcnsim.graph.parts import Partitioning, split


def ring(nodes: int, edges: int) -> Graph:
    """A path of `edges` edges, and nodes without any."""
    ends = np.arange(edges)
    return build_csr(ends, ends + 1, nodes, "path")


@pytest.mark.parametrize(
    ("edges", "owners", "message"),
    [
        (11, [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2], ""),
        (11, [0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 2, 2], ""),
        (3, [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2], "2 of 3 parts have nodes but no edges, one of 3 parts has 100 %"),
        (11, [0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 2], "one of 3 parts has 77 % of the edges"),
        (7, [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2], "1 of 3 parts has nodes but no edges"),
    ],
)
def test_a_degenerate_partition_is_told(edges: int, owners: list[int], message: str) -> None:
    graph = ring(12, edges)
    cut = Partitioning(np.array(owners, np.int32), 3, "file", 0, graph.name, graph.content_hash())
    found = partition_warnings(split(graph, cut))
    assert bool(found) == bool(message)
    assert not message or message in found[0]


def test_one_part_holds_everything_rightly() -> None:
    graph = ring(12, 3)
    cut = Partitioning(np.zeros(12, np.int32), 1, "file", 0, graph.name, graph.content_hash())
    assert partition_warnings(split(graph, cut)) == ()
