"""The graph: compressed rows, built clean from arrays, files or NetworkX objects."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gcnsim.graph.csr import Cleaning, Graph, build_csr, from_csr, induced
from gcnsim.graph.describe import graph_notes, graph_warnings
from gcnsim.graph.formats.columns import two_columns
from gcnsim.graph.formats.edges import IDS
from gcnsim.lazy import lazily

if TYPE_CHECKING:
    from gcnsim.graph.formats.arrays import read_arrays, read_npy
    from gcnsim.graph.load import from_dgl, from_networkx, from_object, from_pyg, from_scipy, load_graph

_LOADS = ("from_dgl", "from_networkx", "from_object", "from_pyg", "from_scipy", "load_graph")

__getattr__ = lazily(
    __name__,
    dict.fromkeys(_LOADS, "gcnsim.graph.load")
    | dict.fromkeys(("read_arrays", "read_npy"), "gcnsim.graph.formats.arrays"),
)

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
