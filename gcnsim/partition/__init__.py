"""Partitions: the owner of each node, the share of each worker, and the data that cross between workers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gcnsim.lazy import lazily
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
    TrainingParts,
    metis_label,
    metis_owners,
    partition_graph,
    training_parts,
)
from gcnsim.partition.facts import (
    PartitionFacts,
    SeedVariation,
    Spread,
    partition_facts,
    partition_scatter,
    partition_spread,
    partition_warnings,
    role_spreads,
)
from gcnsim.partition.parts import (
    FROM_FILE,
    Part,
    Partitioning,
    Replicas,
    allowed_copies,
    own_send_sets,
    part_of,
    split,
)

if TYPE_CHECKING:
    from gcnsim.partition.owners import open_partition, read_partition, write_partition

_FILES = ("open_partition", "read_partition", "write_partition")

__getattr__ = lazily(__name__, dict.fromkeys(_FILES, "gcnsim.partition.owners"))

__all__ = [
    "ALGORITHMS",
    "BALANCES",
    "EDGES",
    "FROM_FILE",
    "KWAY",
    "METHODS",
    "NODES",
    "OBJECTIVES",
    "RECURSIVE",
    "TRAINING_NODES",
    "Part",
    "PartitionFacts",
    "Partitioning",
    "Replicas",
    "SeedVariation",
    "Spread",
    "TrainingParts",
    "allowed_copies",
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
    "role_spreads",
    "split",
    "training_parts",
    "write_partition",
]
