from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gcnsim.core.errors import GraphError
from gcnsim.core.ids import IntArray
from gcnsim.core.streams import stream
from gcnsim.graph import Graph, build_csr
from gcnsim.graph.assign import METHODS, partition_graph
from gcnsim.graph.parts import Part, Partitioning, own_send_sets, part_of, split


def _global_ids(part: Part) -> IntArray:
    return np.concatenate([part.inner, part.boundary])


@pytest.mark.parametrize("parts", [1, 2, 7])
@pytest.mark.parametrize("method", METHODS)
def test_the_parts_rows_are_the_graphs_rows(skewed: Graph, method: str, parts: int) -> None:
    owner = partition_graph(skewed, parts, method)
    for part in split(skewed, owner):
        assert part.inner.tolist() == np.flatnonzero(owner.owner == part.rank).tolist()
        ids = _global_ids(part)
        assert ids.size == np.unique(ids).size
        for local, node in enumerate(part.inner):
            row = skewed.indices[skewed.indptr[node] : skewed.indptr[node + 1]]
            assert ids[part.columns[part.indptr[local] : part.indptr[local + 1]]].tolist() == row.tolist()
        assert part.inner_degree.tolist() == skewed.degrees[part.inner].tolist()
        assert part.boundary_degree.tolist() == skewed.degrees[part.boundary].tolist()


@pytest.mark.parametrize("method", METHODS)
def test_what_n_sends_to_m_is_what_m_borders_on_and_n_owns(skewed: Graph, method: str) -> None:
    partitioning = partition_graph(skewed, 5, method)
    parts = split(skewed, partitioning)
    rows = np.repeat(np.arange(skewed.nodes), skewed.degrees)
    owner = partitioning.owner
    for n in range(5):
        for m in range(5):
            crossing = (owner[rows] == n) & (owner[skewed.indices] == m) & (n != m)
            sent = own_send_sets(parts[n])[m]
            assert parts[n].inner[sent].tolist() == np.unique(rows[crossing]).tolist()
            assert set(parts[n].inner[sent]) == set(parts[m].boundary) & set(parts[n].inner)


def test_the_kth_row_received_is_the_kth_row_sent(skewed: Graph) -> None:
    parts = split(skewed, partition_graph(skewed, 6, "random"))
    for m in parts:
        received = [parts[n].inner[own_send_sets(parts[n])[m.rank]] for n in range(6)]
        assert np.concatenate(received).tolist() == m.boundary.tolist()
        assert np.diff(m.boundary_ptr).tolist() == [rows.size for rows in received]


def test_one_part_holds_everything_and_borders_on_nothing(skewed: Graph) -> None:
    (part,) = split(skewed, partition_graph(skewed, 1))
    assert (part.inner_nodes, part.boundary_nodes, part.entries) == (skewed.nodes, 0, skewed.entries)
    assert part.columns.tolist() == skewed.indices.tolist()
    assert part.boundary_ptr.tolist() == [0, 0]
    assert own_send_sets(part)[0].size == 0


def test_a_four_cycle_by_hand() -> None:
    graph = build_csr(np.array([0, 1, 2, 3]), np.array([1, 2, 3, 0]), 4, "cycle")
    owner = np.array([1, 0, 0, 1], dtype=np.int32)
    first, second = split(graph, Partitioning(owner, 2, "block", 0, "cycle", graph.content_hash()))
    assert (first.inner.tolist(), first.boundary.tolist()) == ([1, 2], [0, 3])
    assert first.columns.tolist() == [2, 1, 0, 3]  # 1: {0, 2}; 2: {1, 3}
    assert second.boundary_ptr.tolist() == [0, 2, 2]
    assert own_send_sets(first)[1].tolist() == [0, 1]


@settings(deadline=None, max_examples=60)
@given(st.integers(2, 40), st.integers(1, 120), st.integers(1, 6), st.integers(0, 2**31))
def test_one_part_alone_is_the_one_of_the_split(nodes: int, edges: int, parts: int, seed: int) -> None:
    draw = stream(seed, "graph")
    ends = draw.integers(nodes, size=(2, edges))
    graph = build_csr(np.append(ends[0], 0), np.append(ends[1], 1), nodes, "drawn")
    partitioning = partition_graph(graph, min(parts, nodes), "random", seed=seed)
    whole = split(graph, partitioning)
    for n, expected in enumerate(whole):
        part = part_of(graph, partitioning, n)
        for field in dataclasses.fields(Part):
            found, wanted = getattr(part, field.name), getattr(expected, field.name)
            assert np.array_equal(found, wanted), field.name
            assert getattr(found, "dtype", None) == getattr(wanted, "dtype", None), field.name
        sets = own_send_sets(part)
        for other, rows in zip(whole, sets, strict=True):
            first, last = other.boundary_ptr[n : n + 2]
            assert part.inner[rows].tolist() == other.boundary[first:last].tolist()
        assert all(rows.dtype == np.int64 and not rows.flags.writeable for rows in sets)


def test_a_rank_without_a_part_is_refused(skewed: Graph) -> None:
    partitioning = partition_graph(skewed, 3)
    for rank in (-1, 3):
        with pytest.raises(GraphError, match=f"skewed: part {rank} of 3; 0 to 2 are there"):
            part_of(skewed, partitioning, rank)


def test_dtypes_are_the_documented_ones_and_read_only(skewed: Graph) -> None:
    part = split(skewed, partition_graph(skewed, 3))[1]
    assert part.columns.dtype == np.int32
    for name in ("inner", "boundary", "boundary_ptr", "indptr", "inner_degree", "boundary_degree"):
        array = getattr(part, name)
        assert array.dtype == np.int64, name
        assert not array.flags.writeable, name
    assert not part.columns.flags.writeable


def test_owners_of_another_graph_are_refused(skewed: Graph) -> None:
    with pytest.raises(GraphError, match="skewed: 400 nodes, but the partition has 3"):
        split(skewed, Partitioning(np.zeros(3, dtype=np.int32), 1, "block", 0, "other", ""))
    with pytest.raises(GraphError, match="skewed: 400 nodes, but the partition has 3"):
        part_of(skewed, Partitioning(np.zeros(3, dtype=np.int32), 1, "block", 0, "other", ""), 0)
    with pytest.raises(GraphError, match="owners run from 2 to 2; 0 to 1 are allowed"):
        split(skewed, Partitioning(np.full(400, 2, dtype=np.int32), 2, "block", 0, "skewed", ""))


@pytest.mark.parametrize(
    ("name", "objective", "published"),
    [("amazon_cs", "cut", 0.91), ("amazon_cs", "vol", 0.81), ("tolokers", "cut", 1.75), ("tolokers", "vol", 1.34)],
)
def test_boundary_per_inner_at_four_parts_is_the_published_one(
    real_graph: Callable[[str], Graph], name: str, objective: str, published: float
) -> None:
    graph = real_graph(name)
    parts = split(graph, partition_graph(graph, 4, objective=objective))
    ratio = sum(part.boundary_nodes for part in parts) / graph.nodes
    assert ratio == pytest.approx(published, rel=0.03)
