"""PaGraph (`pagraph`): mini-batches loaded while the previous one is trained, input rows of high degree on the GPU.

Source: PaGraph, sections on caching, partitioning, pipelining and resource isolation. The training nodes are dealt to
workers so that a part holds their neighbourhoods (`gcnsim.graph.assign`); a worker draws within its part
alone. Its cache holds the part's rows of highest degree, filled once: as many as the GPU's memory leaves, less 1 GB
(`cache: auto`), or as asked. Loading and training are two stages joined by a queue of `queue` batches, so that an
iteration takes the longer of the two; drawing is a third, ahead of both. `preprocess` sums the input's neighbours once,
before training: then a batch loads only the rows that the first layer makes, for GraphSAGE its own beside the sums.

Readings: the peak before the cache is sized is computed, not measured; a batch is put together on the GPU from cached
and loaded rows; 16 threads of the host draw for each GPU (`--num-workers 16`, examples/profile of its code); resource
isolation means that loaders and samplers have cores of their own, as all have here; the lookup's table (under 50 MB) is
left out. Assumption: without a graph, a part is no better than a random one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from gcnsim.methods.families.mini_batch import BatchPlan, NeighbourBatches
from gcnsim.methods.method import HOST, UVA, Loading, Placement
from gcnsim.workload import LayerShape
from gcnsim.workload.caching import CacheSize
from gcnsim.workload.knobs import PREPROCESS, QUEUE, STATIC_CACHE, knob

SCRIPTS = Placement(threads=16)
"""From its scripts: `--num-workers 16` threads of DGL's sampler."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PaGraph(NeighbourBatches):
    """Batches of a part that contains its neighbourhoods, loaded ahead, with a static cache."""

    name: ClassVar[str] = "pagraph"
    about: ClassVar[str] = (
        "mini-batches loaded while the previous one is trained, input rows of high degree cached on the GPU"
    )
    variants: ClassVar[tuple[Mapping[str, Any], ...]] = ({}, {"preprocess": "yes"})
    one_server: ClassVar[bool] = True
    everywhere: ClassVar[bool] = True
    trains: ClassVar[Literal["shuffled", "own", "dealt"]] = "dealt"
    usual: ClassVar[Placement] = SCRIPTS
    scripts: ClassVar[Placement] = SCRIPTS
    rows_in: ClassVar[tuple[str, ...]] = (HOST, UVA)

    cache: CacheSize = knob(STATIC_CACHE)
    queue: int = knob(QUEUE)
    preprocess: str = knob(PREPROCESS)

    @property
    def loading(self) -> Loading:
        """Batch t + queue is loaded while batch t is trained."""
        return Loading(ahead=self.queue)

    def plan(self, shapes: tuple[LayerShape, ...]) -> BatchPlan:
        """The sampling plan. With `preprocess`, the first layer samples nothing: a batch loads its precomputed rows."""
        whole = NeighbourBatches.plan(self, shapes)
        if self.preprocess == "no":
            return whole
        first = shapes[0]
        trained = (LayerShape(first.d_in, first.d_out, first.weights, gathers=False), *shapes[1:])
        return BatchPlan(whole.fanout[1:], whole.sizes[1:], trained, trained[0].update_in)
