from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gcnsim.core.errors import GraphError
from gcnsim.graph.assign import partition_graph
from gcnsim.graph.parts import own_send_sets, split
from runtime.data import Dataset, load_dataset, share_of
from runtime.options import Options


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
