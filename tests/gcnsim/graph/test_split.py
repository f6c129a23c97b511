"""Parts of a graph, the files of owners, and the nodes that are trained."""

from __future__ import annotations

import dataclasses
import gzip
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gcnsim.core.errors import FileError, GraphError
from gcnsim.core.ids import AnyArray, IntArray
from gcnsim.core.streams import stream
from gcnsim.graph import Graph, build_csr
from gcnsim.graph.assign import METHODS, partition_graph, training_parts
from gcnsim.graph.generate import BlockModel, block_model
from gcnsim.graph.owners import open_partition, write_partition
from gcnsim.graph.parts import Part, Partitioning, own_send_sets, part_of, split


def _global_ids(part: Part) -> IntArray:
    return np.concatenate([part.inner, part.boundary])


@pytest.mark.parametrize("parts", [1, 7])
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


OWNER = np.array([0, 1, 1, 0, 2, 2])


@pytest.fixture
def ring() -> Graph:
    nodes = np.arange(6)
    return build_csr(nodes, (nodes + 1) % 6, 6, "ring")


def _text(owner: AnyArray) -> str:
    return "".join(f"{part}\n" for part in owner)


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.uint8, ">i8", np.float32])
def test_an_array_of_owners_is_a_partition(ring: Graph, tmp_path: Path, dtype: type[np.generic]) -> None:
    np.save(tmp_path / "node_map.npy", OWNER.astype(dtype))
    partitioning = open_partition(tmp_path / "node_map.npy", ring)
    assert (partitioning.owner.tolist(), str(partitioning.owner.dtype), partitioning.parts) == (
        OWNER.tolist(),
        "int32",
        3,
    )
    assert (partitioning.method, partitioning.graph_name, partitioning.graph_hash) == (
        "file",
        "ring",
        ring.content_hash(),
    )
    assert not partitioning.owner.flags.writeable


def test_halves_are_no_parts(ring: Graph, tmp_path: Path) -> None:
    np.save(tmp_path / "owner.npy", OWNER / 2)
    with pytest.raises(FileError, match=r"owner.npy is float64\[6\] with the value 0.5; integers are needed"):
        open_partition(tmp_path / "owner.npy", ring)


@pytest.mark.parametrize("name", ["ring.part.3", "assignment"])
@pytest.mark.parametrize(
    "text",
    [
        _text(OWNER),
        _text(OWNER).replace("\n", "\r\n"),
        "0 \n1\n1\n0\n2\n2",
        "% a\n0\n1\n# b\n1\n0\n2\n2\n",
        "0\r1\r1\r0\r2\r2",
    ],
)
def test_a_number_a_line_is_a_partition_whatever_its_name(ring: Graph, tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_bytes(text.encode())
    partitioning = open_partition(tmp_path / name, ring)
    assert (partitioning.owner.tolist(), partitioning.parts, partitioning.method) == (OWNER.tolist(), 3, "file")


def test_compressed_text_is_read(ring: Graph, tmp_path: Path) -> None:
    (tmp_path / "ring.part.3.gz").write_bytes(gzip.compress(_text(OWNER).encode()))
    assert open_partition(tmp_path / "ring.part.3.gz", ring).owner.tolist() == OWNER.tolist()


def test_every_form_of_one_partition_has_the_same_hash_of_owners(ring: Graph, tmp_path: Path) -> None:
    made = partition_graph(ring, 3)
    write_partition(tmp_path / "ours", made)
    np.save(tmp_path / "owner.npy", made.owner)
    (tmp_path / "text").write_text(_text(made.owner))
    found = {open_partition(tmp_path / name, ring).owner_hash for name in ("ours", "owner.npy", "text")}
    assert found == {made.owner_hash}


@pytest.mark.parametrize(
    ("owner", "message"),
    [
        (OWNER[:5], "5 owners of 6 nodes; each node of ring needs the number of its part"),
        (OWNER + 1, "parts 1 to 3, not 0 to 2; subtract 1 from each"),
        (OWNER - 1, "part -1 is not allowed; parts are numbered from 0"),
        (OWNER * 2, "part 1 of 0 to 4 has no node; each part needs one"),
        (OWNER * 10**9, "parts 0 to 2,000,000,000 of 6 nodes; each part needs a node"),
        (OWNER.astype(str), "<U21[6]; a row of integers, each node's part, is needed"),
        (OWNER.reshape(2, 3), "int64[2, 3]; a row of integers, each node's part, is needed"),
        (OWNER[:0], "0 owners of 6 nodes; each node of ring needs the number of its part"),
    ],
)
def test_what_is_no_partition_says_what_is_wrong(ring: Graph, tmp_path: Path, owner: AnyArray, message: str) -> None:
    path = tmp_path / "owner.npy"
    np.save(path, owner)
    with pytest.raises(FileError) as caught:
        open_partition(path, ring)
    assert str(caught.value) == f"{path}: {message}"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"0\n1\n1.0\n0\n2\n2\n", "line 3: '1.0' is not the number of a part"),
        (b"0\n\n1\n1\n0\n2\n2\n", "line 2: '' is not the number of a part"),
        (b"0,1,1,0,2,2", "line 1: '0,1,1,0,2,2' is not the number of a part"),
        ("0\n1\n".encode("utf-16-le"), "holds NUL bytes"),
        (b"1\n2\n2\n1\n3\n3\n", "parts 1 to 3, not 0 to 2; subtract 1 from each"),
        (b"", "is empty; each node needs the number of its part, one per line"),
        (b"PK\x03\x04 an archive", "an archive; write its owners with np.save"),
        (b"\x80\x04 a pickle", "a pickle, which is never opened; write its owners with np.save"),
        (b"GCNSIM\x00\x01", "is not a gcnsim file (or is truncated before its header)"),
    ],
)
def test_other_files_are_refused_in_one_line(ring: Graph, tmp_path: Path, data: bytes, message: str) -> None:
    path = tmp_path / "ring.part"
    path.write_bytes(data)
    with pytest.raises(FileError) as caught:
        open_partition(path, ring)
    assert str(caught.value).startswith(f"{path}: {message}")


def test_a_rank_without_a_part_is_refused(skewed: Graph) -> None:
    partitioning = partition_graph(skewed, 3)
    for rank in (-1, 3):
        with pytest.raises(GraphError, match=f"skewed: part {rank} of 3; 0 to 2 are there"):
            part_of(skewed, partitioning, rank)
