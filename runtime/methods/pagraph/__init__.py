"""PaGraph (`pagraph`): mini-batches loaded while the one before is trained, rows of high degree cached on the device.

Source: PaGraph, sections on caching, partitioning and pipelining. Training nodes are dealt to workers so that a part
holds their neighbourhoods (`gcnsim.partition.training_parts`); a worker draws within its part alone and keeps the
features of that part in its memory. Of these the rows of highest degree lie in a cache on the device
(`gcnsim.caching`), filled once: as many as asked, or with `auto` all that the device holds beside a mini-batch and
1 GB. A thread loads `queue` batches ahead of training, another draws ahead of both. With `preprocess` the input's
neighbours are summed once, before training: a batch then reads only the rows that the first layer makes, for GraphSAGE
each node's own beside the sum, and that layer has one bias, as `--preaggregate` gives it.

Readings: on a CPU device and host share one memory, so `auto` keeps every row of the part. On a GPU the memory in use
is measured after the first batch, as the paper says, and the cache is filled then; this has never run on a GPU.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from gcnsim.caching import CacheSize
from gcnsim.errors import ScenarioError
from gcnsim.knobs import PREPROCESS, QUEUE, STATIC_CACHE, knob
from runtime.methods.batches.method import NeighbourBatches
from runtime.options import Options

if TYPE_CHECKING:
    from runtime.methods.batches.worker import BatchWorker
    from runtime.methods.worker import Context


@dataclass(frozen=True)
class PaGraph(NeighbourBatches):
    """See the module."""

    name: ClassVar[str] = "pagraph"
    one_server: ClassVar[bool] = True
    everywhere: ClassVar[bool] = True
    trains: ClassVar[Literal["shuffled", "own", "dealt"]] = "dealt"

    cache: CacheSize = knob(STATIC_CACHE)
    queue: int = knob(QUEUE)
    preprocess: str = knob(PREPROCESS)

    @property
    def ahead(self) -> int:
        """Batch t + queue is loaded while batch t is trained."""
        return self.queue

    @property
    def ready(self) -> int:
        """Layers whose sums are made before training."""
        return int(self.preprocess == "yes")

    def refuse(self, options: Options) -> None:
        """Sums of a model whose weights are learnt."""
        NeighbourBatches.refuse(self, options)
        if self.ready and options.gathers:
            raise ScenarioError(f"--preprocess: {options.layer_name} has no fixed first aggregation; allowed: no")

    def worker(self, context: Context) -> BatchWorker:
        """Batches of a part that holds their neighbourhoods, with a cache."""
        from runtime.methods.batches.worker import dealt_worker

        return dealt_worker(context, self, self.cache)
