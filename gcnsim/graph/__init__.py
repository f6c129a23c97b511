"""The graph: compressed rows, built clean from arrays, files or NetworkX objects."""

from __future__ import annotations

from gcnsim.graph.csr import Cleaning, Graph, build_csr, from_csr, induced
from gcnsim.graph.describe import graph_notes, graph_warnings
from gcnsim.graph.formats.arrays import read_arrays, read_npy
from gcnsim.graph.formats.columns import two_columns
from gcnsim.graph.formats.edges import IDS
from gcnsim.graph.load import from_dgl, from_networkx, from_object, from_pyg, from_scipy, load_graph

__all__ = [
    "IDS",
    "Cleaning",
    "Graph",
    "build_csr",
    "from_csr",
    "from_dgl",
    "from_networkx",
    "from_object",
    "from_pyg",
    "from_scipy",
    "graph_notes",
    "graph_warnings",
    "induced",
    "load_graph",
    "read_arrays",
    "read_npy",
    "two_columns",
]
