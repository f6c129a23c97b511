"""DGL's loader (`dgl`): mini-batches from one graph in a server's memory, loaded and trained in turn.

Source: PaGraph, sections on DGL's workflow and its costs: its baseline. Every batch: feature rows are picked out of
host memory, copied over PCIe, trained; only the drawing of the next batch runs meanwhile. All GPUs share the graph, and
the training nodes are shuffled together. Readings: `fanout` 2 in every layer and `batch` 6000, as PaGraph sets them;
`layer_sizes` draws so many nodes per layer instead, among the neighbours of the next layer.
Assumption: nothing is cached on the GPU, and nothing is lost to workers that share cores beyond their even share.
"""

from __future__ import annotations

from gcnsim.methods.facts import Facts
from gcnsim.methods.mini_batches import Loading, mini_batches
from gcnsim.schedule import Schedule


def build(facts: Facts) -> Schedule:
    """The schedule: load, then train."""
    return mini_batches("dgl", facts, Loading())
