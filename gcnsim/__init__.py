"""gcnsim: predict one training iteration of a distributed GCN, its bottleneck, and the gain from each knob.

>>> import gcnsim
>>> answer = gcnsim.what_if(gpus=2, method="pipegcn")
>>> answer.rows[0].method
'pipegcn'

Public names are imported on first use, so `import gcnsim` is fast.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gcnsim.api import Answer as Answer
    from gcnsim.api import Error as Error
    from gcnsim.api import Graph as Graph
    from gcnsim.api import PriceBook as PriceBook
    from gcnsim.api import Recommended as Recommended
    from gcnsim.api import Simulation as Simulation
    from gcnsim.api import Sweep as Sweep
    from gcnsim.api import from_dgl as from_dgl
    from gcnsim.api import from_networkx as from_networkx
    from gcnsim.api import from_pyg as from_pyg
    from gcnsim.api import from_scipy as from_scipy
    from gcnsim.api import load_graph as load_graph
    from gcnsim.api import open_sweep as open_sweep
    from gcnsim.api import recommend as recommend
    from gcnsim.api import simulate as simulate
    from gcnsim.api import sweep as sweep
    from gcnsim.api import what_if as what_if

__version__ = "0.1.0"

__all__ = [
    "Answer",
    "Error",
    "Graph",
    "PriceBook",
    "Recommended",
    "Simulation",
    "Sweep",
    "__version__",
    "from_dgl",
    "from_networkx",
    "from_pyg",
    "from_scipy",
    "load_graph",
    "open_sweep",
    "recommend",
    "simulate",
    "sweep",
    "what_if",
]


def __getattr__(name: str) -> Any:
    import importlib

    if name not in __all__:
        raise AttributeError(f"module 'gcnsim' has no attribute {name!r}")
    return getattr(importlib.import_module("gcnsim.api"), name)


def __dir__() -> list[str]:
    return list(__all__)
