"""How long one worker's kernels and copies take: by the laws and figures of the simulator, or as measured.

It is the one place of the runtime that knows the laws. What follows from the lengths (who waits for whom, what is
beneath what, how links are shared) is not in here.

Measured lengths replace those of the laws, iteration by iteration. The rules are the simulator's
(`gcnsim.records.compute_facts`): one measured operation that is two kernels here is shared as the laws would, what was
not measured takes no time, and what has no kernel here is added to the map of its layer or to the step, as is the time
in which the GPU waits for the host. Links say what copies and messages take.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from gcnsim.core.ids import FloatArray, IntArray, Layer
from gcnsim.core.streams import stream
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
from gcnsim.records.compute_facts import (
    LOOKUP,
    STEP,
    MeasuredPart,
    OpKey,
    in_schedule_words,
    placed,
    replayed,
    unmeasured,
)
from gcnsim.timeline import Direction, OpKind
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


FORWARD, BACKWARD = Direction.FORWARD, Direction.BACKWARD
LOSS: Final = OpKey(OpKind.LOSS, -1, Direction.NONE)
SAMPLE: Final = OpKey(OpKind.SAMPLE, -1, Direction.NONE)
INDEX: Final = OpKey(OpKind.INDEX, -1, Direction.NONE)


class MeasuredSeconds(OpSeconds):
    """Lengths of a part that was measured, on a device as slow as that of the laws."""

    def __init__(
        self,
        part: MeasuredPart,
        *arguments: Any,
        exchanges: bool,
        samples: bool,
        picks: bool,
        period: int | None,
        seed: int,
        **named: Any,
    ) -> None:
        """exchanges: whether boundary rows travel. samples: whether a thread draws graphs. picks: whether the device
        then picks their entries. period: iterations from one refresh of the sampling probabilities to the next, if
        there is any. seed: of the order in which they are replayed. Other arguments as of `OpSeconds`."""
        super().__init__(*arguments, **named)
        order = replayed(part.refreshing, period or 1, stream(seed, "measured compute", self._part.rank))
        own = {key: values[order] for key, values in in_schedule_words(part, on_host=not picks).items()}
        looked_up = own.pop(LOOKUP, None)
        self._measured = placed(own, set(self._keys(exchanges=exchanges, samples=samples, picks=picks)))
        self.layers = [self._of_layer(layer, law) for layer, law in enumerate(self.layers)]
        self._measured[STEP] = self._measured[STEP] + part.outside_s
        self.loss, self.step = (self._slowed(self._seconds(key, np.zeros(1))) for key in (LOSS, STEP))
        rows = part.drawn.get("hits")
        if looked_up is not None and rows:
            self.lookup = self._slowed(looked_up * (float(self._drawn.hits.mean()) / rows))

    def draw_edges(self, refresh: int, *, weighted: bool) -> FloatArray:
        """See `OpSeconds`."""
        return self._seconds(SAMPLE, np.zeros(1))

    def draw_nodes(self, rate: float) -> FloatArray:
        """See `OpSeconds`."""
        return self._seconds(SAMPLE, np.zeros(1))

    def pick(self) -> FloatArray:
        """See `OpSeconds`."""
        return self._seconds(INDEX, np.zeros(1))

    def _keys(self, *, exchanges: bool, samples: bool, picks: bool) -> Iterator[OpKey]:
        """The operations that a worker here has."""
        yield from (LOSS, STEP)
        if samples:
            yield SAMPLE
        if picks:
            yield INDEX
        for layer in range(len(self.layers)):
            for direction in (FORWARD, BACKWARD):
                yield OpKey(OpKind.UPDATE, layer, direction)
                if layer or direction is FORWARD:
                    yield OpKey(OpKind.AGGREGATE, layer, direction)
                    if exchanges:
                        yield OpKey(OpKind.PACK, layer, direction)
                        yield OpKey(OpKind.SCATTER, layer, direction)

    def _seconds(self, key: OpKey, law: FloatArray) -> FloatArray:
        """Of each measured iteration; `law`: in which case it has none."""
        return self._measured[key] if key in self._measured else unmeasured(key, law)

    def _of_layer(self, layer: Layer, law: Layered) -> Layered:
        def found(kind: OpKind, direction: Direction, seconds: FloatArray) -> FloatArray:
            return self._slowed(self._seconds(OpKey(kind, layer, direction), seconds))

        summed = found(OpKind.AGGREGATE, FORWARD, law.cost.aggregate)
        returned = found(OpKind.AGGREGATE, BACKWARD, law.cost.aggregate_backward)
        share, share_back = _share(law.inner_sum, law.cross_sum), _share(law.inner_sum_back, law.cross_sum_back)
        cost = replace(
            law.cost,
            aggregate=summed,
            update=found(OpKind.UPDATE, FORWARD, law.cost.update),
            update_backward=found(OpKind.UPDATE, BACKWARD, law.cost.update_backward),
            aggregate_backward=returned,
        )
        return Layered(
            cost=cost,
            inner_sum=share * summed,
            cross_sum=(1.0 - share) * summed,
            inner_sum_back=share_back * returned,
            cross_sum_back=(1.0 - share_back) * returned,
            pack=found(OpKind.PACK, FORWARD, law.pack),
            unpack=found(OpKind.SCATTER, FORWARD, law.unpack),
            pack_back=found(OpKind.PACK, BACKWARD, law.pack_back),
            unpack_back=found(OpKind.SCATTER, BACKWARD, law.unpack_back),
        )


def _share(part: FloatArray, rest: FloatArray) -> float:
    """Of two kernels' time, that of the first by the laws."""
    whole = float(part.mean() + rest.mean())
    return float(part.mean()) / whole if whole > 0 else 1.0
