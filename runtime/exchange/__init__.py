"""Moving boundary rows and their gradients between workers, and the sums that need them."""

from runtime.exchange.batches import BatchBoundaries, LoadedBatch
from runtime.exchange.blocks import BlockNeighbours, BlockRing, BlockSums, Grid, SendAll
from runtime.exchange.channels import Channel, Channels, PeerError
from runtime.exchange.exchange import Exchange
from runtime.exchange.graphs import GraphBuilder, Weights
from runtime.exchange.neighbours import Boundary, BoundaryView, Dropping, Step, StepBoundaries
from runtime.exchange.sampled_graph import (
    CachedRows,
    Requests,
    SampledGraph,
    ask,
    fetch_rows,
    static_requests,
    swap_norms,
)
from runtime.exchange.stand_in import Mail, StandIns
from runtime.exchange.stopwatch import Stopwatch

__all__ = [
    "BatchBoundaries",
    "BlockNeighbours",
    "BlockRing",
    "BlockSums",
    "Boundary",
    "BoundaryView",
    "CachedRows",
    "Channel",
    "Channels",
    "Dropping",
    "Exchange",
    "GraphBuilder",
    "Grid",
    "LoadedBatch",
    "Mail",
    "PeerError",
    "Requests",
    "SampledGraph",
    "SendAll",
    "StandIns",
    "Step",
    "StepBoundaries",
    "Stopwatch",
    "Weights",
    "ask",
    "fetch_rows",
    "static_requests",
    "swap_norms",
]
