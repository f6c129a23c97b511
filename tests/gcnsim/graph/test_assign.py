from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gcnsim.core.errors import GraphError
from gcnsim.graph import Graph, build_csr
from gcnsim.graph.assign import METHODS, partition_graph
from gcnsim.graph.partition_facts import partition_facts
from gcnsim.graph.parts import split


def _star(nodes: int) -> Graph:
    return build_csr(np.zeros(nodes - 1, dtype=np.int64), np.arange(1, nodes), nodes, "star")


def _path(nodes: int) -> Graph:
    return build_csr(np.arange(nodes - 1), np.arange(1, nodes), nodes, "path")


@settings(deadline=None, max_examples=60)
@given(st.integers(2, 24), st.data(), st.sampled_from(METHODS), st.sampled_from(["vol", "cut"]), st.booleans())
def test_every_part_owns_a_node_however_tiny_the_graph(
    nodes: int, data: st.DataObject, method: str, objective: str, star: bool
) -> None:
    parts = data.draw(st.integers(1, nodes))
    graph = _star(nodes) if star else _path(nodes)
    partitioning = partition_graph(graph, parts, method, objective)
    assert np.bincount(partitioning.owner, minlength=parts).min() >= 1
    assert (partitioning.nodes, partitioning.parts, partitioning.owner.dtype.name) == (nodes, parts, "int32")
    assert partitioning.graph_hash == graph.content_hash()


@pytest.mark.parametrize("method", ["random", "block"])
def test_random_and_block_sizes_differ_by_at_most_one(skewed: Graph, method: str) -> None:
    for parts in (1, 3, 7, 399, 400):
        sizes = np.bincount(partition_graph(skewed, parts, method).owner, minlength=parts)
        assert sizes.max() - sizes.min() <= 1


def test_blocks_are_contiguous_and_random_is_not(skewed: Graph) -> None:
    assert np.all(np.diff(partition_graph(skewed, 5, "block").owner) >= 0)
    assert np.any(np.diff(partition_graph(skewed, 5, "random").owner) < 0)


@pytest.mark.parametrize(("method", "objective"), [("metis", "vol"), ("metis", "cut"), ("random", "vol")])
def test_the_seed_decides(skewed: Graph, method: str, objective: str) -> None:
    first = partition_graph(skewed, 4, method, objective, seed=3).owner
    assert np.array_equal(first, partition_graph(skewed, 4, method, objective, seed=3).owner)
    assert not np.array_equal(first, partition_graph(skewed, 4, method, objective, seed=4).owner)


def test_the_label_names_method_and_objective(skewed: Graph) -> None:
    assert partition_graph(skewed, 2).method == "metis-vol"
    assert partition_graph(skewed, 1, objective="cut").method == "metis-cut"
    assert partition_graph(skewed, 2, "block", seed=9).seed == 9


@pytest.mark.parametrize(
    ("parts", "method", "objective", "message"),
    [
        (0, "metis", "vol", "skewed: 0 parts; at least 1 is needed"),
        (-2, "block", "vol", "skewed: -2 parts"),
        (401, "metis", "vol", "skewed: 400 nodes cannot make 401 parts; each needs a node"),
        (2, "metsi", "vol", "partition method 'metsi' is unknown: did you mean 'metis'? known: block, metis, random"),
        (2, "metis", "volume", "partition objective 'volume' is unknown: did you mean 'vol'? known: cut, vol"),
    ],
)
def test_impossible_requests_are_refused(skewed: Graph, parts: int, method: str, objective: str, message: str) -> None:
    with pytest.raises(GraphError) as caught:
        partition_graph(skewed, parts, method, objective)
    assert message in str(caught.value)


def test_what_metis_is_told_besides_is_in_the_label_and_changes_the_parts(skewed: Graph) -> None:
    labels = {
        "metis-cut-recursive": {"objective": "cut", "algorithm": "recursive"},
        "metis-vol-10%": {"imbalance": 0.1},
        "metis-vol-by-edges": {"balance": "edges"},
        "metis-cut-recursive-5%-by-edges": {
            "objective": "cut", "algorithm": "recursive", "imbalance": 0.05, "balance": "edges",
        },
    }  # fmt: skip
    owners = {label: partition_graph(skewed, 4, **options) for label, options in labels.items()}  # type: ignore[arg-type]
    assert [partitioning.method for partitioning in owners.values()] == list(labels)
    plain = [partition_graph(skewed, 4, objective=goal).owner for goal in ("vol", "cut")]
    assert (
        len({partitioning.owner.tobytes() for partitioning in owners.values()} | {owner.tobytes() for owner in plain})
        == 6
    )


def test_parts_are_as_even_as_was_asked_in_what_was_asked(skewed: Graph) -> None:
    def uneven(**options: object) -> tuple[float, float]:
        parts = split(skewed, partition_graph(skewed, 4, **options))  # type: ignore[arg-type]
        facts = partition_facts(parts)
        return facts.balance, facts.entry_balance

    assert uneven(balance="edges", imbalance=0.05)[1] < 1.06
    assert uneven(balance="edges")[1] < uneven()[1]
    assert uneven(imbalance=0.01)[0] <= 1.02
    assert uneven(objective="cut", algorithm="recursive")[0] <= 1.011


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"algorithm": "kwai"}, "partition algorithm 'kwai' is unknown: did you mean 'kway'? known: kway, recursive"),
        ({"balance": "edge"}, "partition balance 'edge' is unknown: did you mean 'edges'? known: edges, nodes"),
        ({"algorithm": "recursive"}, "partition objective 'vol' is not allowed with recursive; METIS bisects by: cut"),
    ],
)
def test_what_metis_does_not_do_is_refused(skewed: Graph, options: dict[str, str], message: str) -> None:
    with pytest.raises(GraphError) as caught:
        partition_graph(skewed, 4, **options)  # type: ignore[arg-type]
    assert message in str(caught.value)
