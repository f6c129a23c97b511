"""How long one worker's kernels and copies take, by the laws and figures that the simulator has: the one place of the
runtime that knows them. Waits may also stand for measured times (`runtime.accelerator.measured_lengths`).

What follows from the lengths (who waits for whom, what is beneath what, how links are shared) is not in here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from gcnsim.core.ids import FloatArray, IntArray, Layer
from gcnsim.cost import (
    STEP_CALLS,
    LayerCost,
    boundary_seconds,
    draw_core_seconds,
    draw_nodes_core_seconds,
    graph_bytes,
    id_bytes,
    layer_cost,
    loss_seconds,
    pack_seconds,
    rows_seconds,
    spmm_seconds,
    step_seconds,
    unpack_seconds,
    with_host_calls,
)
from gcnsim.graph.parts import Part
from gcnsim.hardware import DeviceProfile, HostProfile
from gcnsim.workload import LayerShape
from runtime.exchange import SampledGraph

PAYLOAD = "fp32"


@dataclass(frozen=True)
class GraphCounts:
    """What one worker's graphs count, int64[T] each.

    inner, cross: kept entries; needed: boundary rows; hits: those that the cache holds; requested, missed: rows that
    others need of it, and those of them that their caches lack.
    """

    inner: IntArray
    cross: IntArray
    needed: IntArray
    hits: IntArray
    requested: IntArray
    missed: IntArray

    @classmethod
    def of(cls, graphs: Sequence[SampledGraph]) -> GraphCounts:
        """The counts of these graphs, whose requests are known."""
        rows = [
            (
                *graph.edges,
                graph.rows,
                graph.hits,
                graph.incoming_requests().rows,
                sum(graph.incoming_requests().misses),
            )
            if graph.requests is not None
            else (*graph.edges, graph.rows, graph.hits, 0, 0)
            for graph in graphs
        ]
        return cls(*np.array(rows, np.int64).reshape(-1, 6).T)


@dataclass(frozen=True)
class Layered:
    """The kernels of one layer, seconds by graph, float64[T] each.

    inner_sum, cross_sum (back): the sum over neighbours in two, where inner columns are summed beneath a transfer.
    pack, unpack: of rows (forward) and of gradients (back).
    """

    cost: LayerCost
    inner_sum: FloatArray
    cross_sum: FloatArray
    inner_sum_back: FloatArray
    cross_sum_back: FloatArray
    pack: FloatArray
    unpack: FloatArray
    pack_back: FloatArray
    unpack_back: FloatArray


class OpSeconds:
    """One worker's lengths, in seconds of what they stand for.

    waits_in_layers: whether it waits for rows of the same iteration. factor: its kernels and its host's
    calls take so many times as long.
    """

    def __init__(
        self,
        device: DeviceProfile,
        host: HostProfile,
        shapes: Sequence[LayerShape],
        part: Part,
        counts: GraphCounts,
        *,
        norm: bool,
        waits_in_layers: bool,
        factor: float = 1.0,
    ) -> None:
        self._device, self._host, self._part, self._drawn = device, host, part, counts
        self._factor, self._norm = factor, norm
        layers = [self._layer(layer, shape, last=layer + 1 == len(shapes)) for layer, shape in enumerate(shapes)]
        self.lookup = self._slowed(rows_seconds(device, counts.hits, shapes[0].d_in))
        loss = self._slowed(loss_seconds(device, part.inner_nodes, shapes[-1].d_out))
        kernels, call_s = [layer.cost for layer in layers], factor * host.call_s.value
        costs, self.loss = with_host_calls(kernels, loss, call_s, shapes, norm=norm, waits_in_layers=waits_in_layers)
        self.layers = [replace(layer, cost=cost) for layer, cost in zip(layers, costs, strict=True)]
        self.step = self._slowed(step_seconds(device, tuple(shapes))) + STEP_CALLS * call_s

    def _layer(self, layer: Layer, shape: LayerShape, *, last: bool) -> Layered:
        device, counts, inner, width = self._device, self._drawn, self._part.inner_nodes, shape.d_in
        entries = counts.inner + counts.cross + inner
        cost = layer_cost(
            device,
            shape,
            first=layer == 0,
            inner=inner,
            entries=entries,
            boundary_rows=counts.needed,
            norm=self._norm,
            last=last,
        )
        cross = [
            np.where(counts.cross > 0, spmm_seconds(device, counts.cross, written, width, read), 0.0)
            for written, read in ((inner, counts.needed), (counts.needed, inner))
        ]
        leaving, coming = counts.requested, counts.needed
        if layer == 0:
            leaving, coming = counts.missed, counts.needed - counts.hits
        slowed = self._slowed
        inner_sum = slowed(spmm_seconds(device, counts.inner + inner, inner, width, inner))
        return Layered(
            cost=cost.slowed(np.asarray(self._factor)),
            inner_sum=inner_sum,
            cross_sum=slowed(cross[0]),
            inner_sum_back=inner_sum,
            cross_sum_back=slowed(cross[1]),
            pack=slowed(pack_seconds(device, leaving, width, PAYLOAD)),
            unpack=slowed(unpack_seconds(device, coming, width, PAYLOAD)),
            pack_back=slowed(pack_seconds(device, counts.needed, width, PAYLOAD)),
            unpack_back=slowed(unpack_seconds(device, counts.requested, width, PAYLOAD)),
        )

    def _slowed(self, seconds: FloatArray) -> FloatArray:
        return np.asarray(self._factor * seconds, dtype=np.float64)

    def draw_edges(self, refresh: int, *, weighted: bool) -> FloatArray:
        """Of the thread that draws a graph of edges (PSC-GCN), by iteration."""
        return np.asarray(draw_core_seconds(self._host, self._part.entries, refresh, weighted=weighted))

    def graph_bytes(self) -> FloatArray:
        """Of each drawn graph on its way to the device."""
        return graph_bytes(self._drawn.inner + self._drawn.cross, self._part.inner_nodes)

    def draw_nodes(self, rate: float) -> FloatArray:
        """Of the thread that draws boundary nodes (BNS-GCN), by iteration."""
        return np.asarray(draw_nodes_core_seconds(self._host, float(self._drawn.requested.mean()) / rate))

    def node_bytes(self) -> FloatArray:
        """Of the ids of drawn nodes on their way to the device."""
        return id_bytes(self._drawn.needed) + id_bytes(self._drawn.requested)

    def pick(self) -> FloatArray:
        """Of the kernel that picks the entries of drawn nodes (BNS-GCN), which no slow device is slower at."""
        crossing = self._part.entries - self._drawn.inner
        return boundary_seconds(self._device, crossing, self._drawn.cross, self._part.inner_nodes)
