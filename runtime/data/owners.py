"""Who owns each node in a run: a partition file of ours, an assignment as .npy, or a partition made on the spot."""

from __future__ import annotations

import numpy as np

from gcnsim.errors import FileError, ScenarioError
from gcnsim.graph import Graph, read_npy
from gcnsim.ids import AnyArray, frozen
from gcnsim.partition import Partitioning, partition_graph, read_partition
from runtime.data.dataset import Dataset
from runtime.options import Options


def partitioning_of(options: Options, dataset: Dataset) -> Partitioning:
    """The owners of the data set's nodes, one part for each of `options.workers`.

    `options.partition`: a `.npy` of integers[N], the owner of each node, or what `write_partition` wrote; without it,
    `partition_graph` with the options' method, objective and seed. The same on every rank.
    Raises ScenarioError for more workers than nodes, FileError for a file that is damaged, or made for another graph or
    number of workers.
    """
    graph, workers, path = dataset.graph, options.workers, options.partition
    if workers > graph.nodes:
        raise ScenarioError(
            f"--workers: {workers} is more than the {graph.nodes} nodes of {graph.name}; allowed: 1 to {graph.nodes}"
        )
    if path is None:
        return partition_graph(graph, workers, options.partition_method, options.objective, options.partition_seed)
    if path.lower().endswith(".npy"):
        return _assigned(path, read_npy(path), graph, workers)
    found = read_partition(path, graph)
    if found.parts != workers:
        raise FileError(f"{path}: made for {found.parts} workers, but --workers is {workers}")
    return found


def _assigned(path: str, owner: AnyArray, graph: Graph, workers: int) -> Partitioning:
    if owner.dtype.kind not in "iu" or owner.ndim != 1:
        raise FileError(f"{path}: {owner.dtype}{list(owner.shape)}; a row of integers, each node's owner, is needed")
    if owner.size != graph.nodes:
        raise FileError(f"{path}: {owner.size} owners, but {graph.name} has {graph.nodes} nodes")
    low, high = int(owner.min()), int(owner.max())
    if low < 0:
        raise FileError(f"{path}: owner {low} is not allowed; allowed: 0 to {workers - 1}")
    if high + 1 != workers:
        raise FileError(f"{path}: made for {high + 1} workers (owners {low} to {high}), but --workers is {workers}")
    empty = np.flatnonzero(np.bincount(owner.astype(np.int64), minlength=workers) == 0)
    if empty.size:
        raise FileError(f"{path}: rank {empty[0]} owns no node; each of the {workers} workers needs one")
    return Partitioning(frozen(owner.astype(np.int32)), workers, "file", 0, graph.name, graph.content_hash())
