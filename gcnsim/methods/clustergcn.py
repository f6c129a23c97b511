"""ClusterGCN (`clustergcn`): the sub-graph of a few clusters is the mini-batch of all layers.

Source: ClusterGCN, stochastic multiple partitions. METIS cuts the graph into small clusters, 20 of which make a batch
of the share `subgraph` of all nodes (1.3 %, its setting for Reddit: 1500 clusters); entries between them are kept.
Assumptions: those of `graphsaint`; without a graph, half of a node's entries stay in its cluster (a quarter to 80 %).
"""

from __future__ import annotations

from gcnsim.methods.facts import Facts
from gcnsim.methods.mini_batches import Loading, mini_batches
from gcnsim.schedule import Schedule


def build(facts: Facts) -> Schedule:
    """The schedule: load, then train."""
    return mini_batches("clustergcn", facts, Loading())
