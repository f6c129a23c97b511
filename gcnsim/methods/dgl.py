"""DGL's loader (`dgl`): mini-batches from one graph in a server's memory, loaded and trained in turn.

Source: PaGraph, sections on DGL's workflow and its costs: its baseline. Every batch: feature rows are picked out of
host memory, copied over PCIe, trained; only the drawing of the next batch runs meanwhile. All GPUs share the graph, and
the training nodes are shuffled together. Readings: `fanout` 2 in every layer and `batch` 6000, as PaGraph sets them;
`layer_sizes` draws so many nodes per layer instead, among the neighbours of the next layer.
Assumption: nothing is cached on the GPU, and nothing is lost to workers that share cores beyond their even share.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gcnsim.methods.families.mini_batch import NeighbourBatches
from gcnsim.methods.placement import Placement

EXAMPLES = Placement(on_gpu=True, threads=4, features=None)
"""Of DGL's examples: the GPU draws; `--num-workers 4` where the host does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dgl(NeighbourBatches):
    """One store in the memory of one server."""

    name: ClassVar[str] = "dgl"
    about: ClassVar[str] = "mini-batches from one store in host memory, loaded and trained in turn"
    one_server: ClassVar[bool] = True
    everywhere: ClassVar[bool] = True
    usual: ClassVar[Placement] = EXAMPLES
    scripts: ClassVar[Placement] = EXAMPLES
