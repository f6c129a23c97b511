"""Load the requested data as a checked `Dataset`: digits, a named file, or any graph file.

Features, labels and masks come with the graph, from any source that has them.

Runs in sequence share data through `DatasetCache`.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import numpy as np

from gcnsim.core.errors import FileError, GraphError, ScenarioError, nearest
from gcnsim.core.ids import AnyArray, BoolArray, Float32Array, IntArray, frozen
from gcnsim.core.streams import stream
from gcnsim.graph import Graph, build_csr, load_graph
from gcnsim.graph.assign import NODES, partition_graph
from gcnsim.graph.formats.nodes import MASKS, read_nodes
from gcnsim.graph.owners import open_partition
from gcnsim.graph.parts import Partitioning
from runtime.data.dataset import (
    Dataset,
    Features,
    InMemory,
    Normal,
    Projection,
    RowSource,
    RowTransform,
    Standard,
    UnitRows,
)
from runtime.options import Options

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


_DRAWN = "60 % train, 20 % validate, 20 % test of the labelled nodes, drawn at random"

FOLDER = "GCNSIM_DATA"
"""The environment variable that names the folder of NAME.npz files and of folders NAME as they were published."""


def load_dataset(options: Options) -> Dataset:
    """The data that `options` names: `graph` if given, else `dataset`, which is `digits` or a file in $GCNSIM_DATA.

    `random_features` and `random_classes`, if given, replace the file's data and come from the run's seed; nothing else
    depends on that seed. Without masks, the labelled nodes are split 60/20/20 %. Raises ScenarioError for an unknown
    dataset and an unsuitable option, FileError or GraphError for an unusable file.
    """
    notes: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    if options.graph is None and options.dataset == DIGITS:
        where = DIGITS
        graph, features, held_labels = read_digits()
        held = NodeData(InMemory(features), held_labels, _split(held_labels, (DIGITS, "split")))
    else:
        where = options.graph if options.graph is not None else _named(options.dataset)
        graph = _opened(where)
        held = read_node_data(
            where, graph.nodes, features=options.random_features is None, labels=options.random_classes is None
        )
        notes, ignored = _notes(graph, held), graph.cleaning.ignored
    source, labels = _source(options, held), _labels(options, held, graph.nodes)
    lacking = [
        f"no {what} ({flag} makes random ones)"
        for what, flag, found in (
            ("features", "--random-features D", source),
            ("labels", "--random-classes C", labels),
        )
        if found is None
    ]
    if source is None or labels is None:
        unread = f"; not understood: {', '.join(ignored)}" if ignored else ""
        raise FileError(f"{where}: {' and '.join(lacking)}{unread}")
    masks = held.masks or _split(labels, ("split", graph.content_hash()))
    _check(where, labels, masks)
    return replace(_dataset(options, graph, source, labels, masks), notes=notes)


def _opened(where: str) -> Graph:
    """The graph. Raises FileError or GraphError, which say how to convert an edge list of names or other columns."""
    try:
        return load_graph(where)
    except (FileError, GraphError) as error:
        if not any(option in str(error) for option in ("--ids", "--ends")):
            raise
        raise type(error)(
            f"{error}; training has no such option: gcnsim graph convert writes an .npz with it"
        ) from None


def _notes(graph: Graph, held: NodeData) -> tuple[str, ...]:
    """Remarks on how features, labels and split were read."""
    lines = tuple(f"{graph.name}: {note}" for note in held.notes)
    return lines if held.masks is not None else (*lines, f"{graph.name}: no split in the file: {_DRAWN}")


def _named(name: str) -> str:
    """The path of the dataset `name`."""
    folder = os.environ.get(FOLDER)
    if not folder:
        raise ScenarioError(f"--dataset: {name!r} is looked up in the folder {FOLDER}, which is not set")
    try:
        inside = sorted(Path(folder).iterdir())
    except OSError as error:
        raise ScenarioError(f"--dataset: {FOLDER} is {folder!r}, which cannot be listed: {error.strerror}") from None
    files = {path.name: path for path in inside if path.is_dir()}
    files |= {path.stem: path for path in inside if path.suffix == ".npz"}
    if name not in files:
        raise ScenarioError(
            f"--dataset: no {name}.npz and no folder {name} in {folder}; {nearest(name, [DIGITS, *files])}"
        )
    return str(files[name])


def _source(options: Options, held: NodeData) -> RowSource | None:
    if options.random_features is not None:
        return Normal(options.seed, options.random_features)
    return held.features


def _labels(options: Options, held: NodeData, nodes: int) -> AnyArray | None:
    if options.random_classes is not None:
        return stream(options.seed, "labels").integers(options.random_classes, size=nodes)
    return held.labels


def _labelled(labels: AnyArray) -> BoolArray:
    known: BoolArray = labels >= 0 if labels.ndim == 1 else np.ones(labels.shape[0], dtype=np.bool_)
    return known


def _split(labels: AnyArray, names: tuple[str, ...]) -> tuple[BoolArray, BoolArray, BoolArray]:
    """Masks of 60, 20 and 20 % of the labelled nodes, random but the same for every seed of the run."""
    known: IntArray = stream(0, *names).permutation(np.flatnonzero(_labelled(labels)))
    ends = [known.size * 6 // 10, known.size * 8 // 10]
    train, val, test = np.zeros((3, labels.shape[0]), dtype=np.bool_)
    for mask, chosen in zip((train, val, test), np.split(known, ends), strict=True):
        mask[chosen] = True
    return train, val, test


def _check(where: str, labels: AnyArray, masks: tuple[BoolArray, BoolArray, BoolArray]) -> None:
    if not masks[0].any():
        raise FileError(f"{where}: no training nodes; at least 1 is needed")
    unknown = ~_labelled(labels)
    for name, mask in zip(MASKS, masks, strict=True):
        count = int(np.count_nonzero(mask & unknown))
        if count:
            raise FileError(f"{where}: {name} holds {count} nodes without a known label; none is allowed")


def _dataset(
    options: Options, graph: Graph, source: RowSource, labels: AnyArray, masks: tuple[BoolArray, BoolArray, BoolArray]
) -> Dataset:
    train, val, test = (frozen(mask) for mask in masks)
    multilabel = labels.ndim == 2
    # A file may declare classes without nodes.
    known = labels.shape[1] if multilabel else max(int(labels.max()) + 1, graph.classes or 0)
    classes = options.random_classes or known
    return Dataset(
        name=graph.name,
        graph=graph,
        features=Features(source, _steps(options, source, np.flatnonzero(train))),
        labels=frozen(labels),
        train=train,
        val=val,
        test=test,
        classes=int(classes),
        multilabel=multilabel,
    )


def _steps(options: Options, source: RowSource, train: IntArray) -> tuple[RowTransform, ...]:
    """Normalise, then project."""
    steps: list[RowTransform] = []
    if options.feature_norm == "row":
        steps.append(UnitRows())
    elif options.feature_norm == "standard":
        steps.append(Standard.over(Features(source), train))
    if options.feature_dim is not None:
        steps.append(Projection.fixed(source.width, options.feature_dim))
    return tuple(steps)


__all__ = ["MASKS", "NodeData", "read_node_data"]


@dataclass(frozen=True, slots=True)
class NodeData:
    """The node data of a file; None for missing parts. labels as in `Dataset`; masks: train, val, test; notes as in
    `NodeArrays`.
    """

    features: InMemory | None = None
    labels: AnyArray | None = None
    masks: tuple[BoolArray, BoolArray, BoolArray] | None = None
    notes: tuple[str, ...] = ()


def read_node_data(path: str, nodes: int, *, features: bool = True, labels: bool = True) -> NodeData:
    """The node data at `path` for its graph of `nodes` nodes; arguments and errors as in `read_nodes`."""
    held = read_nodes(path, nodes, features=features, labels=labels)
    return NodeData(None if held.features is None else InMemory(held.features), held.labels, held.masks, held.notes)


def partitioning_of(options: Options, dataset: Dataset) -> Partitioning:
    """The owners of the dataset's nodes, one part for each of `options.workers`.

    `options.partition`: any file that `open_partition` supports; without it, `partition_graph` with the options'
    method, objective, balance and seed. The same on every rank. Raises ScenarioError for more workers than nodes,
    FileError for a file that is damaged, or made for another graph or number of workers.
    """
    graph, workers, path = dataset.graph, options.workers, options.partition
    if workers > graph.nodes:
        raise ScenarioError(
            f"--workers: {workers} is more than the {graph.nodes} nodes of {graph.name}; allowed: 1 to {graph.nodes}"
        )
    if path is None:
        return partition_graph(
            graph,
            workers,
            options.partition_method,
            options.objective,
            options.partition_seed,
            balance=options.balance,
            training=dataset.train,
        )
    partitioning = open_partition(path, graph)
    if partitioning.parts != workers:
        raise FileError(f"{path}: made for {partitioning.parts} workers, but --workers is {workers}")
    return partitioning


KEPT: Final = 4
"""The number of partitions cached for later runs."""


@dataclass
class DatasetCache:
    """The last dataset and partitions, cached for later runs."""

    key: tuple[Any, ...] | None = None
    held: Dataset | None = None
    partitions: dict[tuple[Any, ...], Partitioning] = field(default_factory=dict)

    def dataset(self, options: Options) -> Dataset:
        """The dataset of `options`."""
        random = options.random_features is not None or options.random_classes is not None
        key = (
            options.graph, options.dataset, options.random_features, options.random_classes, options.feature_dim,
            options.feature_norm, options.seed if random else None,
        )  # fmt: skip
        if self.held is None or key != self.key:
            self.held = None
            self.key, self.held = key, load_dataset(options)
        return self.held

    def owners(self, options: Options, dataset: Dataset) -> Partitioning:
        """The owners of the nodes of `dataset`, as in `partitioning_of`; a file of owners is read each time."""
        if options.partition is not None:
            return partitioning_of(options, dataset)
        balanced = b"" if options.balance == NODES else dataset.train.tobytes()
        key = (
            dataset.graph.content_hash(), options.workers, options.partition_method, options.objective,
            options.partition_seed, options.balance, balanced,
        )  # fmt: skip
        if key not in self.partitions:
            self.partitions[key] = partitioning_of(options, dataset)
        found = self.partitions[key]
        while len(self.partitions) > KEPT:
            del self.partitions[next(iter(self.partitions))]
        return found
