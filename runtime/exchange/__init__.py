"""Move boundary rows and their gradients between workers, and compute the sums that need them."""

from runtime.exchange.batches import BatchBoundaries, LoadedBatch
from runtime.exchange.blocks import BlockNeighbours, BlockPlace, BlockRing, BlockSums, SendAll
from runtime.exchange.channels import Channel, Channels, PeerError
from runtime.exchange.exchange import Exchange
from runtime.exchange.graphs import GraphBuilder, Weights
from runtime.exchange.neighbours import Boundary, BoundaryView, DropoutConfig, IterationContext, StepBoundaries
from runtime.exchange.sampled_graph import (
    CachedRows,
    Requests,
    SampledGraph,
    exchange_norms,
    fetch_rows,
    request_rows,
    static_requests,
)
from runtime.exchange.stand_in import Mail, StandIns
from runtime.exchange.stopwatch import Stopwatch

__all__ = [
    "BatchBoundaries",
    "BlockNeighbours",
    "BlockPlace",
    "BlockRing",
    "BlockSums",
    "Boundary",
    "BoundaryView",
    "CachedRows",
    "Channel",
    "Channels",
    "DropoutConfig",
    "Exchange",
    "GraphBuilder",
    "IterationContext",
    "LoadedBatch",
    "Mail",
    "PeerError",
    "Requests",
    "SampledGraph",
    "SendAll",
    "StandIns",
    "StepBoundaries",
    "Stopwatch",
    "Weights",
    "exchange_norms",
    "fetch_rows",
    "request_rows",
    "static_requests",
]
