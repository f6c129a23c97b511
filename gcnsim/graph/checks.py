"""What about a graph may mislead whoever reads an answer that rests on it."""

from __future__ import annotations

import numpy as np

from gcnsim.graph.csr import Graph

MANY_ISOLATED = 0.05
"""Share of nodes without an edge above which something is probably wrong with the file."""


def graph_warnings(graph: Graph) -> tuple[str, ...]:
    """A line for each thing that is probably not as the graph's owner means it: many nodes without edges.

    Ids with gaps are the usual reason, since every number below the largest id is a node.
    """
    isolated = int(np.count_nonzero(graph.degrees == 0))
    if isolated <= MANY_ISOLATED * graph.nodes:
        return ()
    said = f"{graph.name}: {isolated:,} of {graph.nodes:,} nodes are isolated (no edges)"
    if not graph.unused_ids:
        return (said,)
    return (f"{said}: the ids have gaps, {graph.unused_ids:,} numbers do not occur; --ids compact leaves them out",)
