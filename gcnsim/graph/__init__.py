"""The graph: compressed rows, read, drawn and cut into parts."""

from typing import TYPE_CHECKING

from gcnsim.core.lazy import lazily
from gcnsim.graph.csr import Graph, build_csr, induced
from gcnsim.graph.describe import graph_notes, graph_warnings
from gcnsim.graph.formats.columns import two_columns
from gcnsim.graph.formats.edges import IDS

if TYPE_CHECKING:
    from gcnsim.graph.load import from_dgl, from_networkx, from_pyg, from_scipy, load_graph

__getattr__ = lazily(
    __name__,
    dict.fromkeys(
        (
            "from_dgl",
            "from_networkx",
            "from_pyg",
            "from_scipy",
            "load_graph",
        ),
        "gcnsim.graph.load",
    ),
)

__all__ = [
    "IDS",
    "Graph",
    "build_csr",
    "from_dgl",
    "from_networkx",
    "from_pyg",
    "from_scipy",
    "graph_notes",
    "graph_warnings",
    "induced",
    "load_graph",
    "two_columns",
]
