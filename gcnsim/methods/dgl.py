"""DGL's loader (`dgl`): mini-batches from one graph in a server's memory, drawn, loaded and trained in turn.

Source: DGL's examples (examples/pytorch/graphsage/node_classification.py, examples/multigpu): the GPU draws each batch
in the process that trains it (`num_workers=0`), graph and rows lie in host memory, read by unified addressing (mode
`mixed`), or on every GPU (`puregpu`). Reading: they lie on the GPU where they fit, as people choose the mode. Where the
host draws, 4 threads do (`num_workers=4` of DGL's user guide, 6.1), ahead. What PaGraph describes as DGL's workflow is
`sampler_device: cpu`, `features: host`: rows are picked out of host memory, copied and trained in turn. All GPUs share
the graph, and the training nodes are shuffled together. Reading: `layer_sizes` draws so many nodes per layer instead,
among the neighbours of the next layer. Assumption: nothing is lost to workers that share cores beyond their even share.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gcnsim.methods.families.mini_batch import NeighbourBatches
from gcnsim.methods.method import Placement

EXAMPLES = Placement(on_gpu=True, threads=4, features=None)
"""From DGL's examples and their common use."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dgl(NeighbourBatches):
    """DGL's loader: one feature store in the memory of one server."""

    name: ClassVar[str] = "dgl"
    about: ClassVar[str] = "mini-batches drawn by the GPU from one store, loaded and trained in turn"
    one_server: ClassVar[bool] = True
    everywhere: ClassVar[bool] = True
    usual: ClassVar[Placement] = EXAMPLES
    scripts: ClassVar[Placement] = EXAMPLES
