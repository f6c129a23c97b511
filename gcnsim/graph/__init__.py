"""The graph: compressed rows, read, drawn and cut into parts."""

from typing import TYPE_CHECKING, Any

from gcnsim.graph.csr import Graph, build_csr, induced
from gcnsim.graph.describe import graph_notes, graph_warnings
from gcnsim.graph.formats.columns import two_columns
from gcnsim.graph.formats.edges import IDS

if TYPE_CHECKING:
    from gcnsim.graph.load import from_dgl, from_networkx, from_pyg, from_scipy, load_graph

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


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    # Readers of graphs are imported when one is asked for: most commands read none.
    from gcnsim.graph import load

    return getattr(load, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
