"""The methods that can be trained, by the names that a user types; one line each."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from gcnsim.core.errors import ScenarioError, nearest
from gcnsim.core.spellings import known_name
from runtime.methods.bns_gcn import BnsGcn
from runtime.methods.cagnet import Cagnet1d, Cagnet15d
from runtime.methods.clustergcn import ClusterGcn
from runtime.methods.dgl import Dgl
from runtime.methods.distdgl import DistDgl
from runtime.methods.full_graph import FullGraph
from runtime.methods.graphsage import GraphSage
from runtime.methods.graphsaint import GraphSaint
from runtime.methods.method import Method
from runtime.methods.pagraph import PaGraph
from runtime.methods.pipegcn import PipeGcn, PipeGcnF, PipeGcnG, PipeGcnGF
from runtime.methods.psc_gcn import PscGcn
from runtime.methods.sancus import Sancus

_ALL: Final[tuple[type[Method], ...]] = (
    FullGraph,
    PipeGcn,
    PipeGcnG,
    PipeGcnF,
    PipeGcnGF,
    PscGcn,
    BnsGcn,
    Cagnet1d,
    Cagnet15d,
    Sancus,
    GraphSage,
    ClusterGcn,
    GraphSaint,
    Dgl,
    PaGraph,
    DistDgl,
)

METHODS: Final[Mapping[str, type[Method]]] = MappingProxyType({method.name: method for method in _ALL})


def method_type(name: str) -> type[Method]:
    """The method called `name`. Raises ScenarioError for an unknown name."""
    found = known_name(name, METHODS)
    if found is None:
        raise ScenarioError(f"--method: unknown method {name!r}; {nearest(name, METHODS)}")
    return METHODS[found]


def method_of(name: str, knobs: Mapping[str, Any]) -> Method:
    """The method called `name` with knobs from `Method.settled`. Raises ScenarioError."""
    return method_type(name)(**knobs)
