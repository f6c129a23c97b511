"""GraphSAINT (`graphsaint`): the sub-graph of nodes on random walks is the mini-batch of all layers.

Source: GraphSAINT, its random-walk sampler. A batch has the share `subgraph` of all nodes (5.3 %, its setting for
Reddit), on walks of two steps from random roots, and all entries between them. Assumptions: every server's memory holds
the whole graph, as in the released code for one server; the next batch is drawn meanwhile, then loaded and trained in
turn; an epoch reads as many nodes as the graph has.
"""

from __future__ import annotations

from gcnsim.methods.facts import Facts
from gcnsim.methods.mini_batches import Loading, mini_batches
from gcnsim.schedule import Schedule


def build(facts: Facts) -> Schedule:
    """The schedule: load, then train."""
    return mini_batches("graphsaint", facts, Loading())
