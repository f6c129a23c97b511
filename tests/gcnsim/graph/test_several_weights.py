"""METIS with two weights a node: nodes and training nodes are both balanced."""

from __future__ import annotations

import numpy as np
import pymetis
import pytest

from gcnsim.core.errors import GraphError
from gcnsim.core.ids import BoolArray
from gcnsim.core.streams import stream
from gcnsim.graph import Graph, build_csr
from gcnsim.graph.assign import balanced_owners, partition_graph


def one_sided() -> tuple[Graph, BoolArray]:
    """Two communities of 100 nodes, 10 edges between them; 80 nodes of the first train."""
    draw = stream(5, "one-sided")
    ends = [draw.integers(low, high, (2, 600)) for low, high in ((0, 100), (100, 200))]
    ends.append(np.stack([draw.integers(0, 100, 10), draw.integers(100, 200, 10)]))
    rows, columns = np.concatenate(ends, axis=1)
    return build_csr(rows, columns, 200, "one-sided"), np.arange(200) < 80


@pytest.mark.parametrize(("objective", "recursive"), [("vol", False), ("cut", False), ("cut", True)])
def test_with_one_weight_the_owners_are_those_of_pymetis(skewed: Graph, objective: str, recursive: bool) -> None:
    kind = pymetis.zero_copy_dtype()
    indptr, indices = skewed.indptr.astype(kind), skewed.indices.astype(kind)
    goal = pymetis.ObjType.VOL if objective == "vol" else pymetis.ObjType.CUT
    options = pymetis.Options(objtype=goal, seed=3)
    weights = np.ones((skewed.nodes, 1), kind)
    value, owner = balanced_owners(indptr, indices, weights, 5, options, recursive=recursive)
    adjacency = pymetis.CSRAdjacency(indptr, indices)
    expected = pymetis.part_graph(5, adjacency=adjacency, recursive=recursive, options=options)
    assert (value, owner.tolist()) == (expected[0], list(expected[1]))


@pytest.mark.parametrize(("objective", "algorithm"), [("vol", "kway"), ("cut", "kway"), ("cut", "recursive")])
@pytest.mark.parametrize("parts", [2, 4])
def test_nodes_and_training_nodes_are_both_even(objective: str, algorithm: str, parts: int) -> None:
    graph, training = one_sided()
    before = partition_graph(graph, parts, "metis", objective, algorithm=algorithm)
    assert np.bincount(before.owner[training], minlength=parts).max() >= 1.9 * 80 / parts
    partitioning = partition_graph(
        graph, parts, "metis", objective, algorithm=algorithm, balance="training-nodes", training=training
    )
    assert partitioning.method == "-".join(
        ["metis", objective, *(["recursive"] * (algorithm != "kway")), "by-training-nodes"]
    )
    for counts, total in ((np.bincount(partitioning.owner), 200), (np.bincount(partitioning.owner[training]), 80)):
        assert counts.size == parts
        assert counts.max() <= 1.1 * total / parts


def test_the_same_seed_gives_the_same_owners_and_one_part_all_nodes() -> None:
    graph, training = one_sided()
    one, other = (
        partition_graph(graph, 4, seed=7, balance="training-nodes", training=training).owner.tolist() for _ in range(2)
    )
    assert one == other
    assert set(partition_graph(graph, 1, balance="training-nodes", training=training).owner.tolist()) == {0}


@pytest.mark.parametrize("training", [None, np.zeros(200, np.bool_)])
def test_where_nobody_is_said_to_train_the_balance_is_refused(training: BoolArray | None) -> None:
    graph, _ = one_sided()
    with pytest.raises(GraphError, match=r"'training-nodes' is not allowed; one-sided does not say who trains"):
        partition_graph(graph, 2, balance="training-nodes", training=training)


def test_a_pymetis_that_hides_the_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    import math

    from pymetis import _internal

    monkeypatch.setattr(_internal, "__file__", math.__spec__.origin or __file__)
    graph, training = one_sided()
    with pytest.raises(GraphError, match=r"does not balance two things at a time .*: nodes or edges"):
        partition_graph(graph, 2, balance="training-nodes", training=training)
