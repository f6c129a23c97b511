"""The static cache of mini-batch loaders: rows of highest degree, filled once."""

from __future__ import annotations

import numpy as np

from gcnsim.graph import Graph
from gcnsim.ids import BoolArray, IntArray


def most_connected(graph: Graph, holds: BoolArray, rows: int) -> BoolArray:
    """The `rows` nodes of highest degree among those that a part holds, ties by id, bool[N] (PaGraph's cache).

    holds: bool[N]. A degree counts neighbours in the part.
    """
    nodes = np.flatnonzero(holds)
    mask = np.zeros(graph.nodes, np.bool_)
    if rows <= 0:
        return mask
    degree = graph.degrees[nodes] if holds.all() else _degrees_within(graph, holds)[nodes]
    mask[nodes[np.argsort(-degree, kind="stable")[:rows]]] = True
    return mask


def _degrees_within(graph: Graph, holds: BoolArray) -> IntArray:
    """Neighbours of every node among those held."""
    inside = np.concatenate([[0], np.cumsum(holds[graph.indices])])
    within: IntArray = inside[graph.indptr[1:]] - inside[graph.indptr[:-1]]
    return within
