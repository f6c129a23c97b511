"""What runs one after the other have in common, read or made once."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from gcnsim.errors import FileError, ScenarioError
from gcnsim.partition import NODES, Partitioning, open_partition, partition_graph
from runtime.data.dataset import Dataset
from runtime.data.load import load_dataset
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


KEPT: Final = 4
"""Partitions that are kept for runs to come."""


@dataclass
class DatasetCache:
    """The data set read last and the partitions made last, which the next runs may want again."""

    asked: tuple[Any, ...] | None = None
    held: Dataset | None = None
    partitions: dict[tuple[Any, ...], Partitioning] = field(default_factory=dict)

    def dataset(self, options: Options) -> Dataset:
        """That of `options`."""
        drawn = options.random_features is not None or options.random_classes is not None
        asked = (
            options.graph, options.dataset, options.random_features, options.random_classes, options.feature_dim,
            options.feature_norm, options.seed if drawn else None,
        )  # fmt: skip
        if self.held is None or asked != self.asked:
            self.held = None
            self.asked, self.held = asked, load_dataset(options)
        return self.held

    def owners(self, options: Options, dataset: Dataset) -> Partitioning:
        """Who owns the nodes of `dataset`, as `partitioning_of` says; a file of them is read each time."""
        if options.partition is not None:
            return partitioning_of(options, dataset)
        balanced = b"" if options.balance == NODES else dataset.train.tobytes()
        asked = (
            dataset.graph.content_hash(), options.workers, options.partition_method, options.objective,
            options.partition_seed, options.balance, balanced,
        )  # fmt: skip
        if asked not in self.partitions:
            self.partitions[asked] = partitioning_of(options, dataset)
        found = self.partitions[asked]
        while len(self.partitions) > KEPT:
            del self.partitions[next(iter(self.partitions))]
        return found
