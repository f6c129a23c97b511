"""Partitions: who owns each node, what each worker holds, and what crosses between workers."""

from __future__ import annotations

from gcnsim.partition.assign import (
    ALGORITHMS,
    BALANCES,
    EDGES,
    KWAY,
    METHODS,
    NODES,
    OBJECTIVES,
    RECURSIVE,
    TRAINING_NODES,
    metis_label,
    metis_owners,
    partition_graph,
)
from gcnsim.partition.facts import (
    ROLES,
    PartitionFacts,
    Scatter,
    Spread,
    partition_facts,
    partition_scatter,
    partition_spread,
    partition_warnings,
    role_spreads,
)
from gcnsim.partition.owners import open_partition, read_partition, write_partition
from gcnsim.partition.parts import FROM_FILE, Part, Partitioning, own_send_sets, part_of, split
from gcnsim.partition.replicas import Replicas, allowed_copies
from gcnsim.partition.reuse import PRODUCTS, REUSE_ENTRIES, WINDOWS, entries_reuse, graph_reuse, reuse_of
from gcnsim.partition.training_nodes import TrainingParts, training_parts

__all__ = [
    "ALGORITHMS",
    "BALANCES",
    "EDGES",
    "FROM_FILE",
    "KWAY",
    "METHODS",
    "NODES",
    "OBJECTIVES",
    "PRODUCTS",
    "RECURSIVE",
    "REUSE_ENTRIES",
    "ROLES",
    "TRAINING_NODES",
    "WINDOWS",
    "Part",
    "PartitionFacts",
    "Partitioning",
    "Replicas",
    "Scatter",
    "Spread",
    "TrainingParts",
    "allowed_copies",
    "entries_reuse",
    "graph_reuse",
    "metis_label",
    "metis_owners",
    "open_partition",
    "own_send_sets",
    "part_of",
    "partition_facts",
    "partition_graph",
    "partition_scatter",
    "partition_spread",
    "partition_warnings",
    "read_partition",
    "reuse_of",
    "role_spreads",
    "split",
    "training_parts",
    "write_partition",
]
