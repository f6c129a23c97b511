"""studies/measured_boundary.py: boundary nodes of random parts, from degrees alone."""

from __future__ import annotations

import pytest

from gcnsim.graph.assign import partition_graph
from gcnsim.graph.generate import BlockModel, block_model
from gcnsim.graph.parts import part_of
from studies.measured_boundary import random_boundary


def test_random_parts_have_the_boundary_that_degrees_say() -> None:
    graph = block_model(BlockModel(3000, 12_000), 1)
    owners = partition_graph(graph, 5, "random")
    counted = sum(part_of(graph, owners, rank).boundary_nodes for rank in range(5))
    assert random_boundary(graph, 5) == pytest.approx(counted, rel=0.02)
