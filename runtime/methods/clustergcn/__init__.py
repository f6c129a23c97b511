"""ClusterGCN (`clustergcn`): the subgraph of a few clusters is the mini-batch of all layers.

Source: ClusterGCN, stochastic multiple partitions. METIS splits the graph into small clusters, such that 20 of them
make the share `subgraph` of all nodes. Each worker draws 20 for each of its batches and keeps all entries between them.
Weights use the degrees within the subgraph, as the paper normalises the adjacency matrix of a batch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from gcnsim.workload.knobs import CLUSTERED, knob
from runtime.methods.method import MiniBatch

if TYPE_CHECKING:
    from runtime.methods.batches.worker import BatchWorker
    from runtime.methods.worker import Context


@dataclass(frozen=True)
class ClusterGcn(MiniBatch):
    """ClusterGCN; see the module."""

    name: ClassVar[str] = "clustergcn"
    everywhere: ClassVar[bool] = True
    subgraph: float = knob(CLUSTERED)

    def worker(self, context: Context) -> BatchWorker:
        """The worker with subgraphs of clusters."""
        from runtime.methods.batches.worker import cluster_worker

        return cluster_worker(context, self, self.subgraph)
