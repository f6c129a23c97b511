from __future__ import annotations

import sys

import numpy as np
import pytest
from sklearn.datasets import load_digits

from gcnsim.core.errors import GcnsimError
from gcnsim.graph.csr import Cleaning
from runtime.data.load import nearest_pairs, read_digits


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


def test_neighbours_mostly_show_the_same_digit() -> None:
    graph, _, labels = read_digits()
    rows = np.repeat(np.arange(graph.nodes), graph.degrees)
    assert float(np.mean(labels[rows] == labels[graph.indices])) > 0.9


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
