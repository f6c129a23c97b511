"""The data set that is always at hand: handwritten digits joined to those that look alike."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np

from gcnsim.errors import ScenarioError
from gcnsim.graph import Graph, build_csr
from gcnsim.ids import AnyArray, Float32Array, IntArray

DIGITS = "digits"
CLASSES = 10
_NEIGHBOURS, _MOST_INK = 10, 16.0


def read_digits() -> tuple[Graph, Float32Array, IntArray]:
    """The graph, the features float32[1797, 64] in 0..1 and the labels int64[1797] of scikit-learn's digits.

    Each image is joined to its 10 nearest others (Euclidean; ties to the lower id). Images: E. Alpaydin and C. Kaynak,
    "Optical Recognition of Handwritten Digits" (UCI, 1998), test part. Raises ScenarioError without scikit-learn.
    """
    images, labels = _images()
    sources, targets = nearest_pairs(images, _NEIGHBOURS)
    graph = build_csr(sources, targets, len(labels), DIGITS, features=images.shape[1], classes=CLASSES)
    return graph, (images / _MOST_INK).astype(np.float32), labels.astype(np.int64)


def _images() -> tuple[AnyArray, AnyArray]:
    """Scikit-learn's file where it lies; importing the library to read it takes a worker 1.2 s of processor time."""
    found = find_spec("sklearn")
    if found is None or found.origin is None:
        raise ScenarioError("--dataset: digits needs scikit-learn; pip install 'gcnsim[runtime]'")
    file = Path(found.origin).parent / "datasets" / "data" / "digits.csv.gz"
    if file.is_file():
        rows = np.loadtxt(file, delimiter=",")
        return rows[:, :-1], rows[:, -1]
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    return images, labels


def nearest_pairs(points: AnyArray, count: int) -> tuple[IntArray, IntArray]:
    """(i, j) for the `count` rows j nearest to each row i, itself excluded; ties to the lower j.

    points: [N, d] whole numbers small enough that squared distances times N are exact in float64: the order is then
    the same on every machine. Takes N^2 memory.
    """
    whole = points.astype(np.float64)
    square = np.square(whole).sum(axis=1)
    distance = square[:, None] + square[None, :] - 2.0 * (whole @ whole.T)
    nodes = whole.shape[0]
    order = distance * nodes + np.arange(nodes)
    np.fill_diagonal(order, np.inf)
    near = np.argpartition(order, count - 1, axis=1)[:, :count]
    return np.repeat(np.arange(nodes), count), near.ravel().astype(np.int64)
