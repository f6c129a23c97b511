"""PaGraph (`pagraph`): a mini-batch is loaded during training of the previous one, rows of high degree are cached.

Source: PaGraph, sections on caching, partitioning and pipelining. Training nodes are assigned to workers so that a part
contains their neighbourhoods (`gcnsim.graph.assign.training_parts`). A worker samples only within its part and keeps
the features of that part in its memory. Of these, the rows of highest degree are in a static cache on the device
(`gcnsim.workload.caching`): as many as requested, or with `auto` all that fit next to a mini-batch and 1 GB. One thread
loads `queue` batches ahead of training, another samples ahead of both. With `preprocess`, the input's neighbours are
summed once, before training. A batch then reads only the rows that the first layer outputs; GraphSAGE adds each node's
row. That layer has one bias, as with `--preaggregate`.

Interpretations: on a CPU, device and host share one memory, so `auto` caches every row of the part. On a GPU the memory
in use is measured after the first batch, as the paper says, and the cache is filled then.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from gcnsim.core.errors import ScenarioError
from gcnsim.workload.caching import CacheSize
from gcnsim.workload.knobs import PREPROCESS, QUEUE, STATIC_CACHE, knob
from runtime.methods.method import NeighbourBatches
from runtime.options import Options

if TYPE_CHECKING:
    from runtime.methods.batches.worker import BatchWorker
    from runtime.methods.worker import Context


@dataclass(frozen=True)
class PaGraph(NeighbourBatches):
    """PaGraph; see the module."""

    name: ClassVar[str] = "pagraph"
    one_server: ClassVar[bool] = True
    everywhere: ClassVar[bool] = True
    trains: ClassVar[Literal["shuffled", "own", "dealt"]] = "dealt"

    cache: CacheSize = knob(STATIC_CACHE)
    queue: int = knob(QUEUE)
    preprocess: str = knob(PREPROCESS)

    @property
    def ahead(self) -> int:
        """The number of batches loaded ahead: batch t + queue is loaded while batch t is trained."""
        return self.queue

    @property
    def ready(self) -> int:
        """Layers whose sums are computed before training."""
        return int(self.preprocess == "yes")

    def refuse(self, options: Options) -> None:
        """Refuse precomputed sums of a model with learnt weights."""
        NeighbourBatches.refuse(self, options)
        if self.ready and options.gathers:
            raise ScenarioError(f"--preprocess: {options.model} has no fixed first aggregation; allowed: no")

    def worker(self, context: Context) -> BatchWorker:
        """The worker with batches of a part that contains their neighbourhoods, and a cache."""
        from runtime.methods.batches.worker import dealt_worker

        return dealt_worker(context, self, self.cache)
