"""PaGraph's partition of training nodes."""

from __future__ import annotations

import numpy as np
import pytest

from gcnsim.core.streams import stream
from gcnsim.graph import Graph
from gcnsim.graph.assign import training_parts
from gcnsim.graph.generate import BlockModel, block_model


@pytest.fixture(scope="module")
def graph() -> Graph:
    return block_model(BlockModel(nodes=3000, edges=15_000, communities=8, cross_mean=0.05), 2, "parts")


def test_every_training_node_is_in_one_part_and_parts_are_even(graph: Graph) -> None:
    train = stream(0, "train").choice(graph.nodes, size=1000, replace=False)
    parts = training_parts(graph, train, 4, 2)
    assert sorted(np.concatenate(parts.training).tolist()) == sorted(train.tolist())
    sizes = [part.size for part in parts.training]
    assert max(sizes) < 1.35 * min(sizes)
    assert [part.tolist() for part in training_parts(graph, train, 4, 2).training] == [
        part.tolist() for part in parts.training
    ]


def test_a_part_holds_the_neighbourhoods_of_its_training_nodes(graph: Graph) -> None:
    train = stream(0, "train").choice(graph.nodes, size=200, replace=False)
    parts = training_parts(graph, train, 3, 2)
    for nodes, holds in zip(parts.training, parts.holds, strict=True):
        near = np.zeros(graph.nodes, np.bool_)
        near[nodes] = True
        for _ in range(2):
            rows = np.flatnonzero(near)
            for node in rows:
                near[graph.indices[graph.indptr[node] : graph.indptr[node + 1]]] = True
        assert (holds == near).all()


def test_parts_hold_fewer_copies_than_parts_at_random(graph: Graph) -> None:
    train = stream(0, "order").permutation(graph.nodes)[:2000]
    dealt = sum(int(holds.sum()) for holds in training_parts(graph, train, 4, 1).holds)
    at_random = 0
    for nodes in np.array_split(train, 4):
        (holds,) = training_parts(graph, nodes, 1, 1).holds
        at_random += int(holds.sum())
    assert dealt < 0.97 * at_random


def test_one_part_holds_what_all_training_nodes_reach(graph: Graph) -> None:
    train = np.arange(50)
    (holds,) = training_parts(graph, train, 1, 1).holds
    near = {*range(50), *graph.indices[: graph.indptr[50]].tolist()}
    assert set(np.flatnonzero(holds).tolist()) == near
