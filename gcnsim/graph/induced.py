"""A graph's sub-graph on some of its nodes: theirs and the edges between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import compress

import numpy as np

from gcnsim.graph.csr import Graph
from gcnsim.ids import BoolArray, IntArray, frozen


def induced(graph: Graph, kept: BoolArray, name: str) -> Graph:
    """The sub-graph called `name` of the nodes with kept[v], bool[N], numbered in their order.

    >>> path = Graph(np.array([0, 1, 3, 4]), np.array([1, 0, 2, 1], np.int32), "path")
    >>> induced(path, np.array([True, True, False]), "edge").indices.tolist()
    [1, 0]
    """
    inside = np.repeat(kept, graph.degrees) & kept[graph.indices]
    before = np.concatenate([[0], np.cumsum(inside)])[graph.indptr]
    place = np.cumsum(kept, dtype=np.int64) - 1
    indptr = np.concatenate([[0], np.cumsum(np.diff(before)[kept])]).astype(np.int64)
    indices = place[graph.indices[inside]].astype(np.int32)
    return replace(
        graph,
        indptr=frozen(indptr),
        indices=frozen(indices),
        name=name,
        cleaning=replace(graph.cleaning, second_kind_from=0),
        unused_ids=0,
        original_ids=_kept(graph.original_ids, kept),
    )


def _kept(ids: Sequence[str] | IntArray | None, kept: BoolArray) -> Sequence[str] | IntArray | None:
    if isinstance(ids, np.ndarray):
        return frozen(ids[kept])
    return ids and tuple(compress(ids, kept))
