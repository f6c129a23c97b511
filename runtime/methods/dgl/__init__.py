"""DGL's loader (`dgl`): mini-batches from one graph in a server's memory, loaded and trained in turn.

Source: PaGraph, sections on DGL's workflow and its costs, as its baseline. Training nodes are shuffled over all
workers; only the sampling of the next batch overlaps loading and training. Every worker has all features in its memory,
which represents the one store that workers of a server share.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from runtime.methods.method import NeighbourBatches

if TYPE_CHECKING:
    from runtime.methods.batches.worker import BatchWorker
    from runtime.methods.worker import Context


@dataclass(frozen=True)
class Dgl(NeighbourBatches):
    """DGL's loader; see the module."""

    name: ClassVar[str] = "dgl"
    one_server: ClassVar[bool] = True
    everywhere: ClassVar[bool] = True

    def worker(self, context: Context) -> BatchWorker:
        """The worker that samples, loads and trains batches."""
        from runtime.methods.batches.worker import neighbour_worker

        return neighbour_worker(context, self)
