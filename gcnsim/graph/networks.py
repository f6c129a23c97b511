"""Graphs from NetworkX objects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gcnsim.errors import GraphError
from gcnsim.graph.build import build_csr
from gcnsim.graph.csr import Graph

if TYPE_CHECKING:
    import networkx as nx


def from_networkx(graph: nx.Graph[Any], name: str = "networkx") -> Graph:
    """The structure of a NetworkX graph (directed and multigraphs too); `cleaning` names the attributes left out.

    Node k is the k-th of `sorted(graph)` when the nodes can be compared, else the k-th in order of insertion.
    Raises GraphError when there is no edge between two different nodes.
    """
    try:
        nodes = sorted(graph)
    except TypeError:
        nodes = list(graph)
    place = {node: k for k, node in enumerate(nodes)}
    ends = np.fromiter((place[node] for edge in graph.edges() for node in edge[:2]), dtype=np.int64)
    if not nodes:
        raise GraphError(f"{name}: empty graph: no nodes")
    rows, cols = ends[0::2], ends[1::2]
    if not graph.is_directed():
        # An undirected edge is both directions by its type, so its reverse is nothing that cleaning added.
        other = rows != cols
        rows, cols = np.concatenate([rows, cols[other]]), np.concatenate([cols, rows[other]])
    held = {str(key): None for _, _, attributes in graph.edges(data=True) for key in attributes}
    held |= {str(key): None for _, attributes in graph.nodes(data=True) for key in attributes}
    return build_csr(rows, cols, len(nodes), name, ignored=tuple(held))
