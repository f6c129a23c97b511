"""Data of a worker: caches, digits, features, its share."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import load_digits

from gcnsim.core.errors import GcnsimError, GraphError, ScenarioError
from gcnsim.core.ids import Float32Array, IntArray
from gcnsim.core.streams import stream
from gcnsim.graph.assign import partition_graph
from gcnsim.graph.csr import Cleaning
from gcnsim.graph.parts import own_send_sets, split
from runtime.data import Dataset, DatasetCache, load, load_dataset, partitioning_of, share_of
from runtime.data import dataset as module
from runtime.data.dataset import Features, InMemory, Normal, Projection, RowTransform, Standard, UnitRows
from runtime.data.load import KEPT, nearest_pairs, read_digits
from runtime.options import Options
from tests.runtime.conftest import Case, MakeOptions


@pytest.fixture(scope="module")
def digits() -> Dataset:
    return load_dataset(Options())


def test_the_shares_together_are_the_data_set(digits: Dataset) -> None:
    partitioning = partition_graph(digits.graph, 3)
    parts = split(digits.graph, partitioning)
    seen = []
    for rank in range(3):
        share = share_of(digits, partitioning, rank)
        inner = parts[rank].inner
        assert share.part.inner.tolist() == inner.tolist()
        assert np.array_equal(share.part.columns, parts[rank].columns)
        assert np.array_equal(share.features, digits.features.rows(inner))
        assert np.array_equal(share.labels, digits.labels[inner])
        for mask, whole in ((share.train, digits.train), (share.val, digits.val), (share.test, digits.test)):
            assert np.array_equal(mask, whole[inner])
        assert share.train_total == 1078
        assert [rows.tolist() for rows in share.send_sets] == [rows.tolist() for rows in own_send_sets(parts[rank])]
        assert share.send_sets[rank].size == 0
        for array in (share.features, share.labels, share.train, share.val, share.test, *share.send_sets):
            assert not array.flags.writeable
        seen.append(inner)
    assert np.sort(np.concatenate(seen)).tolist() == list(range(1797))


def test_projected_rows_are_the_same_in_every_partition(digits: Dataset) -> None:
    dataset = load_dataset(Options(feature_dim=16, feature_norm="standard"))
    whole = share_of(dataset, partition_graph(dataset.graph, 1), 0).features
    for method in ("random", "block"):
        partitioning = partition_graph(dataset.graph, 3, method)
        share = share_of(dataset, partitioning, 1)
        assert share.features.shape == (599, 16)
        assert np.allclose(share.features, whole[share.part.inner], rtol=1e-6, atol=1e-7)


def test_another_graphs_partition_and_a_missing_rank_are_refused(digits: Dataset, tmp_path: Path) -> None:
    (tmp_path / "g.txt").write_text("0 1\n1 2\n")
    other = load_dataset(Options(graph=str(tmp_path / "g.txt"), random_features=2, random_classes=2))
    with pytest.raises(GraphError, match="digits: 1797 nodes, but the partition has 3"):
        share_of(digits, partition_graph(other.graph, 2), 0)
    with pytest.raises(GraphError, match="digits: part 2 of 2; 0 to 1 are there"):
        share_of(digits, partition_graph(digits.graph, 2), 2)


def test_several_classes_per_node_are_shared_as_rows(tmp_path: Path) -> None:
    nodes = np.arange(6)
    path = tmp_path / "g.npz"
    labels = np.eye(6, 3, dtype=np.uint8)
    np.savez(path, indptr=np.arange(0, 8)[:7], indices=(nodes + 1) % 6, x=np.ones((6, 2)), labels=labels)
    dataset = load_dataset(Options(graph=str(path)))
    share = share_of(dataset, partition_graph(dataset.graph, 2, "block"), 1)
    assert (share.labels.dtype, share.labels.tolist()) == (np.dtype(np.float32), labels[3:].tolist())


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Options]:
    """The options that partitions are made for."""
    found: list[Options] = []

    def counted(options: Options, dataset: object) -> object:
        found.append(options)
        return partitioning_of(options, dataset)  # type: ignore[arg-type]

    monkeypatch.setattr(load, "partitioning_of", counted)
    return found


def test_a_partition_is_made_once_for_all_runs_that_ask_for_it(options: MakeOptions, made: list[Options]) -> None:
    held, requested = DatasetCache(), options(workers=2)
    dataset = load_dataset(requested)
    first = held.owners(requested, dataset)
    again = held.owners(replace(requested, method="pipegcn", hidden=9, iterations=3), load_dataset(requested))
    assert again is first
    assert len(made) == 1
    for other in ({"workers": 3}, {"partition_seed": 1}, {"partition_method": "block"}, {"partition_method": "metis"}):
        held.owners(replace(requested, **other), dataset)
    assert len(made) == 5
    assert len(held.partitions) == KEPT
    assert np.array_equal(held.owners(requested, dataset).owner, first.owner)
    assert len(made) == 6, "the one that was made longest ago is gone"


def test_another_graph_and_other_training_nodes_are_another_partition(
    options: MakeOptions, case: Case, made: list[Options]
) -> None:
    held, requested = DatasetCache(), options(workers=2, partition_method="metis", balance="training-nodes")
    dataset = load_dataset(requested)
    held.owners(requested, dataset)
    held.owners(requested, replace(dataset, train=~dataset.train))
    held.owners(replace(requested, balance="nodes"), dataset)
    held.owners(replace(requested, balance="nodes"), replace(dataset, train=~dataset.train))
    assert len(made) == 3, "who trains matters where it is balanced"
    held.owners(replace(requested, balance="nodes"), load_dataset(Options(dataset="digits")))
    assert len(made) == 4


def test_owners_in_a_file_are_read_each_time(options: MakeOptions, made: list[Options], tmp_path: object) -> None:
    path = f"{tmp_path}/owner.npy"
    np.save(path, np.arange(120, dtype=np.int32) % 2, allow_pickle=False)
    held, requested = DatasetCache(), options(workers=2, partition=path)
    dataset = load_dataset(requested)
    for _ in range(2):
        assert held.owners(requested, dataset).parts == 2
    assert len(made) == 2


def test_neighbours_on_a_line_by_hand() -> None:
    sources, targets = nearest_pairs(np.array([[0], [1], [3], [5], [20]]), 2)
    pairs = sorted(zip(sources.tolist(), targets.tolist(), strict=True))
    # 3 is as near to 1 as to 5: both are among its two nearest.
    assert pairs == [(0, 1), (0, 2), (1, 0), (1, 2), (2, 1), (2, 3), (3, 1), (3, 2), (4, 2), (4, 3)]


def test_ties_go_to_the_lower_id_and_copies_are_neighbours() -> None:
    sources, targets = nearest_pairs(np.array([[2], [2], [1], [3]]), 2)
    near = {node: sorted(targets[sources == node].tolist()) for node in range(4)}
    assert near == {0: [1, 2], 1: [0, 2], 2: [0, 1], 3: [0, 1]}


def test_digits_are_joined_to_their_nearest_ten() -> None:
    graph, features, labels = read_digits()
    assert (graph.name, graph.nodes, graph.features, graph.classes) == ("digits", 1797, 64, 10)
    assert (features.shape, features.dtype) == ((1797, 64), np.dtype(np.float32))
    assert (float(features.min()), float(features.max())) == (0.0, 1.0)
    assert (labels.dtype, sorted(set(labels.tolist()))) == (np.dtype(np.int64), list(range(10)))
    assert int(graph.degrees.min()) >= 10
    assert graph.entries <= 2 * 10 * 1797
    assert graph.cleaning.self_loops_dropped == graph.cleaning.duplicates_dropped == 0
    assert graph.cleaning != Cleaning()
    for node in (0, 900, 1796):
        distance = np.square(features.astype(np.float64) - features[node]).sum(axis=1)
        distance[node] = np.inf
        row = graph.indices[graph.indptr[node] : graph.indptr[node + 1]]
        assert set(np.argsort(distance, kind="stable")[:10].tolist()) <= set(row.tolist())


def test_images_are_those_that_scikit_learn_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever its file lies: without one at the place we look at, the library itself reads it."""
    _, features, labels = read_digits()
    images, expected = load_digits(return_X_y=True)
    assert np.array_equal(features, (images / 16.0).astype(np.float32))
    assert np.array_equal(labels, expected)
    monkeypatch.setattr("pathlib.Path.is_file", lambda _: False)
    monkeypatch.setattr("sklearn.datasets.load_digits", lambda return_X_y: (images[::-1], expected[::-1]))  # noqa: N803
    assert np.array_equal(read_digits()[2], expected[::-1])


def test_without_scikit_learn_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(GcnsimError) as caught:
        read_digits()
    assert str(caught.value) == "--dataset: digits needs scikit-learn; pip install 'gcnsim[runtime]'"


def _matrix(rows: int = 30, width: int = 7) -> Float32Array:
    draw = stream(1, "matrix")
    values = draw.standard_normal((rows, width)) * (draw.random((rows, width)) < 0.4)
    values[4] = 0.0
    return values.astype(np.float32)


@pytest.fixture(params=["dense", "sparse"])
def held(request: pytest.FixtureRequest) -> InMemory:
    return InMemory(_matrix() if request.param == "dense" else csr_array(_matrix()))


_NODES: IntArray = np.array([3, 29, 4, 0, 17])


def test_rows_come_in_the_order_asked_for(held: InMemory) -> None:
    features = Features(held)
    found = features.rows(_NODES)
    assert (features.width, found.dtype) == (7, np.dtype(np.float32))
    assert found.tolist() == _matrix()[_NODES].tolist()
    assert features.rows(_NODES[:0]).shape == (0, 7)
    found[:] = 0.0
    assert features.rows(_NODES).tolist() == _matrix()[_NODES].tolist()


def test_unit_rows_sum_to_one_and_zero_rows_stay(held: InMemory) -> None:
    found = Features(held, (UnitRows(),)).rows(np.arange(30))
    sums = np.abs(_matrix()).sum(axis=1)
    assert np.allclose(np.abs(found).sum(axis=1), sums > 0, rtol=1e-6)
    assert np.allclose(found * sums[:, None], _matrix(), rtol=1e-6)
    assert found[4].tolist() == [0.0] * 7


def test_standard_columns_have_mean_0_and_deviation_1_over_the_given_nodes(held: InMemory) -> None:
    nodes = np.arange(20)
    found = Features(held, (Standard.over(Features(held), nodes),)).rows(np.arange(30))
    assert np.allclose(found[:20].mean(axis=0), 0.0, atol=1e-6)
    assert np.allclose(found[:20].std(axis=0), 1.0, rtol=1e-6)
    wide = _matrix().astype(np.float64)
    expected = (wide - wide[:20].mean(axis=0)) / wide[:20].std(axis=0)
    assert np.allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_a_constant_column_is_only_shifted() -> None:
    matrix = np.full((1000, 2), 0.1, dtype=np.float32)
    matrix[0, 1], matrix[999, 0] = 0.2, 0.6
    features = Features(InMemory(matrix))
    found = Features(InMemory(matrix), (Standard.over(features, np.arange(999)),)).rows(np.array([5, 999]))
    assert found[:, 0].tolist() == pytest.approx([0.0, 0.5], abs=1e-6)


@pytest.mark.parametrize("steps", [(), (UnitRows(),)])
def test_projection_is_the_product_with_a_matrix_that_is_always_the_same(
    held: InMemory, steps: tuple[RowTransform, ...]
) -> None:
    projection = Projection.fixed(7, 4)
    features = Features(held, (*steps, projection))
    assert features.width == 4
    before = Features(held, steps).rows(_NODES).astype(np.float64)
    assert np.allclose(features.rows(_NODES), before @ Projection.fixed(7, 4).matrix, rtol=1e-5, atol=1e-6)
    assert np.array_equal(projection.matrix, stream(0, "projection").standard_normal((7, 4)) / 2.0)


def test_a_projection_beyond_memory_is_refused() -> None:
    with pytest.raises(
        ScenarioError, match=r"--feature-dim: 1000000 is too many for features of 5000 values; .* 53687$"
    ):
        Projection.fixed(5000, 1_000_000)


def test_chunks_change_nothing(held: InMemory, monkeypatch: pytest.MonkeyPatch) -> None:
    def everything() -> Float32Array:
        steps = (UnitRows(), Standard.over(Features(held, (UnitRows(),)), np.arange(20)), Projection.fixed(7, 4))
        return Features(held, steps).rows(np.arange(30))

    whole = everything()
    monkeypatch.setattr(module, "_CHUNK", 21)
    assert [begin for begin, _ in Features(held).blocks(np.arange(8))] == [0, 3, 6]
    assert np.allclose(everything(), whole, rtol=1e-6, atol=1e-7)


def test_a_sparse_matrix_is_never_whole_in_dense_form(monkeypatch: pytest.MonkeyPatch) -> None:
    class Watched(csr_array):
        def toarray(self, *args: Any, **kwargs: Any) -> Any:
            assert self.shape[0] <= 3
            return super().toarray(*args, **kwargs)

    monkeypatch.setattr(module, "_CHUNK", 21)
    watched = InMemory(Watched(_matrix()))
    steps = (UnitRows(), Projection.fixed(7, 7))
    monkeypatch.setattr(Watched, "todense", None)
    assert Features(watched, steps).rows(np.arange(30)).shape == (30, 7)
    assert Features(watched).rows(np.arange(30)).tolist() == _matrix().tolist()


def test_random_rows_depend_on_seed_and_node_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Features(Normal(5, 300)).rows(np.arange(2000))
    requested = np.array([1999, 0, 873, 874, 875])
    assert Features(Normal(5, 300)).rows(requested).tolist() == whole[requested].tolist()
    assert not np.array_equal(Features(Normal(6, 300)).rows(requested), whole[requested])
    assert np.unique(whole).size > 0.99 * whole.size
    assert (float(whole.mean()), float(whole.std())) == pytest.approx((0.0, 1.0), abs=0.01)
    monkeypatch.setattr(module, "_CHUNK", 3000)
    assert np.array_equal(Features(Normal(5, 300)).rows(np.arange(2000)), whole)
