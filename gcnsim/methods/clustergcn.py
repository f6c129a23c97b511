"""ClusterGCN (`clustergcn`): the sub-graph of a few clusters is the mini-batch of all layers.

Source: ClusterGCN, stochastic multiple partitions. METIS cuts the graph into small clusters, 20 of which make a batch
of the share `subgraph` of all nodes (1.3 %, its setting for Reddit: 1500 clusters); entries between them are kept.
Readings: 12 threads of the host put batches together ahead (PyG, examples/cluster_gcn_reddit.py); the released code's
one process puts each together before it trains it.
Assumptions: those of `graphsaint`; without a graph, half of a node's entries stay in its cluster (a quarter to 80 %).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from gcnsim.methods.families.mini_batch import SubgraphBatches
from gcnsim.methods.method import IN_TURN, Placement
from gcnsim.workload.knobs import CLUSTERED, knob


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterGcn(SubgraphBatches):
    """Sub-graphs of a few clusters."""

    name: ClassVar[str] = "clustergcn"
    about: ClassVar[str] = "sub-graphs of a few small clusters as mini-batches"
    nodes_of: ClassVar[Literal["walks", "clusters"]] = "clusters"
    usual: ClassVar[Placement] = Placement(threads=12)
    scripts: ClassVar[Placement] = IN_TURN

    subgraph: float = knob(CLUSTERED)
