"""GraphSAGE's sampling over several workers (`graphsage`): batches of any training nodes, rows of other parts pulled.

Source: GraphSAGE, Algorithm 2. Training nodes are shuffled over all workers; every node of a batch draws `fanout`
neighbours in each layer (default 10) without replacement, anew for each layer. Drawing, pulling and
training take turns. Of n neighbours those k drawn weigh n / k as much each, so that a layer's sum is unbiased; of
GraphSAGE it is the mean over the neighbours drawn.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from runtime.methods.batches.method import NeighbourBatches


@dataclass(frozen=True)
class GraphSage(NeighbourBatches):
    """See the module."""

    name: ClassVar[str] = "graphsage"
    draws_ahead: ClassVar[bool] = False
    usual_fanout: ClassVar[int] = 10
