"""Who owns each node in a run: a partition that somebody made, or one made on the spot."""

from __future__ import annotations

from gcnsim.errors import FileError, ScenarioError
from gcnsim.partition import Partitioning, open_partition, partition_graph
from runtime.data.dataset import Dataset
from runtime.options import Options


def partitioning_of(options: Options, dataset: Dataset) -> Partitioning:
    """The owners of the data set's nodes, one part for each of `options.workers`.

    `options.partition`: whatever `open_partition` reads; without it, `partition_graph` with the options' method,
    objective, balance and seed. The same on every rank.
    Raises ScenarioError for more workers than nodes, FileError for a file that is damaged, or made for another graph or
    number of workers.
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
    found = open_partition(path, graph)
    if found.parts != workers:
        raise FileError(f"{path}: made for {found.parts} workers, but --workers is {workers}")
    return found
