from __future__ import annotations

import numpy as np
import pytest

from gcnsim.graph import Graph, build_csr
from gcnsim.graph.assign import partition_graph
from gcnsim.graph.partition_facts import Spread, partition_facts
from gcnsim.graph.parts import Partitioning, split


def test_a_star_cut_off_its_centre_by_hand() -> None:
    graph = build_csr(np.zeros(4, dtype=np.int64), np.arange(1, 5), 5, "star")
    owner = np.array([0, 0, 1, 1, 1], dtype=np.int32)
    facts = partition_facts(split(graph, Partitioning(owner, 2, "block", 0, "star", graph.content_hash())))
    assert facts.inner == Spread(2.5, 2, 3)
    assert facts.boundary == Spread(2.0, 1, 3)  # part 0 borders on three leaves, part 1 on the centre
    assert (facts.cut_entries, facts.communication_volume) == (6, 4)
    assert facts.boundary_per_inner == pytest.approx(0.8)
    assert facts.replication == pytest.approx(1.8)
    assert facts.balance == pytest.approx(3 / 2.5)
    assert facts.entry_balance == pytest.approx(5 / 4)  # the centre's part has 4 + 1 of 8 entries


def test_the_whole_graph_in_one_part_communicates_nothing(skewed: Graph) -> None:
    facts = partition_facts(split(skewed, partition_graph(skewed, 1)))
    assert (facts.parts, facts.nodes, facts.communication_volume, facts.cut_entries) == (1, 400, 0, 0)
    assert facts.replication == 1.0
