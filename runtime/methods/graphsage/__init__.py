"""GraphSAGE's sampling over several workers (`graphsage`): batches of any training nodes, rows of other parts
requested.

Source: GraphSAGE, Algorithm 2. Training nodes are shuffled over all workers. Every node of a batch samples `fanout`
neighbours in each layer (default 10) without replacement, independently for each layer. Sampling, requests and training
take turns. If k of n neighbours are sampled, each weighs n / k as much, so that a layer's sum is unbiased; for
GraphSAGE it is the mean over the sampled neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from runtime.methods.method import NeighbourBatches

if TYPE_CHECKING:
    from runtime.methods.batches.worker import BatchWorker
    from runtime.methods.worker import Context


@dataclass(frozen=True)
class GraphSage(NeighbourBatches):
    """GraphSAGE's sampling; see the module."""

    name: ClassVar[str] = "graphsage"
    draws_ahead: ClassVar[bool] = False

    def worker(self, context: Context) -> BatchWorker:
        """The worker that samples, loads and trains batches."""
        from runtime.methods.batches.worker import neighbour_worker

        return neighbour_worker(context, self)
