"""Assigning owners to nodes: METIS, balanced random, or contiguous blocks."""

from __future__ import annotations

import numpy as np

from gcnsim.errors import GraphError, nearest, plural
from gcnsim.graph import Graph
from gcnsim.ids import BoolArray, Int32Array, frozen
from gcnsim.partition.metis import ALGORITHMS, BALANCES, KWAY, NODES, metis_owners
from gcnsim.partition.parts import Partitioning
from gcnsim.streams import stream

METHODS = ("metis", "random", "block")
OBJECTIVES = ("vol", "cut")


def partition_graph(
    graph: Graph,
    parts: int,
    method: str = "metis",
    objective: str = "vol",
    seed: int = 0,
    *,
    algorithm: str = KWAY,
    imbalance: float | None = None,
    balance: str = NODES,
    training: BoolArray | None = None,
) -> Partitioning:
    """Every node's owner, each of the `parts` parts non-empty.

    metis: minimises the communication volume (`vol`) or the entries cut (`cut`), parts of about equal node count.
    random: a permutation cut into parts whose sizes differ by at most 1. block: contiguous ids, likewise.
    `objective`, `algorithm`, `imbalance`, `balance` and `training` matter to METIS alone (`metis_owners`); `seed` does
    not matter to blocks.
    Raises GraphError for fewer than 1 part, fewer nodes than parts, an unknown method, objective, algorithm or balance,
    for volume by recursive bisection, and for a balance of training nodes where nobody is said to train.
    """
    if method not in METHODS:
        raise GraphError(f"partition method {method!r} is unknown: {nearest(method, METHODS)}")
    if objective not in OBJECTIVES:
        raise GraphError(f"partition objective {objective!r} is unknown: {nearest(objective, OBJECTIVES)}")
    for noun, word, known in (("algorithm", algorithm, ALGORITHMS), ("balance", balance, BALANCES)):
        if word not in known:
            raise GraphError(f"partition {noun} {word!r} is unknown: {nearest(word, known)}")
    if parts < 1:
        raise GraphError(f"{graph.name}: {plural(parts, 'part')}; at least 1 is needed")
    if graph.nodes < parts:
        raise GraphError(f"{graph.name}: {graph.nodes} nodes cannot make {plural(parts, 'part')}; each needs a node")
    if method != "metis":
        return _labelled(graph, _dealt(graph, parts, method, seed), parts, method, seed)
    owner = np.zeros(graph.nodes, dtype=np.int32)
    if parts > 1:
        owner, _ = metis_owners(
            graph,
            parts,
            objective,
            seed,
            algorithm=algorithm,
            imbalance=imbalance,
            balance=balance,
            training=training,
        )
    owner = _without_empty(owner, parts)
    return _labelled(graph, owner, parts, metis_label(objective, algorithm, imbalance, balance), seed)


def metis_label(objective: str, algorithm: str, imbalance: float | None, balance: str) -> str:
    """How METIS cut, in a word: the objective, and what was asked for besides."""
    words = ["metis", objective]
    words += [algorithm] * (algorithm != KWAY)
    words += [] if imbalance is None else [f"{100 * imbalance:g}%"]
    words += [f"by-{balance}"] * (balance != NODES)
    return "-".join(words)


def _labelled(graph: Graph, owner: Int32Array, parts: int, label: str, seed: int) -> Partitioning:
    return Partitioning(frozen(owner), parts, label, seed, graph.name, graph.content_hash())


def _dealt(graph: Graph, parts: int, method: str, seed: int) -> Int32Array:
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
