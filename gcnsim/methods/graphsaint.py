"""GraphSAINT (`graphsaint`): the sub-graph of nodes on random walks is the mini-batch of all layers.

Source: GraphSAINT, its random-walk sampler. A batch has the share `subgraph` of all nodes (5.3 %, its setting for
Reddit), on walks of two steps from random roots, and all entries between them. Readings: 4 threads of the host draw
ahead (PyG, examples/graph_saint.py); in the released code 20 do (`--num_cpu_core`), and all rows lie on the GPU.
Assumptions: every server's memory holds the whole graph, as in the released code for one server; the next batch is
drawn meanwhile, then loaded and trained in turn; an epoch reads as many nodes as the graph has.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from gcnsim.methods.families.mini_batch import SubgraphBatches
from gcnsim.methods.method import ON_GPU, Placement
from gcnsim.workload.knobs import WALKED, knob


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphSaint(SubgraphBatches):
    """Sub-graphs of random walks."""

    name: ClassVar[str] = "graphsaint"
    about: ClassVar[str] = "sub-graphs of random walks as mini-batches"
    nodes_of: ClassVar[Literal["walks", "clusters"]] = "walks"
    usual: ClassVar[Placement] = Placement(threads=4)
    scripts: ClassVar[Placement] = Placement(threads=20, features=ON_GPU)

    subgraph: float = knob(WALKED)
