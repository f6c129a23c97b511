"""DGL's loader (`dgl`): mini-batches from one graph in a server's memory, loaded and trained in turn.

Source: PaGraph, sections on DGL's workflow and its costs, as its baseline. Training nodes are shuffled over all
workers; only the sampling of the next batch overlaps loading and training. Every worker has all features in its memory,
which represents the one store that workers of a server share.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from runtime.methods.batches.method import NeighbourBatches


@dataclass(frozen=True)
class Dgl(NeighbourBatches):
    """DGL's loader; see the module."""

    name: ClassVar[str] = "dgl"
    one_server: ClassVar[bool] = True
    everywhere: ClassVar[bool] = True
