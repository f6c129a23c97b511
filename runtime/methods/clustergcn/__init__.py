"""ClusterGCN (`clustergcn`): the sub-graph of a few clusters is the mini-batch of all layers.

Source: ClusterGCN, stochastic multiple partitions. METIS cuts the graph into small clusters, as many as make 20 of them
the share `subgraph` of all nodes; each worker draws 20 for each of its batches and keeps all entries between them.
Weights go by the degrees within the sub-graph, as the paper normalises the adjacency of a batch anew.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from gcnsim.knobs import CLUSTERED, knob
from runtime.methods.batches.method import MiniBatch

if TYPE_CHECKING:
    from runtime.methods.batches.worker import BatchWorker
    from runtime.methods.worker import Context


@dataclass(frozen=True)
class ClusterGcn(MiniBatch):
    """See the module."""

    name: ClassVar[str] = "clustergcn"
    everywhere: ClassVar[bool] = True
    subgraph: float = knob(CLUSTERED)

    def worker(self, context: Context) -> BatchWorker:
        """Sub-graphs of clusters."""
        from runtime.methods.batches.worker import cluster_worker

        return cluster_worker(context, self, self.subgraph)
