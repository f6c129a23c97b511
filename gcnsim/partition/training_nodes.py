"""PaGraph's partition: training nodes are dealt out one by one, each to the part that holds most of its neighbourhood.

Every part keeps, with copies, all nodes within L hops of its training nodes, so that no batch asks another part.
Source: PaGraph, section on partitioning, after linear deterministic greedy (LDG). Readings, as in its released code:
overlap and size of a part are one larger than counted, so that empty parts have a score; ties go to the part with fewer
training nodes. Takes time in proportion to all neighbourhoods together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gcnsim.graph import Graph
from gcnsim.ids import BoolArray, IntArray, frozen

if TYPE_CHECKING:
    from scipy.sparse import csr_array

BLOCK = 128
"""Training nodes whose neighbourhoods are found together."""


@dataclass(frozen=True, slots=True)
class TrainingParts:
    """Per part: its training nodes, int64, in the order they came; whether it holds a node, bool[N]."""

    training: tuple[IntArray, ...]
    holds: tuple[BoolArray, ...]


def training_parts(graph: Graph, train: IntArray, parts: int, hops: int) -> TrainingParts:
    """Deal the training nodes `train` (distinct, in this order) to `parts` parts; hops: layers of the model.

    Score of a part with training nodes TV and nodes PV for a node with neighbourhood IN (PaGraph, eq. 1):
    |TV and IN| (mean |TV| - |TV|) / |PV|.
    """
    part_of = np.full(graph.nodes, -1, np.int64)
    holds = np.zeros((parts, graph.nodes), np.bool_)
    sizes, trained = np.zeros(parts, np.int64), np.zeros(parts, np.int64)
    mean = train.size / parts
    for node, near in _neighbourhoods(graph, train, hops):
        where = part_of[near]
        overlap = np.bincount(where[where >= 0], minlength=parts) + 1
        score = overlap * (mean - trained) / (sizes + 1)
        best = int(np.lexsort((trained, -score))[0])
        part_of[node] = best
        trained[best] += 1
        sizes[best] += near.size - int(np.count_nonzero(holds[best, near]))
        holds[best, near] = True
    return TrainingParts(
        tuple(frozen(train[part_of[train] == part]) for part in range(parts)), tuple(frozen(each) for each in holds)
    )


def _neighbourhoods(graph: Graph, train: IntArray, hops: int) -> Any:
    """Each training node with the nodes within `hops` hops of it, itself included."""
    from scipy.sparse import csr_array, identity

    shape = (graph.nodes, graph.nodes)
    ones = np.ones(graph.entries, np.float32)
    adjacency: csr_array = csr_array((ones, graph.indices, graph.indptr), shape=shape)
    step = csr_array(adjacency + identity(graph.nodes, np.float32, format="csr"))
    for first in range(0, train.size, BLOCK):
        nodes = train[first : first + BLOCK]
        reach: csr_array = step[nodes]
        for _ in range(hops - 1):
            reach = csr_array(reach @ step)
            reach.data[:] = 1.0
        for place, node in enumerate(nodes.tolist()):
            yield node, reach.indices[reach.indptr[place] : reach.indptr[place + 1]]
