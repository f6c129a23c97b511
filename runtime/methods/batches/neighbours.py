"""The worker of systems that draw neighbours around their training nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from gcnsim.caching import CacheSize
from gcnsim.ids import IntArray
from gcnsim.partition import training_parts
from gcnsim.sampling import NeighbourDraws, own_pools, shuffled_pools, training_order
from runtime.exchange.batches import BatchBuilder, DrawnScaling
from runtime.methods.batches.stores import CachedStore, PartStore, Store
from runtime.methods.batches.worker import BatchWorker, Source
from runtime.methods.worker import Context

if TYPE_CHECKING:
    from runtime.methods.batches.method import NeighbourBatches


def neighbour_worker(context: Context, method: NeighbourBatches) -> BatchWorker:
    """Batches of training nodes, drawn by the rules of `gcnsim.sampling`."""
    seed = context.options.seed
    training, owner = np.flatnonzero(context.dataset.train), context.partitioning.owner
    if method.trains == "own":
        pools = own_pools(training, owner, context.world, seed)
    else:
        pools = shuffled_pools(training, context.world, seed)
    store = Store(context) if method.everywhere else PartStore(context)
    return BatchWorker(context, method, _source(context, method, pools, store))


def dealt_worker(context: Context, method: NeighbourBatches, cache: CacheSize) -> BatchWorker:
    """Batches of training nodes that were dealt to parts which hold their neighbourhoods (PaGraph)."""
    graph, layers = context.dataset.graph, len(context.widths) - 1
    order = training_order(np.flatnonzero(context.dataset.train), context.options.seed)
    parts = training_parts(graph, order, context.world, layers)
    holds = parts.holds[context.channels.rank]
    source = _source(context, method, parts.training, CachedStore(context, holds, cache, sums=method.ready > 0))
    return BatchWorker(context, method, replace(source, stored=holds))


def _source(context: Context, method: NeighbourBatches, pools: Sequence[IntArray], store: Store) -> Source:
    graph = context.dataset.graph
    fanout, sizes = method.amounts(len(context.widths) - 1)
    ready = method.ready
    draws = NeighbourDraws(graph, pools, method.batch, fanout[ready:], sizes[ready:], context.options.seed, ready)
    builder = BatchBuilder(graph, context.weights, DrawnScaling(graph, fanout or sizes), ready)
    return Source(draws, builder, store)
