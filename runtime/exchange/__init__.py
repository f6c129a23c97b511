"""Move boundary rows and their gradients between workers, and compute the sums that need them."""

from runtime.exchange.batches import BatchBoundaries, LoadedBatch
from runtime.exchange.blocks import BlockNeighbours, BlockPlace, BlockRing, BlockSums, SendAll
from runtime.exchange.channels import Channel, Channels, PeerError
from runtime.exchange.exchange import Exchange
from runtime.exchange.graphs import GraphBuilder
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
