"""Assigning owners to nodes: METIS, balanced random, or contiguous blocks."""

from __future__ import annotations

import numpy as np

from gcnsim.errors import GraphError, nearest
from gcnsim.graph import Graph
from gcnsim.ids import Int32Array, frozen
from gcnsim.partition.metis import metis_owners
from gcnsim.partition.parts import Partitioning
from gcnsim.streams import stream

METHODS = ("metis", "random", "block")
OBJECTIVES = ("vol", "cut")


def partition_graph(
    graph: Graph, parts: int, method: str = "metis", objective: str = "vol", seed: int = 0
) -> Partitioning:
    """Every node's owner, each of the `parts` parts non-empty.

    metis: minimises the communication volume (`vol`) or the entries cut (`cut`), parts of about equal node count.
    random: a permutation cut into parts whose sizes differ by at most 1. block: contiguous ids, likewise.
    `objective` matters to METIS alone, `seed` not to blocks. Raises GraphError for fewer than 1 part, fewer nodes than
    parts, and an unknown method or objective.
    """
    if method not in METHODS:
        raise GraphError(f"partition method {method!r} is unknown: {nearest(method, METHODS)}")
    if objective not in OBJECTIVES:
        raise GraphError(f"partition objective {objective!r} is unknown: {nearest(objective, OBJECTIVES)}")
    if parts < 1:
        raise GraphError(f"{graph.name}: {parts} parts; at least 1 is needed")
    if graph.nodes < parts:
        raise GraphError(f"{graph.name}: {graph.nodes} nodes cannot make {parts} parts; each needs a node")
    label = f"metis-{objective}" if method == "metis" else method
    owner = _owners(graph, parts, method, objective, seed)
    return Partitioning(frozen(owner), parts, label, seed, graph.name, graph.content_hash())


def _owners(graph: Graph, parts: int, method: str, objective: str, seed: int) -> Int32Array:
    if parts == 1:
        return np.zeros(graph.nodes, dtype=np.int32)
    if method == "metis":
        return _without_empty(metis_owners(graph, parts, objective, seed)[0], parts)
    blocks = (np.arange(graph.nodes, dtype=np.int64) * parts // graph.nodes).astype(np.int32)
    return stream(seed, "partition", "random").permutation(blocks) if method == "random" else blocks


def _without_empty(owner: Int32Array, parts: int) -> Int32Array:
    """`owner` where each empty part, in rank order, got the last node of the largest part (lowest rank on ties)."""
    counts = np.bincount(owner, minlength=parts)
    for empty in np.flatnonzero(counts == 0):
        donor = int(counts.argmax())
        owner[np.flatnonzero(owner == donor)[-1]] = empty
        counts[donor] -= 1
        counts[empty] += 1
    return owner
